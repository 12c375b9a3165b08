"""`kwire log compact`: what compaction would remove, and removing it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, if_interrupted
from kwire.cli.log.directories import open_local_directory
from kwire.cli.log.selection import Selection, parse_time
from kwire.cli.rows import Column, Format, Row, write_rows
from kwire.errors import DecodeError, LogError, OptionError
from kwire.pages.escaping import printable
from kwire.pages.quantities import bytes_text, count_text

if TYPE_CHECKING:
    from kwire.log import LogDirectory
    from kwire.maintenance.compaction import Compaction

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
    transaction holds back are never compacted. Topic configs come from the metadata log in the directory (KRaft);
    --config overrides them, Kafka's defaults apply to the rest, and min.cleanable.dirty.ratio is 0. Partitions that are
    not named keep their files and checkpoints. Exit code 1 if a partition is damaged; it is left unchanged.
    """
    from kwire.internal_topics.names import METADATA_TOPIC
    from kwire.maintenance import compaction as offline

    directory = open_local_directory(path)
    if bool(topic) == every:
        raise OptionError("which topics? --topic NAME or --all: topics with cleanup.policy=delete would lose records")
    if apply and output is not None:
        raise OptionError("--apply compacts in place and -o a copy: one of them")
    chosen = Selection(topics=topic or (), partitions=partition or ()).takes_partition
    given = dict(map(_setting, config or ()))
    stored = _stored_configs(directory)
    settings = offline.OfflineSettings.parse(given, stored)
    now_ms = int(time.time() * 1000) if now is None else parse_time(now, "--now")
    logs = [log for key, log in directory.items() if chosen(*key) and key[0] != METADATA_TOPIC]
    if not logs:
        raise OptionError("no partition here has that topic and number")
    if stored and "cleanup.policy" not in given:
        for name in sorted({log.topic for log in logs}):
            if "compact" not in stored.get(name, {}).get("cleanup.policy", "delete"):
                terminal.warn(
                    f"{printable(name)}: cleanup.policy is not compact; compaction removes records of this topic"
                )
    report = _Report()
    with terminal.progress("Compacting", sum(log.size_bytes for log in logs), beside_rows=True) as bar:
        if output is not None:
            with if_interrupted(f"{output} is incomplete: delete it and run the command again; {path} is unchanged"):
                offline.copy_logs(path, output, chosen)
                write_rows(
                    report.rows(_usable(offline.compact(output, chosen, settings, now_ms, bar.advance))), COLUMNS, shape
                )
        elif apply:
            with if_interrupted(
                f"{path} is valid: finished segments are compacted, the others unchanged; "
                "run the command again to compact the rest"
            ):
                write_rows(
                    report.rows(_usable(offline.compact(path, chosen, settings, now_ms, bar.advance))), COLUMNS, shape
                )
        else:
            write_rows(
                report.rows(_usable(offline.preview(path, chosen, settings, now_ms, bar.advance))), COLUMNS, shape
            )
    if shape is Format.TABLE and not apply and output is None:
        terminal.warn("nothing was changed; --apply compacts in place, -o DIR writes a compacted copy")
    return FOUND if report.found else FINE


def _stored_configs(directory: LogDirectory) -> dict[str, dict[str, str]]:
    """Topic configs of the metadata log; none, with a warning, where it cannot be read."""
    from kwire.maintenance.compaction import stored_topic_configs

    try:
        return stored_topic_configs(directory)
    except (DecodeError, LogError) as error:
        terminal.warn(f"topic configs cannot be read, Kafka's defaults apply: {printable(str(error))}")
        return {}


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
