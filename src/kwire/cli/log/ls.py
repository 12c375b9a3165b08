"""`kwire log ls`: the partitions of a log directory, one line each."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.log.directories import bytes_of, open_logs, selected, warn_of_ignored
from kwire.cli.log.selection import Selection
from kwire.cli.options import ClientConfigFile, ClientConfigs, FormatOption, LogPath, Partitions, Topics
from kwire.cli.rows import TOPIC, Column, Format, Row, write_rows
from kwire.pages.quantities import bytes_text, time_text

if TYPE_CHECKING:
    from kwire.log.reading.readable_log import ReadableLog

__all__ = ["ls"]


class SortKey(enum.StrEnum):
    """Values of --sort. All but name sort the largest first."""

    NAME = "name"
    SIZE = "size"
    OFFSETS = "offsets"
    SEGMENTS = "segments"
    TIME = "time"


SORT_COLUMNS = {
    SortKey.SIZE: "size_bytes",
    SortKey.OFFSETS: "offsets",
    SortKey.SEGMENTS: "segments",
    SortKey.TIME: "last_timestamp",
}


def _time(value: int) -> str:
    return (time_text(value) or "-").replace("T", " ")


COUNTS = (
    Column(key="segments", heading="SEGMENTS", right=True, optional=True),
    Column(key="log_start_offset", heading="START", right=True),
    Column(key="log_end_offset", heading="END", right=True),
    Column(key="high_watermark", heading="HIGH WATERMARK", right=True, optional=True),
    Column(key="last_stable_offset", heading="LAST STABLE", right=True, optional=True),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="last_timestamp", heading="LAST TIME", show=_time),
)
WIDE = (
    Column(key="records", heading="RECORDS", right=True),
    Column(key="control_records", heading="CONTROL", right=True),
    Column(key="batches", heading="BATCHES", right=True),
    Column(key="codecs", heading="CODECS", show=",".join),
    Column(key="magics", heading="MAGIC", show=lambda magics: ",".join(map(str, magics))),
    Column(key="first_timestamp", heading="FIRST TIME", show=_time),
)
DAMAGE = Column(key="damage", heading="DAMAGE")
SUMMARY = (
    Column(key="partitions", heading="PARTITIONS", right=True),
    Column(key="segments", heading="SEGMENTS", right=True),
    Column(key="offsets", heading="OFFSETS", right=True),
    Column(key="size_bytes", heading="SIZE", show=bytes_text, right=True),
    Column(key="last_timestamp", heading="LAST TIME", show=_time),
)


def ls(
    path: LogPath,
    topic: Topics = None,
    partition: Partitions = None,
    wide: Annotated[
        bool,
        typer.Option(
            "--wide", "-w", help="Record counts, codecs, record formats and first timestamps; reads all headers."
        ),
    ] = False,
    topics: Annotated[bool, typer.Option("--topics", help="One line per topic.")] = False,
    sort: Annotated[SortKey, typer.Option(help="Sort order; all but name are descending.")] = SortKey.NAME,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """List partitions with their segments, offsets, sizes and timestamps.

    START is the log start offset, END the log end offset (the next one to be written), HIGH WATERMARK the broker's last
    checkpoint, LAST STABLE the offset below which read_committed consumers read. Of a cluster, END is the high
    watermark, and "-" is a value that clusters do not report. Exit code 1 if the end of a log is damaged.
    """
    source = open_logs(path, config, config_file)
    logs = selected(source, Selection.parse(topic, partition))
    total = bytes_of(logs) if wide else 0
    with terminal.progress("Reading batch headers", total) as bar:
        rows = [_row(log, wide=wide) for log in _advancing(bar, logs)]
    damaged = any(row["damage"] for row in rows)
    if topics:
        rows = list(_topics(rows))
    if sort is not SortKey.NAME:
        rows.sort(key=lambda row: -(row[SORT_COLUMNS[sort]] or 0))
    if topics:
        columns: tuple[Column, ...] = (TOPIC, *SUMMARY)
    else:
        columns = (TOPIC, Column(key="partition", heading="PARTITION", right=True), *COUNTS)
    columns += (WIDE if wide and not topics else ()) + ((DAMAGE,) if damaged else ())
    write_rows(rows, columns, format)
    warn_of_ignored(source.ignored)
    return FOUND if damaged else FINE


def _advancing(bar: terminal.Progress, logs: Iterable[ReadableLog]) -> Iterator[ReadableLog]:
    for log in logs:
        yield log
        bar.advance(log.size_bytes or 0)


def _row(log: ReadableLog, *, wide: bool) -> Row:
    from kwire.errors import CorruptBatch, DecodeError, LogError

    damage: CorruptBatch | DecodeError | None = log.damage
    try:
        stable: int | None = log.last_stable_offset
    except DecodeError as error:
        stable, damage = None, damage or error
    try:
        topic_id = log.topic_id
    except LogError:
        topic_id = None
    start, end = log.log_start_offset, log.log_end_offset
    row: Row = {
        "topic": log.topic,
        "partition": log.partition,
        "topic_id": str(topic_id) if topic_id else None,
        "segments": log.segment_count,
        "log_start_offset": start,
        "log_end_offset": end,
        "offsets": end - start,
        "high_watermark": log.high_watermark,
        "last_stable_offset": stable,
        "size_bytes": log.size_bytes,
        "last_timestamp": log.last_timestamp,
    }
    if wide:
        try:
            row.update(_batches(log))
        except DecodeError as error:
            damage = damage or error
    return row | {"damage": str(damage) if damage else None}


def _batches(log: ReadableLog) -> Row:
    codecs: Counter[str] = Counter()
    magics: set[int] = set()
    records = control = batches = 0
    first: int | None = None
    start = log.log_start_offset
    for _, batch in log.batches(start):
        if batch.last_offset < start:
            continue
        batches += 1
        codecs[batch.compression.text] += batch.size_bytes
        magics.add(batch.magic)
        n = batch.count
        if n is None or batch.claimed_offsets()[0] < start:  # no count in magic 0 and 1; or the log starts inside
            n = sum(record.offset >= start for record in batch.records(check_crc=False))
        if batch.is_control:
            control += n
        else:
            records += n
        # the field of the first timestamp may hold a delete horizon instead
        time = batch.max_timestamp if batch.delete_horizon_ms is not None else batch.base_timestamp
        if time != -1:
            first = time if first is None else min(first, time)
    return {
        "records": records,
        "control_records": control,
        "batches": batches,
        "codecs": sorted(codecs, key=lambda name: -codecs[name]),
        "magics": sorted(magics),
        "first_timestamp": first,
    }


def _topics(rows: Iterable[Row]) -> Iterator[Row]:
    by_topic: dict[str, list[Row]] = {}
    for row in rows:
        by_topic.setdefault(row["topic"], []).append(row)
    for topic, of_topic in by_topic.items():
        yield {
            "topic": topic,
            "partitions": len(of_topic),
            **{key: _sum(row[key] for row in of_topic) for key in ("segments", "offsets", "size_bytes")},
            "last_timestamp": max(
                (row["last_timestamp"] for row in of_topic if row["last_timestamp"] is not None), default=None
            ),
            "damage": next((row["damage"] for row in of_topic if row["damage"]), None),
        }


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum; None if a value is unknown."""
    numbers = list(values)
    return None if None in numbers else sum(filter(None, numbers))
