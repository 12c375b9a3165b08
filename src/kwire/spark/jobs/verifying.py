"""verify: everything that is wrong in log directories, one task a partition.

What `kwire log verify` finds, found side by side: partitions on executors, the directories' own files on the driver.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.identifiers import TopicPartition
from kwire.log import LogDirectory, PartitionLog
from kwire.spark.jobs.choice import choose
from kwire.spark.jobs.journal import Journal, Row
from kwire.spark.jobs.result import JobResult, frame_of
from kwire.spark.jobs.runner import Item, Outcome, ToldProgress, raise_failures, run_items
from kwire.spark.paths import expand_glob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kwire.log.verify.directory import RootFiles
    from kwire.log.verify.partition import PartitionFindings

__all__ = ["DAMAGE_COLUMNS", "Verified", "verify"]

DAMAGE_COLUMNS = {
    "severity": "string",
    "kind": "string",
    "topic": "string",
    "partition": "int",
    "file": "string",
    "position": "bigint",
    "size_bytes": "bigint",
    "first_offset": "bigint",
    "last_offset": "bigint",
    "cause": "string",
    "effect": "string",
    "hint": "string",
}
COLUMNS = {
    "directory": "string",
    "topic": "string",
    "partition": "int",
    "segments": "int",
    "size_bytes": "bigint",
    "log_start_offset": "bigint",
    "log_end_offset": "bigint",
    "damages": "bigint",
    "notes": "bigint",
    "problem": "string",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(JobResult):
    """What verify found. found: all findings as Damage.as_row has them, worst first, notes (nothing wrong) too."""

    found: tuple[Row, ...] = field(repr=False)

    @property
    def damages(self) -> DataFrame:
        """The findings as a DataFrame, notes left out."""
        return frame_of(self.session, [row for row in self.found if row["severity"] != "note"], DAMAGE_COLUMNS)

    @property
    def notes(self) -> DataFrame:
        """What is no damage, such as the traces of a stop without shutdown."""
        return frame_of(self.session, [row for row in self.found if row["severity"] == "note"], DAMAGE_COLUMNS)

    @property
    def is_fine(self) -> bool:
        """Whether there is no damage."""
        return all(row["severity"] == "note" for row in self.found)


@dataclass(frozen=True, slots=True)
class VerifyLog:
    """The work on one partition; subject: (directory, log, its circumstances)."""

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.log.verify.directory import verify_log

        directory, log, circumstances = item.subject
        found = verify_log(log, circumstances)
        return {
            "directory": directory,
            "topic": log.topic,
            "partition": log.partition,
            "segments": len(found.segments),
            "size_bytes": sum(each.size_bytes for each in found.segments),
            "log_start_offset": log.log_start_offset,
            "log_end_offset": found.log_end_offset,
            "found": [each.as_row() for each in found.damages],
        }


def verify(
    spark: SparkSession,
    path: str | Sequence[str],
    *,
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    journal: str | None = None,
    progress: ToldProgress | None = None,
    storage: Mapping[str, Any] | None = None,
) -> Verified:
    """Check every batch, index, snapshot and checkpoint below the paths: log directories, globs or URLs of them.

    journal: a directory that driver and executors share, kept until it is removed: partitions that are in it and have
    not changed since are not read again. storage: options for fsspec's driver.
    Raises LogError for a path without logs, OptionError, JobFailed.
    """
    from kwire.log.verify.directory import verify_root

    options = dict(storage or {})
    paths = [path] if isinstance(path, str) else list(path)
    directories = [LogDirectory(place, **options) for each in paths for place in expand_glob(each, options)]
    every = {key: log for directory in directories for key, log in directory.items()}
    wanted = choose(every, topics, partitions)
    parts = [part_of(directory, wanted) for directory in directories]
    kept = None if journal is None else Journal(journal)
    if kept is not None:
        kept.begin({"job": "verify"}, {})
    items = [item for part in parts for item in part.items]
    done = run_items(spark, "verify", items, VerifyLog(), journal=kept, progress=progress)
    outcomes = {each.item.name: each for each in done.outcomes}
    rows: list[Row] = []
    found: list[Row] = []
    for part in parts:
        findings = []
        for log in part.logs:
            each = outcomes[log.url]
            rows.append(row_of(part.directory, log, each))
            if each.row is not None:
                found += each.row["found"]
                findings.append(findings_of(log, each.row))
        if part.root is not None:
            whole = not topics and not partitions
            found += [each.as_row() for each in verify_root(part.directory, part.root, findings, is_whole=whole)]
    result = Verified(
        rows=tuple(rows),
        resumed=done.resumed,
        seconds=done.seconds,
        columns=COLUMNS,
        session=spark,
        found=tuple(sorted(found, key=by_severity)),
    )
    raise_failures("verify", done, result, "the others are in the error's result")
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One directory: the logs of it that are verified, an item each, and its own files, None for a partition's own."""

    directory: LogDirectory
    logs: list[PartitionLog]
    root: RootFiles | None
    items: list[Item]


def part_of(directory: LogDirectory, wanted: Collection[TopicPartition]) -> Part:
    """The work on one directory."""
    from kwire.log.verify.directory import circumstances_of, root_files_above
    from kwire.maintenance.part_journal import fingerprint

    first = next(iter(directory.values()))
    root = root_files_above(first) if first.directory else None
    logs = [log for key, log in directory.items() if key in wanted]
    items = []
    for log in logs:
        about = circumstances_of(log) if root is None else root.circumstances((log.topic, log.partition))
        items.append(
            Item(
                name=log.url,
                size_bytes=log.size_bytes,
                subject=(directory.url, log, about),
                fingerprint=[fingerprint(log), repr(about)],
            )
        )
    return Part(directory=directory, logs=logs, root=root, items=items)


def row_of(directory: LogDirectory, log: PartitionLog, outcome: Outcome) -> Row:
    """The row of one partition."""
    row = dict.fromkeys(COLUMNS) | {"directory": directory.url, "topic": log.topic, "partition": log.partition}
    if outcome.row is None:
        return row | {"problem": outcome.problem}
    notes = sum(each["severity"] == "note" for each in outcome.row["found"])
    counts = {"damages": len(outcome.row["found"]) - notes, "notes": notes}
    return row | {name: value for name, value in (outcome.row | counts).items() if name in COLUMNS}


def findings_of(log: PartitionLog, row: Row) -> PartitionFindings:
    """What the checks of the directory's own files ask of a partition."""
    from kwire.log.verify.partition import PartitionFindings, SegmentFindings

    segments = [
        SegmentFindings(segment=each, size_bytes=each.size_bytes, next_offset=each.base_offset) for each in log.segments
    ]
    return PartitionFindings(log=log, segments=segments, damages=[], log_end_offset=row["log_end_offset"])


def by_severity(row: Row) -> tuple[int, str, int]:
    """Worst first, then by place."""
    from kwire.log.damage import Severity

    return -Severity[row["severity"].upper().replace(" ", "_")], row["file"], row["position"] or 0
