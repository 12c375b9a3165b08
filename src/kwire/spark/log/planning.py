"""Plan the tasks of a batch query and of a micro-batch: from options and offsets to the splits of each task.

A batch query is divided by bytes, unless minPartitions or maxRecordsPerPartition is set; a micro-batch, which can be
planned again after its files have changed, by offsets only. Runs on the driver, in a new process for each query, so it
does not import pyarrow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kwire.errors import LogError, did_you_mean
from kwire.identifiers import TopicPartition
from kwire.log import PartitionLog
from kwire.log.reading.paths import available_topics, open_logs
from kwire.log.reading.splits import SplitRun, divide_run, plan_run, plan_whole
from kwire.spark.log.options import Isolation, LogOptions
from kwire.spark.log.reading import LogPartition
from kwire.spark.offsets import (
    DELETED,
    EARLIEST,
    LATEST,
    GlobalOffset,
    OffsetRange,
    cut_ranges,
    report_data_loss,
    resolve_ranges,
)
from kwire.spark.options.query import Matching, select
from kwire.spark.packing import RECORD_BYTES, SMALLEST_TASK_BYTES
from kwire.spark.streaming.position import Offsets, TopicIds
from kwire.storage.cached_store import CachedStore, StoreCache

__all__ = ["LogBounds", "LogOffsetSource", "plan_batch", "plan_micro_batch"]

logger = logging.getLogger("kwire.spark")

MOST_DIVIDED_SEGMENTS = 10_000
"""Segments of a query above which none is divided: finding a place to divide one takes several requests to a store."""

T = TypeVar("T")
Logs = Mapping[TopicPartition, PartitionLog]


def plan_batch(options: LogOptions) -> list[LogPartition]:
    """Plan the tasks of a batch query. Raises OptionError, LogError."""
    source, sizes = LogOffsetSource(options), options.task_sizes
    if options.is_cut or not _is_everything(options):
        ranges = resolve_ranges(source.bounds(), options)
        parts = cut_ranges(ranges, options.min_partitions, options.max_records)
        logs = [source.logs[part.topic, part.partition] for part in parts]
        n_bytes = sum(log.size_bytes for log in set(logs))
        limit = sizes.task_bytes(n_bytes, len(parts), SMALLEST_TASK_BYTES)
        runs = [
            plan_run(log, part.start, part.end, options.isolation, limit) for log, part in zip(logs, parts, strict=True)
        ]
    else:
        logs = [source.logs[key] for key in source.partitions()]
        runs = [plan_whole(log.reopened()) for log in logs]  # the listings are not kept: 40 names for 10 segments
        cuts = sum(len(run.cuts) for run in runs)
        limit = sizes.task_bytes(sum(run.size_bytes for run in runs), cuts, SMALLEST_TASK_BYTES)
        if cuts <= MOST_DIVIDED_SEGMENTS or sizes.is_set:
            runs = [divide_run(log, run, limit) for log, run in zip(logs, runs, strict=True)]
    is_packed = sizes.is_set or not options.is_cut
    return [LogPartition(task) for task in _pack(runs, limit if is_packed else 0, sizes.open_cost)]


def _is_everything(options: LogOptions) -> bool:
    """Return whether a query reads whole partitions, so that no file has to be opened for the end of its log."""
    return (
        options.start in (None, GlobalOffset(EARLIEST))
        and options.end in (None, GlobalOffset(LATEST))
        and options.isolation == "read_uncommitted"
    )


def _pack(runs: Iterable[SplitRun], limit: int, open_cost: int) -> list[list[SplitRun]]:
    """Group splits into tasks of at most `limit` bytes, in their order; a larger one is a task of its own."""
    tasks: list[list[SplitRun]] = []
    remaining = 0
    for run in runs:
        first = 0  # of the cuts that belong to the current task
        for i, cut in enumerate(run.cuts):
            used = cut.stop_position - cut.start_position + open_cost
            if tasks and used <= remaining:
                remaining -= used
                continue
            if first < i:
                tasks[-1].append(run.part(run.cuts[first:i]))
            tasks.append([])
            first, remaining = i, limit - used
        if run.cuts:
            tasks[-1].append(run.part(run.cuts[first:]) if first else run)
    return tasks


def plan_micro_batch(
    ranges: Sequence[OffsetRange], logs: Logs, options: LogOptions, topic_ids: TopicIds
) -> list[LogPartition]:
    """Plan the tasks of a micro-batch, which depend on offsets and options only.

    Files change: segments are compacted and joined, indexes are rebuilt after a crash. A sink that was killed during a
    micro-batch must get the same rows in the same tasks again; a task whose records are gone is planned too.
    topic_ids: checked again by each task. Raises LogError.
    """
    sizes = options.task_sizes
    parts = cut_ranges(ranges, options.min_partitions, options.max_records)
    if not options.is_cut:
        n_bytes = sum(part.size for part in parts) * RECORD_BYTES
        limit = sizes.task_bytes(n_bytes, len(parts), SMALLEST_TASK_BYTES)
        parts = cut_ranges(parts, None, max(1, limit // RECORD_BYTES))
    is_packed = sizes.is_set or not options.is_cut
    tasks = sizes.pack_offsets(parts, SMALLEST_TASK_BYTES) if is_packed else [[part] for part in parts]
    return [
        LogPartition(
            [plan_run(logs[part.topic, part.partition], part.start, part.end, options.isolation) for part in task],
            topic_ids,
        )
        for task in tasks
    ]


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Offsets [earliest, latest) of a log that a query can read under its isolation level."""

    log: PartitionLog
    isolation: Isolation
    earliest: int
    latest: int

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        """Return the first offset with a timestamp at or after timestamp_ms, as Kafka's ListOffsets does, or None."""
        record = self.log.offset_for_time(timestamp_ms, isolation=self.isolation)
        return None if record is None else record.offset


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
        by_store: dict[int, tuple[CachedStore, list[str]]] = {}
        for log in (self.logs[key] for key in selected):
            if isinstance(log.store, CachedStore):
                by_store.setdefault(id(log.store), (log.store, []))[1].append(log.directory)
        for store, directories in by_store.values():
            store.list_soon(directories)
        return selected

    def bounds(self) -> dict[TopicPartition, LogBounds]:
        """Return the available offsets of the query's partitions. Raises the errors of partitions."""
        keys, isolation = self.partitions(), self.options.isolation
        limits = self._of_each(keys, lambda log: log.bounds(0, None, isolation))
        return {key: LogBounds(self.logs[key], isolation, *bounds) for key, bounds in limits.items()}

    def _of_each(self, keys: Iterable[TopicPartition], ask: Callable[[PartitionLog], T]) -> dict[TopicPartition, T]:
        """Return what a function that reads files returns for each log, asked in parallel where requests are slow."""
        logs = [(key, self.logs[key]) for key in keys]
        store = logs[0][1].store if logs else None
        if isinstance(store, CachedStore):
            return dict(zip((key for key, _ in logs), store.map(ask, [log for _, log in logs]), strict=True))
        return {key: ask(log) for key, log in logs}

    def earliest(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first available offsets, from a new listing."""
        self._list()
        return {key: self.logs[key].log_start_offset if key in self.logs else DELETED for key in keys}

    def latest(self, keys: Iterable[TopicPartition]) -> Offsets:
        """Return the log end offsets of listed partitions; with read_committed, last stable offsets."""
        isolation = self.options.isolation
        return self._of_each(keys, lambda log: log.bounds(0, None, isolation)[1])

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Return the ids in the first partition of each topic; an unreadable `partition.metadata` counts as missing."""
        wanted, ids, firsts = set(topics), TopicIds(), dict[str, PartitionLog]()
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
                ids[topic] = topic_id
        return ids

    def close(self) -> None:
        """Do nothing: no files stay open."""
