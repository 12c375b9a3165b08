"""`kwire log restore` of a log directory: to a moment, or to offsets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.cli import terminal
from kwire.cli.client_configs import is_cluster
from kwire.cli.command import FINE, if_interrupted
from kwire.cli.log.directories import check_path
from kwire.cli.log.selection import parse_time
from kwire.cli.rows import TOPIC, Column, Format, Row, write_rows
from kwire.errors import OptionError
from kwire.pages.escaping import printable
from kwire.pages.quantities import bytes_text, count_text

if TYPE_CHECKING:
    from kwire.maintenance.restore import RestorePoint, RestoreResult

__all__ = ["is_log_directory", "restore_logs"]

SHOWN_ROWS = 20  # of transactions, offsets and states, in tables

PARTITIONS = (
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="log_start_offset", heading="START", right=True),
    Column(key="log_end_offset", heading="END", right=True),
    Column(key="source_end_offset", heading="SOURCE END", right=True),
    Column(key="added_records", heading="ADDED", right=True),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="nodes", heading="NODES", show=lambda nodes: ",".join(map(str, nodes))),
)
TRANSACTIONS = (
    Column(key="transactional_id", heading="TRANSACTIONAL ID"),
    Column(key="producer_id", heading="PRODUCER", right=True),
    Column(key="outcome", heading="OUTCOME"),
    Column(key="partitions", heading="PARTITIONS", show=" ".join),
)
OFFSETS = (
    Column(key="group", heading="GROUP"),
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(key="offset", heading="OFFSET", right=True),
    Column(key="new_offset", heading="NEW OFFSET", right=True),
)


def is_log_directory(path: str) -> bool:
    """Return whether a path is a log directory."""
    from kwire.errors import KwireError
    from kwire.log import LogDirectory

    try:
        return bool(LogDirectory(path))
    except (KwireError, OSError, ValueError):
        return False


def restore_logs(
    inputs: Sequence[str],
    output: Path,
    *,
    at: str | None,
    at_offsets: Path | None,
    nodes: int,
    kafka_version: str | None,
    format: Format,
) -> int:
    """Restore one log directory to --at or --at-offsets, by default to its ends, and print what was cut."""
    from kwire.internal_topics.metadata_versions import release_of
    from kwire.maintenance.restore import RestoreOptions, restore_directory

    if len(inputs) != 1:
        raise OptionError(f"{len(inputs)} paths: --at, --at-offsets and --nodes take one log directory")
    (source,) = inputs
    if is_cluster(source):
        raise OptionError(f"{source}: a running cluster; copy it with kwire log pull, and restore the copy")
    check_path(source)
    point = _point(at, at_offsets)
    options = RestoreOptions(nodes=nodes, release=None if kafka_version is None else release_of(kafka_version))
    with if_interrupted(f"{output} was not written"), terminal.progress("Restoring logs", 0) as bar:
        result = restore_directory(
            source, str(output), point, options, now_ms=time.time_ns() // 1_000_000, advance=bar.advance
        )
    _write(result, format)
    for warning in result.warnings:
        terminal.warn(printable(warning))
    return FINE


def _point(at: str | None, at_offsets: Path | None) -> RestorePoint:
    """Return the point to restore to. Raises OptionError."""
    from kwire.maintenance.restore import AtOffsets, AtTime, parse_offsets_file

    if at is not None:
        return AtTime(time_ms=parse_time(at, "--at"))
    if at_offsets is None:
        return AtOffsets(offsets={})
    try:
        data = at_offsets.read_bytes()
    except OSError as error:
        raise OptionError(f"{at_offsets}: cannot be read: {error.strerror}") from error
    return parse_offsets_file(data, str(at_offsets))


def _write(result: RestoreResult, format: Format) -> None:
    partitions: list[Row] = [
        {"kind": "partition", **asdict(each), "added_records": each.log_end_offset - each.cut_offset}
        for each in result.partitions
    ]
    transactions: list[Row] = [
        {
            "kind": "transaction",
            "transactional_id": each.transactional_id,
            "producer_id": each.producer_id,
            "outcome": "committed" if each.is_committed else "aborted",
            "partitions": [f"{topic}-{partition}" for topic, partition in each.partitions],
        }
        for each in result.transactions
    ]
    offsets: list[Row] = [{"kind": "offset", **asdict(each)} for each in result.offsets]
    shares: list[Row] = [{"kind": "share offset", **asdict(each)} for each in result.share_offsets]
    if format is not Format.TABLE:
        write_rows([*partitions, *transactions, *offsets, *shares], (), format)
        return
    write_rows(partitions, PARTITIONS, format)
    for what, rows, columns in (
        ("transactions ended", transactions, TRANSACTIONS),
        ("committed offsets moved", offsets, OFFSETS),
        ("states of share groups cut", shares, OFFSETS),
    ):
        if rows:
            print()
            write_rows(rows[:SHOWN_ROWS], columns, format)
            more = f"; {SHOWN_ROWS} shown, --format json lists all" if len(rows) > SHOWN_ROWS else ""
            print(f"{count_text(len(rows))} {what}{more}")
    print(f"\n{count_text(len(partitions))} partitions, cluster id {result.cluster_id}")
