"""Micro-batches of partitioned logs: which offsets the next one takes. Pure functions; standard library only.

Offsets of a query are what Spark's Kafka source writes into checkpoints, `{"orders": {"0": 23, "1": 42}}`: for each
partition the next offset to read.
Source: Spark's KafkaMicroBatchStream (rateLimit, delayBatch), KafkaOffsetReaderAdmin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kwire.errors import LogError, OptionError
from kwire.spark.offsets import OffsetRange
from kwire.spark.option_values import parse_positive
from kwire.spark.topics import TopicPartition

__all__ = [
    "Limits",
    "Offsets",
    "has_enough",
    "next_ranges",
    "parse_duration",
    "parse_limits",
    "parse_offsets",
    "rate_limit",
    "render_offsets",
]

Offsets = dict[TopicPartition, int]
Json = dict[str, dict[str, int]]

DEFAULT_TRIGGER_DELAY_MS = 15 * 60 * 1000
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """maxOffsetsPerTrigger, minOffsetsPerTrigger (None: no limit) and maxTriggerDelay (ms) of a query."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = DEFAULT_TRIGGER_DELAY_MS

    def __post_init__(self) -> None:
        if self.max_offsets is not None and self.min_offsets is not None and self.min_offsets > self.max_offsets:
            raise OptionError(
                f"Option 'minOffsetsPerTrigger' ({self.min_offsets}) is above maxOffsetsPerTrigger ({self.max_offsets})"
            )


def parse_duration(name: str, text: str) -> int:
    """`15m`, `30 s`, `500ms`, as Spark's durations: milliseconds. Raises OptionError."""
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ").strip()
    unit = text.strip()[len(digits) :].strip() or "ms"
    if not digits.isdecimal() or unit not in UNITS_MS:
        raise OptionError(f"Option '{name}': expected a duration such as 15m, 30s or 500ms, got '{text}'")
    return int(digits) * UNITS_MS[unit]


def parse_limits(given: Mapping[str, str]) -> Limits:
    """The limits among a query's options, whose keys are in lower case. Raises OptionError."""
    delay = given.get("maxtriggerdelay")
    return Limits(
        max_offsets=parse_positive(given, "maxOffsetsPerTrigger"),
        min_offsets=parse_positive(given, "minOffsetsPerTrigger"),
        max_delay_ms=DEFAULT_TRIGGER_DELAY_MS if delay is None else parse_duration("maxTriggerDelay", delay),
    )


def render_offsets(offsets: Mapping[TopicPartition, int]) -> Json:
    """Offsets as they stand in a checkpoint."""
    found: Json = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def parse_offsets(json: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Offsets of a checkpoint."""
    return {
        (topic, int(partition)): offset
        for topic, partitions in json.items()
        for partition, offset in partitions.items()
    }


def rate_limit(limit: int, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> Offsets:
    """The end of a micro-batch of about `limit` offsets, shared out by how much is there in each partition.

    start: has every partition of latest. Every partition with anything to read moves on by one offset at least, so that
    none starves behind a large one.
    """
    sizes = {key: end - start[key] for key, end in latest.items() if end > start[key]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(latest)
    ends = dict(latest)
    for key, size in sizes.items():
        share = limit * (size / total)
        # less than one offset: up, so that it moves at all
        ends[key] = min(start[key] + (math.ceil(share) if share < 1 else math.floor(share)), latest[key])
    return ends


def has_enough(
    limits: Limits, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], waited_ms: float
) -> bool:
    """Whether a micro-batch is due: the longest delay is over, or enough offsets are there.

    waited_ms: since one was due, infinite for the first: a query that is started takes what is there.
    """
    if limits.min_offsets is None or waited_ms >= limits.max_delay_ms:
        return True
    return sum(max(0, end - start[key]) for key, end in latest.items()) >= limits.min_offsets


def next_ranges(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    earliest: Callable[[list[TopicPartition]], Mapping[TopicPartition, int]],
    *,
    fail_on_data_loss: bool,
    report: Callable[[str], None],
) -> list[OffsetRange]:
    """The offsets of a micro-batch, partition by partition.

    earliest(keys): first offsets there are. A partition that start does not know is new: it begins at its first offset.
    What was deleted before it was read, or is gone with its partition, is data loss: LogError, or a call of report.
    """

    def lost(what: str) -> None:
        if fail_on_data_loss:
            raise LogError(f"{what}; to go on with what is there, set the option failOnDataLoss to false")
        report(f"{what}; going on with what is there")

    for topic, partition in sorted(start.keys() - end.keys()):
        lost(f"{topic}-{partition} is gone; it was read up to offset {start[topic, partition]}")
    first = earliest(list(end))
    ranges = []
    for key in sorted(end):
        name = f"{key[0]}-{key[1]}"
        begin = start.get(key)
        if begin is None:
            begin = first[key]
            if begin > 0:
                lost(f"the new partition {name} begins at offset {begin}, those before were deleted")
        elif begin < first[key]:
            lost(f"offsets [{begin}, {min(first[key], end[key])}) of {name} were deleted before they were read")
            begin = first[key]
        if end[key] < begin and key in start and end[key] < start[key]:
            lost(f"{name} ends at offset {end[key]}, before offset {start[key]} where reading was to go on")
        if end[key] > begin:
            ranges.append(OffsetRange(*key, begin, end[key]))
    return ranges
