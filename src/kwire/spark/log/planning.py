"""Plan the tasks of a batch query and of a micro-batch: from options and offsets to the splits of each task.

A batch query is divided by bytes, unless minPartitions or maxRecordsPerPartition is set; a micro-batch, which can be
planned again after its files have changed, by offsets only. Runs on the driver, in a new process for each query, so it
imports neither numba nor pyarrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kwire.identifiers import TopicPartition
from kwire.log import PartitionLog, Split, plan_splits
from kwire.log.segment import Segment
from kwire.spark.log.filters import PushedFilters
from kwire.spark.log.offset_source import LogOffsetSource
from kwire.spark.log.options import LogOptions
from kwire.spark.log.reading import LogPartition
from kwire.spark.offset_ranges import OffsetRange, cut_ranges, resolve_ranges
from kwire.spark.streaming.position import TopicIds
from kwire.storage.header_walk import HeaderWalk

__all__ = ["OPEN_COST_BYTES", "TASK_BYTES", "plan_batch", "plan_micro_batch"]

# Small splits share a task up to TASK_BYTES; opening one costs as much as reading OPEN_COST_BYTES.
TASK_BYTES = 32 << 20
OPEN_COST_BYTES = 1 << 20
# Maximum offsets, and maximum ranges, in a task of a micro-batch; short ranges share a task.
TASK_OFFSETS = 100_000
TASK_RANGES = 32

Logs = Mapping[TopicPartition, PartitionLog]


def plan_batch(options: LogOptions, filters: PushedFilters) -> list[LogPartition]:
    """Plan the tasks of a batch query. Raises OptionError, LogError."""
    source = LogOffsetSource(options)
    # Offsets are resolved for all selected partitions, so that errors do not depend on filters.
    ranges = resolve_ranges(source.bounds(source.partitions()), options)
    narrowed = [
        part
        for found in ranges
        if filters.may_match(found.topic, found.partition)
        for part in _narrow(source.logs[found.topic, found.partition], found, filters)
    ]
    parts = cut_ranges(narrowed, options.min_partitions, options.max_records)
    splits = _splits(parts, source.logs, options)
    return [LogPartition(each) for each in ([[split] for split in splits] if _is_cut(options) else _pack(splits))]


def plan_micro_batch(
    ranges: Sequence[OffsetRange], logs: Logs, options: LogOptions, topic_ids: TopicIds
) -> list[LogPartition]:
    """Plan the tasks of a micro-batch, which depend on offsets and options only.

    Files change: segments are compacted and joined, indexes are rebuilt after a crash. A sink that was killed during a
    micro-batch must get the same rows in the same tasks again; a task whose records are gone is planned too.
    topic_ids: checked again by each task. Raises LogError.
    """
    is_cut = _is_cut(options)
    parts = cut_ranges(ranges, options.min_partitions, options.max_records if is_cut else TASK_OFFSETS)
    tasks: list[list[OffsetRange]] = []
    remaining = 0
    for part in parts:
        if tasks and not is_cut and part.size <= remaining and len(tasks[-1]) < TASK_RANGES:
            tasks[-1].append(part)
            remaining -= part.size
        else:
            tasks.append([part])
            remaining = TASK_OFFSETS - part.size
    return [LogPartition(_splits(task, logs, options), topic_ids) for task in tasks]


def _is_cut(options: LogOptions) -> bool:
    return options.min_partitions is not None or options.max_records is not None


def _splits(ranges: Sequence[OffsetRange], logs: Logs, options: LogOptions) -> list[Split]:
    return [
        split
        for key, start, end in (((each.topic, each.partition), each.start, each.end) for each in ranges)
        for split in plan_splits(logs[key], ranges={key: (start, end)}, isolation=options.isolation)
    ]


def _narrow(log: PartitionLog, found: OffsetRange, filters: PushedFilters) -> list[OffsetRange]:
    """The parts of a range in which rows can pass the filters on offset and timestamp."""
    start = max(found.start, filters.first_offset)
    end = min(found.end, filters.last_offset + 1)
    if start >= end:
        return []
    if filters.first_timestamp_ms < 0:  # a record without a timestamp counts as -1 ms
        return [OffsetRange(found.topic, found.partition, start, end)]
    parts: list[OffsetRange] = []
    for segment in log.segments_between(start, end):
        high = end if segment.next_base is None else min(end, segment.next_base)
        low = _first_recent_offset(segment, max(start, segment.base_offset), filters.first_timestamp_ms)
        if low is None or low >= high:
            continue
        if parts and parts[-1].end == low:
            low = parts.pop().start
        parts.append(OffsetRange(found.topic, found.partition, low, high))
    return parts


def _first_recent_offset(segment: Segment, start: int, timestamp_ms: int) -> int | None:
    """An offset from `start` on before which no record has timestamp_ms or later; None if no record of the segment has.

    Reads batch headers from the position in the time index, so records that the index does not cover count too. (The
    log's offset_for_time is Kafka's, which can return nothing although a later segment has such a record.)
    """
    with segment.open() as file:
        walk = HeaderWalk(file, segment.time_start(file, timestamp_ms, start))
        low = start
        for header in walk:
            if header.max_timestamp >= timestamp_ms and header.last_offset >= start:
                # The header of magic 0 and 1 has the last offset only.
                return max(low, header.stored_offset) if header.magic == 2 else low
            low = max(low, header.last_offset + 1)
        # Damaged bytes must reach the reader, which reports them.
        is_cut = walk.position < file.size() and not segment.is_active
        return start if walk.damage or is_cut else None


def _pack(splits: Sequence[Split]) -> list[list[Split]]:
    """Combine small neighbouring splits: a task costs milliseconds, and a directory can have thousands of splits."""
    tasks: list[list[Split]] = []
    remaining = 0
    for split in splits:
        cost = split.size_bytes + OPEN_COST_BYTES
        if tasks and cost <= remaining:
            tasks[-1].append(split)
            remaining -= cost
        else:
            tasks.append([split])
            remaining = TASK_BYTES - cost
    return tasks
