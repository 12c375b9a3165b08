"""`kwire log compact`: what compaction would remove, and removing it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.escaping import printable
from kwire.cli.log.directories import check_path
from kwire.cli.log.selection import Selection, parse_time
from kwire.cli.quantities import bytes_text, count_text
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import LogError, OptionError

if TYPE_CHECKING:
    from kwire.log.cleaner.offline import Compaction

__all__ = ["compact"]


def compact(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Log directory that no broker has open.")],
    topic: Annotated[list[str] | None, typer.Option(help="Topics of this name or pattern (*, ?). Repeatable.")] = None,
    partition: Annotated[list[int] | None, typer.Option(help="Only this partition. Repeatable.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All topics, compacted ones or not.")] = False,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Setting by Kafka's name, such as delete.retention.ms=0. Repeatable."),
    ] = None,
    now: Annotated[
        str | None, typer.Option(metavar="TIME", help="Take this for the present: ISO 8601 (UTC) or ms.")
    ] = None,
    output: Annotated[str | None, typer.Option("-o", metavar="DIR", help="Write a compacted copy to DIR.")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Compact in place.")] = False,
    shape: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TABLE,
) -> int:
    """Show what compaction would remove; with -o DIR or --apply, remove it.

    Of each key the newest record stays, tombstones for delete.retention.ms (24 h). Active segments and what an open
    transaction holds back are never compacted. The settings of topics are not in the directory: --config gives them,
    with Kafka's defaults for the rest, and min.cleanable.dirty.ratio=0. Exit code 1 if a partition is damaged; it stays
    as it is then.
    """
    from kwire.log.cleaner import offline

    check_path(path)
    if not os.path.isdir(path):
        raise OptionError(f"{path}: a local log directory is needed")
    if bool(topic) == every:
        raise OptionError("which topics? --topic NAME or --all: topics with cleanup.policy=delete would lose records")
    if apply and output is not None:
        raise OptionError("--apply compacts in place and -o a copy: one of them")
    chosen = Selection(topics=topic or (), partitions=partition or ()).takes_partition
    settings = offline.OfflineSettings.parse(dict(map(_setting, config or ())))
    now_ms = int(time.time() * 1000) if now is None else parse_time(now, "--now")
    if output is not None:
        offline.copy_logs(path, output, chosen)
    if apply or output is not None:
        done = offline.compact(path if output is None else output, chosen, settings, now_ms)
    else:
        done = offline.preview(path, chosen, settings, now_ms)
    report = _Report()
    write_rows(report.rows(_usable(done)), COLUMNS, shape)
    if not report.count:
        raise OptionError("no partition here has that topic and number")
    if shape is Format.TABLE and not apply and output is None:
        terminal.warn("nothing was changed; --apply compacts in place, -o DIR writes a compacted copy")
    return FOUND if report.found else FINE


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise OptionError(f"--config {text!r}: expected NAME=VALUE")
    return name.strip(), value.strip()


def _usable(done: Iterable[Compaction]) -> Iterator[Compaction]:
    """What is done, where a directory without logs is wrong usage."""
    try:
        yield from done
    except LogError as error:
        raise OptionError(str(error)) from error


class _Report:
    """Rows of compactions. count: of them. found: whether one has failed."""

    def __init__(self) -> None:
        self.count, self.found = 0, False

    def rows(self, done: Iterable[Compaction]) -> Iterator[Row]:
        """A row a partition; what failed is told on standard error as well."""
        for each in done:
            self.count += 1
            if each.problem is not None:
                self.found = True
                terminal.warn(printable(str(each.problem)))
            stats = each.stats
            yield {
                "topic": each.topic,
                "partition": each.partition,
                "first_dirty_offset": each.plan.first_dirty_offset,
                "end_offset": each.plan.end_offset,
                "clean_offset": each.clean_offset,
                "dirty_ratio": round(each.plan.dirty_ratio, 4),
                "passes": stats.passes,
                "segments_before": stats.segments_read,
                "segments_after": stats.segments_written,
                "records_before": stats.records_read,
                "records_after": stats.records_written,
                "bytes_before": stats.bytes_read,
                "bytes_after": stats.bytes_written,
                "tombstones_removed": stats.tombstones_dropped,
                "keyless_removed": stats.keyless_records,
                "batches_emptied": stats.batches_emptied,
                "problem": None if each.problem is None else str(each.problem),
            }


def _change(name: str, show: str) -> Column:
    text = bytes_text if show == "bytes" else count_text
    return Column(
        pick=lambda row: f"{text(row[f'{name}_before'])} > {text(row[f'{name}_after'])}",
        heading=name.upper(),
        right=True,
    )


COLUMNS = (
    Column(key="topic", heading="TOPIC"),
    Column(key="partition", heading="PARTITION", right=True),
    Column(pick=lambda row: f"{row['first_dirty_offset']}:{row['end_offset']}", heading="DIRTY OFFSETS", right=True),
    _change("segments", "count"),
    _change("records", "count"),
    _change("bytes", "bytes"),
    Column(key="tombstones_removed", heading="TOMBSTONES GONE", show=count_text, right=True),
    Column(key="keyless_removed", heading="KEYLESS GONE", show=count_text, right=True),
)
