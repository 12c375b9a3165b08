"""export: the records of logs as Parquet, Arrow IPC or JSON lines, written by the tasks, one file a partition.

    TARGET/orders/partition=0/records.parquet       as `kwire log export` has it
    TARGET/_job/                                    while the job runs, and after one that failed
    TARGET/_SUCCESS                                 every partition is there

Rows never pass through Spark's JVM.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from kwire.errors import OptionError
from kwire.spark.jobs.choice import choose
from kwire.spark.jobs.journal import Journal, Row, put_in_place
from kwire.spark.jobs.result import JobResult, rows_of
from kwire.spark.jobs.runner import Item, ToldProgress, raise_failures, run_items
from kwire.spark.paths import open_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kwire.maintenance.export import Format, Range

__all__ = ["export"]

SUCCESS = "_SUCCESS"
COLUMNS = {
    "topic": "string",
    "partition": "int",
    "records": "bigint",
    "start_offset": "bigint",
    "end_offset": "bigint",
    "size_bytes": "bigint",
    "path": "string",
    "problem": "string",
}

Isolation = Literal["read_uncommitted", "read_committed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportLog:
    """The work on one partition; subject: its log."""

    shape: Format
    records: Range
    isolation: Isolation
    headers: bool
    as_base64: bool

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.maintenance.export import export_logs
        from kwire.storage.file_system import FileSystem

        files = FileSystem()
        assert item.place is not None
        [made] = export_logs(
            [item.subject],
            f"{attempt}/out",
            shape=self.shape,
            records=self.records,
            isolation=self.isolation,
            headers=self.headers,
            as_base64=self.as_base64,
        )
        files.make_directory(os.path.dirname(item.place))
        put_in_place(files, made.path, item.place)
        return {
            "topic": made.topic,
            "partition": made.partition,
            "records": made.records,
            "start_offset": made.start_offset,
            "end_offset": made.end_offset,
            "size_bytes": files.size(item.place),
            "path": item.place,
        }


def export(
    spark: SparkSession,
    path: str | Sequence[str],
    target: str,
    *,
    format: Format = "parquet",
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    records: Range | None = None,
    isolation: Isolation = "read_uncommitted",
    headers: bool = False,
    as_base64: bool = False,
    progress: ToldProgress | None = None,
    storage: Mapping[str, Any] | None = None,
) -> JobResult:
    """Write the records of logs to a directory that driver and executors share; options as in kwire.maintenance.export.

    path: log directories, partitions, globs or URLs; topics: names and patterns (*, ?), all by default. target: empty,
    not there, or what an interrupted run of the same export has left, which is gone on with.
    Raises OptionError, LogError; JobFailed, with the files of all other partitions in their places.
    """
    from kwire.maintenance.convert.directory import name_of
    from kwire.maintenance.export import SUFFIXES, Range, partition_file
    from kwire.maintenance.part_journal import fingerprint

    if format not in SUFFIXES:
        raise OptionError(f"format {format!r}: {', '.join(SUFFIXES)}")
    if as_base64 and format != "jsonl":
        raise OptionError("as_base64 goes with JSON lines")
    paths = [path] if isinstance(path, str) else list(path)
    target, wanted = os.path.abspath(target), records or Range()
    journal = Journal(f"{target}/_job")
    if os.path.lexists(target) and not (
        os.path.isdir(target) and (not os.listdir(target) or os.path.isdir(journal.path))
    ):
        raise OptionError(f"{target}: not an empty directory")
    logs = choose(open_logs(paths, storage or {}), topics, partitions)
    work = ExportLog(shape=format, records=wanted, isolation=isolation, headers=headers, as_base64=as_base64)
    settings = {"job": "export", "paths": paths} | asdict(work)
    journal.begin(settings, {})
    items = [
        Item(
            name=name_of(key),
            size_bytes=log.size_bytes,
            subject=log,
            fingerprint=fingerprint(log),
            place=partition_file(target, log, format),
        )
        for key, log in logs.items()
    ]
    done = run_items(spark, "export", items, work, journal=journal, progress=progress)
    result = JobResult(
        rows=rows_of(done, COLUMNS), resumed=done.resumed, seconds=done.seconds, columns=COLUMNS, session=spark
    )
    raise_failures("export", done, result, f"all others are in {target}; the same call again does only the rest")
    journal.files.write_atomically(f"{target}/{SUCCESS}", b"")
    journal.remove()
    return result
