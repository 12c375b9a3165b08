"""Plan the tasks of a batch query and of a micro-batch: from options and offsets to the splits of each task.

A batch query is divided by bytes, unless minPartitions or maxRecordsPerPartition is set; a micro-batch, which can be
planned again after its files have changed, by offsets only. Runs on the driver, in a new process for each query, so it
imports neither numba nor pyarrow.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kwire.errors import LogError, did_you_mean
from kwire.identifiers import TopicPartition
from kwire.log import PartitionLog
from kwire.log.paths import available_topics, open_logs
from kwire.log.splits import plan_range
from kwire.spark.log.filters import PushedFilters, narrow_ranges
from kwire.spark.log.options import Isolation, LogOptions
from kwire.spark.log.reading import LogPartition
from kwire.spark.offsets import DELETED, OffsetRange, cut_ranges, group_small, report_data_loss, resolve_ranges
from kwire.spark.options.query import Matching, select
from kwire.spark.streaming.position import Offsets, TopicIds
from kwire.storage.cached_store import StoreCache

__all__ = ["OPEN_COST_BYTES", "TASK_BYTES", "LogBounds", "LogOffsetSource", "plan_batch", "plan_micro_batch"]

logger = logging.getLogger("kwire.spark")

# Small splits share a task up to TASK_BYTES; opening one costs as much as reading OPEN_COST_BYTES.
TASK_BYTES = 32 << 20
OPEN_COST_BYTES = 1 << 20
# Maximum offsets, and maximum ranges, in a task of a micro-batch; short ranges share a task.
TASK_OFFSETS = 100_000
TASK_RANGES = 32

Logs = Mapping[TopicPartition, PartitionLog]


def plan_batch(options: LogOptions, filters: PushedFilters | None = None) -> list[LogPartition]:
    """Plan the tasks of a batch query. filters: those that Spark pushed. Raises OptionError, LogError."""
    source, most = LogOffsetSource(options), 1 if _is_cut(options) else None
    # Offsets are resolved for all selected partitions, so that errors do not depend on filters.
    ranges = resolve_ranges(source.bounds(), options)
    if filters is not None:
        ranges = narrow_ranges(ranges, source.logs, filters)
    splits = [
        split
        for part in cut_ranges(ranges, options.min_partitions, options.max_records)
        for split in plan_range(source.logs[part.topic, part.partition], part.start, part.end, options.isolation)
    ]
    tasks = group_small(splits, lambda split: split.size_bytes + OPEN_COST_BYTES, TASK_BYTES, most=most)
    return [LogPartition(task) for task in tasks]


def plan_micro_batch(
    ranges: Sequence[OffsetRange], logs: Logs, options: LogOptions, topic_ids: TopicIds
) -> list[LogPartition]:
    """Plan the tasks of a micro-batch, which depend on offsets and options only.

    Files change: segments are compacted and joined, indexes are rebuilt after a crash. A sink that was killed during a
    micro-batch must get the same rows in the same tasks again; a task whose records are gone is planned too.
    topic_ids: checked again by each task. Raises LogError.
    """
    most, max_records = (1, options.max_records) if _is_cut(options) else (TASK_RANGES, TASK_OFFSETS)
    parts = cut_ranges(ranges, options.min_partitions, max_records)
    return [
        LogPartition(
            [
                split
                for part in task
                for split in plan_range(logs[part.topic, part.partition], part.start, part.end, options.isolation)
            ],
            topic_ids,
        )
        for task in group_small(parts, lambda part: part.size, TASK_OFFSETS, most=most)
    ]


def _is_cut(options: LogOptions) -> bool:
    """Return whether options divide the query, one range per task."""
    return options.min_partitions is not None or options.max_records is not None


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Offsets [earliest, latest) of a log that a query can read under its isolation level."""

    log: PartitionLog
    isolation: Isolation
    earliest: int
    latest: int

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        """Return the first offset with a timestamp at or after timestamp_ms, as Kafka's ListOffsets does, or None."""
        found = self.log.offset_for_time(timestamp_ms, isolation=self.isolation)
        return None if found is None else found.offset


class LogOffsetSource:
    """Log directories, as of the last listing. is_stream: a directory without topics is valid."""

    def __init__(self, options: LogOptions, *, is_stream: bool = False) -> None:
        self.options, self.is_stream = options, is_stream
        self._stores = StoreCache()
        self.logs: dict[TopicPartition, PartitionLog] = {}

    def _list(self) -> None:
        self._stores.refresh()
        self.logs = open_logs(self.options.paths, self.options.storage, self._stores.open, is_stream=self.is_stream)

    def partitions(self) -> list[TopicPartition]:
        """List the directories and select partitions. Raises LogError for missing topics and partitions (data loss)."""
        self._list()
        selection, paths = self.options.selection, ", ".join(self.options.paths)
        selected, missing = select(selection, self.logs)
        if missing:
            hint = did_you_mean(missing[0], sorted({topic for topic, _ in self.logs}))
            lost = f"{', '.join(missing)} not found in {paths}{hint}; {available_topics(self.logs)}"
            report_data_loss(lost, "read the available data", fail=self.options.fail_on_data_loss)
        elif not selected and self.is_stream:
            logger.warning("no topic of this query in %s yet", paths)
        elif not selected and isinstance(selection, Matching):
            if selection.pattern is None:
                raise LogError(f"only internal topics in {paths}; to read them, set includeInternal to true")
            logger.warning("no topic in %s matches subscribePattern", paths)
        return selected

    def bounds(self) -> dict[TopicPartition, LogBounds]:
        """Return the available offsets of the query's partitions. Raises the errors of partitions."""
        keys, isolation = self.partitions(), self.options.isolation
        return {key: LogBounds(self.logs[key], isolation, *self.logs[key].bounds(0, None, isolation)) for key in keys}

    def earliest(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first available offsets, from a new listing."""
        self._list()
        return {key: self.logs[key].log_start_offset if key in self.logs else DELETED for key in keys}

    def latest(self, keys: Iterable[TopicPartition]) -> Offsets:
        """Return the log end offsets of listed partitions; with read_committed, last stable offsets."""
        return {key: self.logs[key].bounds(0, None, self.options.isolation)[1] for key in keys}

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Return the ids in the first partition of each topic; an unreadable `partition.metadata` counts as missing."""
        wanted, found, firsts = set(topics), TopicIds(), dict[str, PartitionLog]()
        for (topic, _), log in sorted(self.logs.items()):
            if topic in wanted:
                firsts.setdefault(topic, log)
        for topic, log in firsts.items():
            try:
                topic_id = log.topic_id
            except LogError as error:
                logger.warning("%s; deletion and recreation of topic '%s' will not be detected", error, topic)
                continue
            if topic_id is not None:
                found[topic] = topic_id
        return found

    def close(self) -> None:
        """Do nothing: no files stay open."""
