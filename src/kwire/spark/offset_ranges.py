"""Ranges of offsets: resolved from a query's options, and divided among tasks. Standard library only.

Both are functions of the options and of the offsets that the log or the cluster reports.
Source: Spark's KafkaOffsetReaderAdmin, KafkaOffsetRangeCalculator.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from kwire.errors import LogError, OptionError
from kwire.identifiers import TopicPartition
from kwire.spark.options.offsets import (
    EARLIEST,
    LATEST,
    Edge,
    GlobalOffset,
    GlobalTimestamp,
    NoMatch,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimestamps,
    render_partitions,
)
from kwire.spark.options.query import QueryOptions

__all__ = ["Bounds", "OffsetRange", "cut_ranges", "resolve_range", "resolve_ranges"]

logger = logging.getLogger("kwire.spark")


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of offsets; there can be fewer records (compaction, transaction markers)."""
        return self.end - self.start


class Bounds(Protocol):
    """The offsets of a partition that a query can read under its isolation level."""

    @property
    def earliest(self) -> int:
        """First available offset."""

    @property
    def latest(self) -> int:
        """Last available offset + 1."""

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        """First offset below `latest` with a timestamp at or after timestamp_ms, or None."""


def resolve_ranges(bounds: Mapping[TopicPartition, Bounds], options: QueryOptions) -> list[OffsetRange]:
    """Resolve the starting and ending options to offsets, partition by partition.

    Raises OptionError, also unless JSON objects for the options name exactly these partitions; LogError for offsets
    that are out of range.
    """
    _check_partitions("starting", options.start, bounds)
    _check_partitions("ending", options.end, bounds)
    return [resolve_range(key, each, options) for key, each in bounds.items()]


def _check_partitions(edge: Edge, limit: OffsetLimit, assigned: Collection[TopicPartition]) -> None:
    match limit:
        case SpecificOffsets(named):
            what = (
                f"If {edge}Offsets contains specific offsets, you must specify all TopicPartitions. Use -1 for latest, "
            )
            what += "-2 for earliest."
        case SpecificTimestamps(named):
            what = f"If {edge}OffsetsByTimestamp contains specific timestamps, you must specify all TopicPartitions."
        case _:
            return
    if named.keys() != set(assigned):
        raise OptionError(f"{what} Specified: {render_partitions(named)} Assigned: {render_partitions(assigned)}")


def resolve_range(key: TopicPartition, bounds: Bounds, options: QueryOptions) -> OffsetRange:
    """Resolve the offsets [start, end) to read from one partition.

    Offsets outside [bounds.earliest, bounds.latest] are data loss: LogError, or with failOnDataLoss false a warning and
    the nearest available offset. Raises OptionError for a start after its end.
    """
    topic, partition = key
    first = _resolve_limit("starting", key, options.start, bounds, options.no_match)
    last = _resolve_limit("ending", key, options.end, bounds, options.no_match)
    for edge, offset in (("start", first), ("end", last)):
        if not bounds.earliest <= offset <= bounds.latest:
            lost = (
                f"{edge} offset {offset} of {topic}-{partition} is out of range: "
                f"the log holds offsets [{bounds.earliest}, {bounds.latest})"
            )
            if options.fail_on_data_loss:
                raise LogError(f"{lost}; to read the available offsets, set failOnDataLoss to false")
            logger.warning("%s; reading the available offsets", lost)
    first = min(max(first, bounds.earliest), bounds.latest)
    last = min(max(last, bounds.earliest), bounds.latest)
    if first > last:
        raise OptionError(
            f"The resolved start offset {first} is greater than the resolved end offset {last} "
            f"for topic {topic} partition {partition}"
        )
    return OffsetRange(topic, partition, first, last)


def _resolve_limit(edge: Edge, key: TopicPartition, limit: OffsetLimit, bounds: Bounds, no_match: NoMatch) -> int:
    match limit:
        case GlobalOffset(offset):
            pass
        case SpecificOffsets(offsets):
            offset = offsets[key]
        case GlobalTimestamp(timestamp_ms):
            offset = _offset_for_time(edge, key, timestamp_ms, bounds, no_match)
        case SpecificTimestamps(timestamps):
            offset = _offset_for_time(edge, key, timestamps[key], bounds, no_match)
    return bounds.earliest if offset == EARLIEST else bounds.latest if offset == LATEST else offset


def _offset_for_time(edge: Edge, key: TopicPartition, timestamp_ms: int, bounds: Bounds, no_match: NoMatch) -> int:
    found = bounds.offset_for_time(timestamp_ms)
    if found is not None:
        return found
    if edge == "starting" and no_match == "error":
        raise OptionError(
            f"No offset matched from request of topic-partition {key[0]}-{key[1]} and timestamp {timestamp_ms}; "
            "to start such partitions at their end, set startingOffsetsByTimestampStrategy to latest"
        )
    return LATEST


def cut_ranges(ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """Divide ranges into one part per task, at the same offsets as Spark's Kafka source.

    max_records: maximum offsets in a part. min_partitions: approximate minimum number of parts; ranges that are too
    short to be divided leave their share to longer ones. Empty ranges are dropped. Depends on offsets and options only.
    Source: KafkaOffsetRangeCalculator.getRanges.
    """
    parts = [found for found in ranges if found.size]
    if max_records is not None:
        parts = [part for found in parts for part in _cut_evenly(found, -(-found.size // max_records))]
    if min_partitions is None or len(parts) >= min_partitions:
        return parts

    def share(size: int, total: int, tasks: int) -> int:
        return max(1, math.floor(size / total * tasks + 0.5))  # Java's Math.round

    total = sum(found.size for found in parts)
    short = [found for found in parts if share(found.size, total, min_partitions) == 1]
    whole = {(found.topic, found.partition) for found in short}
    long_total, long_tasks = total - sum(found.size for found in short), max(min_partitions - len(short), 1)
    return [
        part
        for found in parts
        for part in _cut_evenly(
            found, 1 if (found.topic, found.partition) in whole else share(found.size, long_total, long_tasks)
        )
    ]


def _cut_evenly(found: OffsetRange, parts: int) -> list[OffsetRange]:
    """Divide a range into even parts, longer ones last; fewer parts if it has fewer offsets."""
    starts = [found.start]
    for remaining in range(parts, 0, -1):
        starts.append(starts[-1] + (found.end - starts[-1]) // remaining)
    return [OffsetRange(found.topic, found.partition, *each) for each in pairwise(starts) if each[0] < each[1]]
