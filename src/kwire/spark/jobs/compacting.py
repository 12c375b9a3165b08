"""compact: a compacted copy of a log directory, one task a partition.

Each task copies its partition into a directory of its own with the source's checkpoints, compacts it there as
`kwire log compact` does, which opens it as a broker does (a crash is recovered first), and gives it its place.
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
from kwire.spark.jobs.choice import choose
from kwire.spark.jobs.journal import Row, put_in_place
from kwire.spark.jobs.new_directory import NewDirectory
from kwire.spark.jobs.result import JobResult, rows_of
from kwire.spark.jobs.runner import Item, ToldProgress, logger, raise_failures, run_items

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
class CompactLog:
    """The work on one partition; subject: (topic, partition)."""

    source: str
    settings: Mapping[str, str]
    now_ms: int

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.log.cleaner_checkpoints import CleanerCheckpoints
        from kwire.maintenance import compaction as offline
        from kwire.storage.file_system import FileSystem

        key, files, directory = tuple(item.subject), FileSystem(), f"{attempt}/logs"

        def chosen(topic: str, partition: int) -> bool:
            return (topic, partition) == key

        offline.copy_logs(self.source, directory, chosen, metadata=False)
        settings = offline.OfflineSettings.parse(self.settings)
        [done] = offline.compact(directory, chosen, settings, self.now_ms)
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
        assert item.place is not None
        put_in_place(files, f"{directory}/{item.name}", item.place)
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
    progress: ToldProgress | None = None,
) -> JobResult:
    """Write a compacted copy of partitions of a local log directory that no broker has open.

    topics: names and patterns, ["*"] for all; topics that are not meant to be compacted lose records. settings: by
    Kafka's names, such as delete.retention.ms. now_ms: the present, by which tombstones fall due. target: a directory
    that driver and executors share; the directory's own files and the metadata log come too. A partition with a damaged
    batch is copied as it is, and its row says so in `problem`.
    Raises OptionError, LogError; JobFailed, when all other partitions are done and kept for the next call.
    """
    from kwire.maintenance.compaction import OfflineSettings
    from kwire.maintenance.convert.directory import convertible, copy_rest, name_of
    from kwire.maintenance.part_journal import fingerprint

    if not topics:
        raise OptionError("which topics? Those with cleanup.policy=delete would lose records")
    given = dict(settings or {})
    OfflineSettings.parse(given)  # refuses what is wrong here
    if not os.path.isdir(path):
        raise OptionError(f"{path}: a local log directory is needed")
    source = LogDirectory(path)
    chosen = choose(source, topics, partitions)
    if not next(iter(chosen.values())).directory:
        raise OptionError(f"{path}: a partition's own directory; give the log directory")
    keys = convertible(source, chosen)
    new = NewDirectory(target)
    present = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    facts = new.begin({"job": "compact", "source": source.url, "settings": given}, keys, {"now_ms": present})
    work = CompactLog(source=source.url, settings=given, now_ms=facts["now_ms"])
    items = [
        Item(
            name=name_of(key),
            size_bytes=source[key].size_bytes,
            subject=key,
            fingerprint=fingerprint(source[key]),
            place=new.place(key),
        )
        for key in keys
    ]
    done = run_items(spark, "compact", items, work, journal=new.journal, progress=progress)
    result = JobResult(
        rows=rows_of(done, COLUMNS), resumed=done.resumed, seconds=done.seconds, columns=COLUMNS, session=spark
    )
    raise_failures("compact", done, result, f"the others are in {new.part}; the same call again does only the rest")
    for row in done.rows:
        if row["problem"] is not None:
            logger.warning("%s-%s is copied as it is: %s", row["topic"], row["partition"], row["problem"])
    cleaned = {
        (row["topic"], row["partition"]): row["clean_offset"] for row in done.rows if row["clean_offset"] is not None
    }
    new.publish(done, cleaned, lambda part: copy_rest(source, part, new.journal.files))
    return result
