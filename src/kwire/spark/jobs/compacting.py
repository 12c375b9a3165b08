"""compact: a compacted copy of a log directory, one task per partition.

Each task copies its partition and the source's checkpoints to a separate directory, and compacts it there as
`kwire log compact` does: the log is opened as a broker opens it, with recovery after a crash.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.log import LogDirectory
from kwire.spark.jobs.choice import select_logs
from kwire.spark.jobs.journal import Row, publish
from kwire.spark.jobs.new_directory import NewDirectory
from kwire.spark.jobs.result import JobResult, result_of
from kwire.spark.jobs.runner import Item, ProgressCallback, logger, run_items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["compact"]

COLUMNS = {
    "topic": "string",
    "partition": "int",
    "first_dirty_offset": "bigint",
    "end_offset": "bigint",
    "clean_offset": "bigint",
    "log_start_offset": "bigint",
    "log_end_offset": "bigint",
    "passes": "int",
    "records_read": "bigint",
    "records_written": "bigint",
    "bytes_read": "bigint",
    "bytes_written": "bigint",
    "tombstones_dropped": "bigint",
    "keyless_records": "bigint",
    "batches_emptied": "bigint",
    "segments_read": "int",
    "segments_written": "int",
    "problem": "string",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactPartition:
    """Compacts one partition; subject: (topic, partition)."""

    source: str
    settings: Mapping[str, str]
    now_ms: int

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.log.files.cleaner_checkpoints import CleanerCheckpoints
        from kwire.maintenance import compaction as offline
        from kwire.storage.file_system import FileSystem

        key, files, directory = tuple(item.subject), FileSystem(), f"{attempt}/logs"

        def is_selected(topic: str, partition: int) -> bool:
            return (topic, partition) == key

        offline.copy_logs(self.source, directory, is_selected, metadata=False)
        settings = offline.OfflineSettings.parse(self.settings)
        [done] = offline.compact(directory, is_selected, settings, self.now_ms)
        log = LogDirectory(directory)[done.topic, done.partition]
        row = dataclasses.asdict(done.stats) | {
            "topic": done.topic,
            "partition": done.partition,
            "first_dirty_offset": done.plan.first_dirty_offset,
            "end_offset": done.plan.end_offset,
            "clean_offset": CleanerCheckpoints(files, directory).get((done.topic, done.partition)),
            "log_start_offset": log.log_start_offset,
            "log_end_offset": log.log_end_offset,
            "problem": None if done.problem is None else str(done.problem),
        }
        assert item.output is not None
        publish(files, f"{directory}/{item.name}", item.output)
        return row


def compact(
    spark: SparkSession,
    path: str,
    target: str,
    *,
    topics: Sequence[str],
    partitions: Sequence[int] = (),
    settings: Mapping[str, str] | None = None,
    now_ms: int | None = None,
    progress: ProgressCallback | None = None,
) -> JobResult:
    """Write a compacted copy of partitions of a local log directory that is not open in a broker.

    topics: names and patterns, ["*"] for all; topics with cleanup.policy=delete lose records. settings: configurations
    by Kafka's names, such as delete.retention.ms. now_ms: the current time, for the retention of tombstones. target: a
    directory that driver and executors share; the directory's own files and the metadata log are copied too. A
    partition with a damaged batch is copied unchanged, and `problem` in its row names the damage.
    Raises OptionError, LogError; JobFailed when all other partitions are complete, which the next call keeps.
    """
    from kwire.maintenance.compaction import OfflineSettings
    from kwire.maintenance.convert.directory import convertible, copy_metadata

    if not topics:
        raise OptionError("topics: none given; specify them, since topics with cleanup.policy=delete lose records")
    given = dict(settings or {})
    OfflineSettings.parse(given)  # raises on the driver rather than in each task
    if not os.path.isdir(path):
        raise OptionError(f"{path}: not a directory; compact requires a local log directory")
    source = LogDirectory(path)
    selected = select_logs(source, topics, partitions)
    if not next(iter(selected.values())).directory:
        raise OptionError(f"{path}: the directory of a partition; specify the log directory")
    keys = convertible(source, selected)
    new = NewDirectory(target)
    present = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    stored = new.begin({"job": "compact", "source": source.url, "settings": given}, keys, {"now_ms": present})
    work = CompactPartition(source=source.url, settings=given, now_ms=stored["now_ms"])
    items = [
        new.item(key, size_bytes=source[key].size_bytes, subject=key, fingerprint=source[key].fingerprint())
        for key in keys
    ]
    run = run_items(spark, "compact", items, work, journal=new.journal, progress=progress)
    result = result_of(spark, "compact", run, COLUMNS, new.hint)
    for row in run.rows:
        if row["problem"] is not None:
            logger.warning("%s-%s is copied unchanged: %s", row["topic"], row["partition"], row["problem"])
    cleaned = {
        (row["topic"], row["partition"]): row["clean_offset"] for row in run.rows if row["clean_offset"] is not None
    }
    new.publish(run, cleaned, lambda part: copy_metadata(source, part, new.journal.files))
    return result
