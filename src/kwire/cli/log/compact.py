"""`kwire log compact`: compaction of a log directory without a broker, and its preview."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND, if_interrupted, unfinished
from kwire.cli.log.directories import open_local_directory, selected
from kwire.cli.log.selection import Selection, parse_time
from kwire.cli.options import TIME, ConfigValues, FormatOption, Partitions, Topics
from kwire.cli.rows import TOPIC, Column, Format, Row, write_rows
from kwire.errors import DecodeError, LogError, OptionError
from kwire.pages.escaping import printable
from kwire.pages.quantities import bytes_text, count_text
from kwire.storage.file_system import FileSystem
from kwire.storage.staged_directory import StagedDirectory, check_target

if TYPE_CHECKING:
    from kwire.log import LogDirectory
    from kwire.maintenance.compaction import Compaction

__all__ = ["compact"]


def compact(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Log directory that no broker has open.")],
    topic: Topics = None,
    partition: Partitions = None,
    every: Annotated[bool, typer.Option("--all", help="All topics, whatever their cleanup.policy.")] = False,
    config: ConfigValues = None,
    now: Annotated[str | None, typer.Option(metavar="TIME", help=f"Time used as the current time: {TIME}.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="DIR", help="Directory for a compacted copy.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Compact in place.")] = False,
    format: FormatOption = Format.TABLE,
) -> int:
    """Compact topics, in place or into a copy; without --apply or -o, show what compaction would remove.

    Compaction keeps the newest record of each key, and tombstones for delete.retention.ms (24 h). Active segments and
    records above the first open transaction are not compacted. Topic configs come from the metadata log in the
    directory (KRaft), --config overrides them, and Kafka's defaults apply to the rest; min.cleanable.dirty.ratio is 0.
    Other partitions keep their files and checkpoints. Exit code 1 if a partition is damaged; it is left unchanged.
    """
    from kwire.internal_topics.names import METADATA_TOPIC
    from kwire.maintenance import compaction as offline

    directory = open_local_directory(path)
    if bool(topic) == every:
        raise OptionError("name the topics with --topic, or all with --all; cleanup.policy=delete would lose records")
    if apply and output is not None:
        raise OptionError("--apply and -o are mutually exclusive")
    chosen = Selection.parse(topic, partition)
    given = dict(map(_name_and_value, config or ()))
    stored = _stored_configs(directory)
    settings = offline.OfflineSettings.parse(given, stored)
    now_ms = int(time.time() * 1000) if now is None else parse_time(now, "--now")
    logs = [log for log in selected(directory, chosen) if log.topic != METADATA_TOPIC]
    if stored and "cleanup.policy" not in given:
        _warn_of_policies(stored, {log.topic for log in logs})
    state = unfinished(path) if apply else f"{path} is unchanged"
    if output is not None:
        state = f"{output} was not written"
    work = offline.preview if output is None and not apply else offline.compact
    report = _Report()
    size = sum(log.size_bytes for log in logs)
    with (
        terminal.progress("Compacting", size, beside_rows=True) as bar,
        if_interrupted(state),
        nullcontext(path) if output is None else _copy(path, output, chosen) as place,
    ):
        results = work(place, chosen.takes_partition, settings, now_ms, bar.advance)
        write_rows(report.rows(_usable(results)), COLUMNS, format)
    if format is Format.TABLE and not apply and output is None:
        terminal.warn("dry run, nothing was changed: --apply compacts in place, -o DIR writes a compacted copy")
    return FOUND if report.has_failed else FINE


@contextmanager
def _copy(path: str, output: str, chosen: Selection) -> Iterator[str]:
    """Copy logs to a directory that gets the name `output` at the end; yield its path until then."""
    from kwire.maintenance.compaction import copy_logs

    check_target(output)
    files = FileSystem()
    staged = StagedDirectory(files, output)
    if staged.exists:
        raise OptionError(f"{staged.part}: left by an interrupted run; remove it")
    try:
        copy_logs(path, staged.part, chosen.takes_partition)
        yield staged.part
        staged.publish()
    except BaseException:  # Ctrl-C too: the same command can be repeated
        if files.exists(staged.part):
            staged.discard()
        raise


def _warn_of_policies(stored: dict[str, dict[str, str]], topics: set[str]) -> None:
    """Warn of topics that their broker does not compact."""
    for name in sorted(topics):
        if "compact" not in stored.get(name, {}).get("cleanup.policy", "delete"):
            terminal.warn(f"{printable(name)}: cleanup.policy is not compact; compaction removes records of this topic")


def _stored_configs(directory: LogDirectory) -> dict[str, dict[str, str]]:
    """Return the topic configs of the metadata log; none, with a warning, if it cannot be read."""
    from kwire.maintenance.compaction import stored_topic_configs

    try:
        return stored_topic_configs(directory)
    except (DecodeError, LogError) as error:
        terminal.warn(f"topic configs cannot be read; Kafka's defaults apply: {printable(str(error))}")
        return {}


def _name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise OptionError(f"--config {text!r}: expected NAME=VALUE")
    return name.strip(), value.strip()


def _usable(results: Iterable[Compaction]) -> Iterator[Compaction]:
    """Yield results; a directory without logs becomes wrong usage."""
    try:
        yield from results
    except LogError as error:
        raise OptionError(str(error)) from error


class _Report:
    """Rows of compactions. has_failed: whether one has failed."""

    def __init__(self) -> None:
        self.has_failed = False

    def rows(self, results: Iterable[Compaction]) -> Iterator[Row]:
        """Yield a row per partition; a failure is printed to standard error as well."""
        for each in results:
            if each.problem is not None:
                self.has_failed = True
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
    TOPIC,
    Column(key="partition", heading="PARTITION", right=True),
    Column(pick=lambda row: f"{row['first_dirty_offset']}:{row['end_offset']}", heading="DIRTY OFFSETS", right=True),
    _change("segments", "count"),
    _change("records", "count"),
    _change("bytes", "bytes"),
    Column(key="tombstones_removed", heading="TOMBSTONES REMOVED", show=count_text, right=True),
    Column(key="keyless_removed", heading="KEYLESS REMOVED", show=count_text, right=True),
)
