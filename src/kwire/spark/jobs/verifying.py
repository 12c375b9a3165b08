"""verify: the damage in log directories, one task per partition.

Checks what `kwire log verify` checks: partitions on executors, the directories' own files on the driver.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.identifiers import TopicPartition
from kwire.log import LogDirectory, PartitionLog
from kwire.log.reading.paths import StorageOptions, expand_glob
from kwire.spark.jobs.choice import as_list, select_logs
from kwire.spark.jobs.journal import Journal, Row
from kwire.spark.jobs.result import JobResult, create_frame
from kwire.spark.jobs.runner import Item, Outcome, ProgressCallback, raise_failures, run_items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kwire.maintenance.verify.findings import PartitionFindings
    from kwire.maintenance.verify.root_files import RootFiles

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
    """The result of verify. found: all findings, notes included, as Damage.as_row returns them; worst first."""

    found: tuple[Row, ...] = field(repr=False)

    @property
    def damages(self) -> DataFrame:
        """The findings except notes, as a DataFrame."""
        return create_frame(self.session, [row for row in self.found if row["severity"] != "note"], DAMAGE_COLUMNS)

    @property
    def notes(self) -> DataFrame:
        """Findings that are not damage, such as traces of an unclean shutdown."""
        return create_frame(self.session, [row for row in self.found if row["severity"] == "note"], DAMAGE_COLUMNS)

    @property
    def is_fine(self) -> bool:
        """Whether no damage was found."""
        return all(row["severity"] == "note" for row in self.found)


@dataclass(frozen=True, slots=True)
class VerifyPartition:
    """Verifies one partition; subject: (directory, log, its context)."""

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.maintenance.verify.directory import verify_log

        directory, log, context = item.subject
        verified = verify_log(log, context)
        return {
            "directory": directory,
            "topic": log.topic,
            "partition": log.partition,
            "segments": len(verified.segments),
            "size_bytes": sum(each.size_bytes for each in verified.segments),
            "log_start_offset": log.log_start_offset,
            "log_end_offset": verified.log_end_offset,
            "found": [each.as_row() for each in verified.damages],
        }


def verify(
    spark: SparkSession,
    path: str | Sequence[str],
    *,
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    journal: str | None = None,
    progress: ProgressCallback | None = None,
    storage: StorageOptions | None = None,
) -> Verified:
    """Verify every batch, index, snapshot and checkpoint of log directories, given as paths, globs or URLs.

    journal: a directory that driver and executors share. Partitions that it lists and that have not changed are not
    read again; remove it to start anew. storage: arguments of fsspec's driver.
    Raises LogError for a path without logs, OptionError, JobFailed.
    """
    from kwire.maintenance.verify.directory import verify_root

    options = dict(storage or {})
    urls = [url for each in as_list(path) for url in expand_glob(each, options)]
    directories = [LogDirectory(url, may_share=True, **options) for url in urls]
    logs = {key: log for directory in directories for key, log in directory.items()}
    selected = select_logs(logs, topics, partitions)
    parts = [_part(directory, selected) for directory in directories]
    started = None if journal is None else Journal(journal)
    if started is not None:
        started.begin({"job": "verify"}, {})
    items = [item for part in parts for item in part.items]
    run = run_items(spark, "verify", items, VerifyPartition(), journal=started, progress=progress)
    outcomes = {each.item.name: each for each in run.outcomes}
    rows: list[Row] = []
    damages: list[Row] = []
    for part in parts:
        findings = []
        for log in part.logs:
            each = outcomes[log.url]
            rows.append(_row(part.directory, log, each))
            if each.row is not None:
                damages += each.row["found"]
                findings.append(_findings(log, each.row))
        if part.root is not None:
            whole = not topics and not partitions
            damages += [each.as_row() for each in verify_root(part.directory, part.root, findings, is_whole=whole)]
    result = Verified(
        rows=tuple(rows),
        resumed=run.resumed,
        seconds=run.seconds,
        columns=COLUMNS,
        session=spark,
        found=tuple(sorted(damages, key=_severity_order)),
    )
    raise_failures("verify", run, result, "other partitions are in the error's result")
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The selected logs of one directory, an item each, and its own files (None for the directory of a partition)."""

    directory: LogDirectory
    logs: list[PartitionLog]
    root: RootFiles | None
    items: list[Item]


def _part(directory: LogDirectory, selected: Collection[TopicPartition]) -> Part:
    from kwire.maintenance.verify.root_files import context_of, root_files_above

    first = next(iter(directory.values()))
    root = root_files_above(first) if first.directory else None
    logs = [log for key, log in directory.items() if key in selected]
    items = []
    for log in logs:
        context = context_of(log) if root is None else root.context((log.topic, log.partition))
        items.append(
            Item(
                name=log.url,
                size_bytes=log.size_bytes,
                subject=(directory.url, log, context),
                fingerprint=[log.fingerprint(), repr(context)],
            )
        )
    return Part(directory=directory, logs=logs, root=root, items=items)


def _row(directory: LogDirectory, log: PartitionLog, outcome: Outcome) -> Row:
    row = dict.fromkeys(COLUMNS) | {"directory": directory.url, "topic": log.topic, "partition": log.partition}
    if outcome.row is None:
        return row | {"problem": outcome.problem}
    notes = sum(each["severity"] == "note" for each in outcome.row["found"])
    counts = {"damages": len(outcome.row["found"]) - notes, "notes": notes}
    return row | {name: value for name, value in (outcome.row | counts).items() if name in COLUMNS}


def _findings(log: PartitionLog, row: Row) -> PartitionFindings:
    """Return the findings that the checks of the directory's own files need."""
    from kwire.maintenance.verify.findings import PartitionFindings, SegmentFindings

    segments = [
        SegmentFindings(segment=each, size_bytes=each.size_bytes, next_offset=each.base_offset) for each in log.segments
    ]
    return PartitionFindings(log=log, segments=segments, damages=[], log_end_offset=row["log_end_offset"])


def _severity_order(row: Row) -> tuple[int, str, int]:
    """Return a sort key: worst first, then by file and position."""
    from kwire.log.files.damage import Severity

    return -Severity[row["severity"].upper().replace(" ", "_")], row["file"], row["position"] or 0
