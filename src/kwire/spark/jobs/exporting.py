"""export: the records of logs as Parquet, Arrow IPC or JSON lines, one file per partition.

    TARGET/orders/partition=0/records.parquet       as `kwire log export` names it
    TARGET/_job/                                    the journal, until the job is complete
    TARGET/_SUCCESS                                 written when every partition is complete

Tasks write the files, so rows do not pass through Spark's JVM.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from kwire.errors import OptionError
from kwire.log.reading.paths import StorageOptions, open_logs
from kwire.spark.jobs.choice import as_list, select_logs
from kwire.spark.jobs.journal import Journal, Row, publish
from kwire.spark.jobs.result import JobResult, result_of
from kwire.spark.jobs.runner import Item, ProgressCallback, run_items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kwire.maintenance.export import ExportOptions, Format, Range

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
class ExportPartition:
    """Exports one partition; subject: its log."""

    options: ExportOptions

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.maintenance.export import export_logs
        from kwire.storage.file_system import FileSystem

        files = FileSystem()
        assert item.output is not None
        [exported] = export_logs([item.subject], f"{attempt}/out", self.options)
        files.make_directory(os.path.dirname(item.output))
        publish(files, exported.path, item.output)
        return {
            "topic": exported.topic,
            "partition": exported.partition,
            "records": exported.records,
            "start_offset": exported.start_offset,
            "end_offset": exported.end_offset,
            "size_bytes": files.size(item.output),
            "path": item.output,
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
    progress: ProgressCallback | None = None,
    storage: StorageOptions | None = None,
) -> JobResult:
    """Write the records of logs to a directory that driver and executors share.

    path: log directories, partitions, globs or URLs. topics: names and patterns (*, ?), all by default. target: must be
    missing, empty, or the output of an interrupted export with the same arguments, which continues. Other arguments:
    see kwire.maintenance.export.
    Raises OptionError, LogError; JobFailed when the files of all other partitions are complete.
    """
    from kwire.maintenance.export import SUFFIXES, ExportOptions, Range, partition_file
    from kwire.maintenance.new_directory import name_of

    if format not in SUFFIXES:
        raise OptionError(f"format: expected one of {', '.join(SUFFIXES)}, got {format!r}")
    if as_base64 and format != "jsonl":
        raise OptionError(f"as_base64: requires format 'jsonl', got {format!r}")
    paths = as_list(path)
    target = os.path.abspath(target)
    journal = Journal(f"{target}/_job")
    if os.path.lexists(target) and not (
        os.path.isdir(target) and (not os.listdir(target) or os.path.isdir(journal.path))
    ):
        raise OptionError(f"{target}: not an empty directory; choose another target")
    logs = select_logs(open_logs(paths, storage or {}), topics, partitions)
    options = ExportOptions(
        format=format, records=records or Range(), isolation=isolation, headers=headers, as_base64=as_base64
    )
    work = ExportPartition(options=options)
    journal.begin({"job": "export", "paths": paths} | asdict(options), {})
    items = [
        Item(
            name=name_of(key),
            size_bytes=log.size_bytes,
            subject=log,
            fingerprint=log.fingerprint(),
            output=partition_file(target, log, format),
        )
        for key, log in logs.items()
    ]
    run = run_items(spark, "export", items, work, journal=journal, progress=progress)
    hint = f"completed files are in {target}; run the job again to process the failed partitions"
    result = result_of(spark, "export", run, COLUMNS, hint)
    journal.files.write_atomically(f"{target}/{SUCCESS}", b"")
    journal.remove()
    return result
