"""From checked options to the splits of a query. Runs on the driver, in a process of its own for each query, so it
imports neither numba nor pyarrow.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kwire.errors import LogError
from kwire.log import PartitionLog, Split, plan_splits
from kwire.log.segment import Segment
from kwire.spark.log.filters import Narrowing
from kwire.spark.log.options import Isolation, LogOptions
from kwire.spark.options.offsets import OffsetRange, check_named, offsets_per_task, resolve
from kwire.spark.options.topics import Matching, TopicPartition, nearest, select
from kwire.spark.paths import open_logs
from kwire.storage.cached_store import StoreCache
from kwire.storage.header_walk import HeaderWalk

# Small splits share a task until they come to this many bytes; to open one costs as much as reading OPEN_COST_BYTES.
TASK_BYTES = 32 << 20
OPEN_COST_BYTES = 1 << 20

logger = logging.getLogger("kwire.spark")


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What a query can see of a log: offsets [earliest, latest) under its isolation level."""

    log: PartitionLog
    isolation: Isolation
    earliest: int
    latest: int

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        """First offset with a timestamp at or after timestamp_ms, as Kafka answers it; None without one."""
        found = self.log.offset_for_time(timestamp_ms, isolation=self.isolation)
        return None if found is None else found.offset


def plan_tasks(options: LogOptions, narrowing: Narrowing) -> list[list[Split]]:
    """The splits of each task of a query. Raises OptionError, LogError."""
    logs = open_logs(options.paths, options.storage, StoreCache().open)
    chosen = choose_partitions(options, logs)
    if not chosen and isinstance(options.selection, Matching):
        if options.selection.pattern is None:
            raise LogError(f"only internal topics in {', '.join(options.paths)}; to read them, set includeInternal")
        logger.warning("no topic in %s matches subscribePattern", ", ".join(options.paths))
    check_named("starting", options.start, chosen)
    check_named("ending", options.end, chosen)
    # Offsets are resolved for all chosen partitions, also for those that filters rule out: what is refused does not
    # depend on filters.
    resolved = {key: resolve_range(key, logs[key], options) for key in chosen}
    ranges = [
        piece
        for key, found in resolved.items()
        if narrowing.wants(*key)
        for piece in narrow_range(logs[key], found, narrowing)
        if piece.size
    ]

    return tasks_of_ranges(ranges, logs, options)


def tasks_of_ranges(
    ranges: Sequence[OffsetRange], logs: Mapping[TopicPartition, PartitionLog], options: LogOptions
) -> list[list[Split]]:
    """The splits of each task that reads some of the ranges. Raises LogError."""

    def plan(limits: Sequence[int | None]) -> list[Split]:
        return [
            split
            for found, limit in zip(ranges, limits, strict=True)
            for split in plan_splits(
                logs[found.topic, found.partition],
                ranges={(found.topic, found.partition): (found.start, found.end)},
                isolation=options.isolation,
                max_records=limit,
            )
        ]

    splits = plan(offsets_per_task(ranges, None, options.max_records))
    if options.min_partitions is not None and len(splits) < options.min_partitions:
        splits = plan(offsets_per_task(ranges, options.min_partitions, options.max_records))
    if options.min_partitions is not None or options.max_records is not None:
        return [[split] for split in splits]
    return pack(splits)


def choose_partitions(options: LogOptions, logs: Collection[TopicPartition]) -> list[TopicPartition]:
    """The partitions that the options select; what they name and is not there is data loss. Raises LogError."""
    chosen, missing = select(options.selection, logs)
    topics = sorted({topic for topic, _ in logs})
    if missing:
        there = f"topics here: {', '.join(topics)[:500]}"
        what = f"{', '.join(missing)} not found in {', '.join(options.paths)}{nearest(missing[0], topics)}; {there}"
        if options.fail_on_data_loss:
            raise LogError(f"{what}; to read what is there, set the option failOnDataLoss to false")
        logger.warning("%s", what)
    return chosen


def resolve_range(key: TopicPartition, log: PartitionLog, options: LogOptions) -> OffsetRange:
    """The offsets that a query reads of one partition. Raises OptionError, LogError."""
    return resolve(
        key,
        options.start,
        options.end,
        LogBounds(log, options.isolation, *log.bounds(0, None, options.isolation)),
        no_match=options.no_match,
        fail_on_data_loss=options.fail_on_data_loss,
        report=lambda lost: logger.warning("%s", lost),
    )


def narrow_range(log: PartitionLog, found: OffsetRange, narrowing: Narrowing) -> list[OffsetRange]:
    """The parts of a range in which rows may pass the filters on offset and timestamp."""
    start = max(found.start, narrowing.first_offset)
    end = min(found.end, narrowing.last_offset + 1)
    if start >= end:
        return []
    if narrowing.first_timestamp_ms < 0:  # a record without a timestamp counts as -1 ms
        return [OffsetRange(found.topic, found.partition, start, end)]
    parts: list[OffsetRange] = []
    for segment in log.segments_between(start, end):
        high = end if segment.next_base is None else min(end, segment.next_base)
        low = _first_young_offset(segment, max(start, segment.base_offset), narrowing.first_timestamp_ms)
        if low is None or low >= high:
            continue
        if parts and parts[-1].end == low:
            low = parts.pop().start
        parts.append(OffsetRange(found.topic, found.partition, low, high))
    return parts


def _first_young_offset(segment: Segment, start: int, timestamp_ms: int) -> int | None:
    """An offset at or above start with nothing younger than timestamp_ms before it; None where nothing is that young.

    Looks at batch headers from where the time index points to, so what the index does not cover counts too. (The log's
    offset_for_time would not do: as Kafka's, it can answer nothing though a later segment has such a record.)
    """
    with segment.open() as file:
        walk = HeaderWalk(file, segment.time_start(file, timestamp_ms, start))
        low = start
        for header in walk:
            if header.max_timestamp >= timestamp_ms and header.last_offset >= start:
                # Of magic 0 and 1 only the last offset of a batch is known.
                return max(low, header.stored_offset) if header.magic == 2 else low
            low = max(low, header.last_offset + 1)
        # Behind damage there may be anything, and the reader must meet it.
        is_cut = walk.position < file.size() and not segment.is_active
        return start if walk.damage or is_cut else None


def pack(splits: Sequence[Split]) -> list[list[Split]]:
    """Let neighbouring small splits share a task: a task costs milliseconds, a directory can have thousands."""
    tasks: list[list[Split]] = []
    room = 0
    for split in splits:
        cost = split.size_bytes + OPEN_COST_BYTES
        if tasks and cost <= room:
            tasks[-1].append(split)
            room -= cost
        else:
            tasks.append([split])
            room = TASK_BYTES - cost
    return tasks
