"""Micro-batches of partitioned logs: which offsets the next one takes. Pure functions; standard library only.

Source: Spark's KafkaMicroBatchStream (rateLimit, delayBatch), KafkaOffsetReaderAdmin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kwire.errors import LogError, OptionError
from kwire.spark.options.offsets import OffsetRange
from kwire.spark.options.topics import TopicPartition
from kwire.spark.options.values import parse_positive
from kwire.spark.streaming.position import Offsets, Position, TopicIds
from kwire.storage.checkpoints import render_uuid

__all__ = [
    "Limits",
    "has_enough",
    "next_ranges",
    "parse_duration",
    "parse_limits",
    "rate_limit",
]

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
    start: Position,
    end: Position,
    earliest: Callable[[list[TopicPartition]], Mapping[TopicPartition, int]],
    topic_ids: Callable[[Iterable[str]], TopicIds],
    *,
    fail_on_data_loss: bool,
    report: Callable[[str], None],
) -> list[OffsetRange]:
    """The offsets of a micro-batch, partition by partition.

    earliest(keys): first offsets there are. topic_ids(topics): their ids as earliest saw them. A partition that start
    does not know is new: it begins at its first offset, and so does a topic that was deleted and created again.
    Records that were deleted before they were read, and partitions that are gone, are data loss: LogError, or a call of
    report.
    """

    def lost(what: str, then: str = "continue with the remaining records") -> None:
        if fail_on_data_loss:
            raise LogError(f"{what}; to {then}, set the option failOnDataLoss to false")
        report(f"{what}; failOnDataLoss is false: the query will {then}")

    first = earliest(list(end.offsets))
    now = topic_ids({topic for topic, _ in end.offsets})
    replaced = end.recreated(now)
    for topic in sorted(replaced):
        lost(recreated(topic, end, now) + " after this micro-batch was planned", "skip the deleted records")
    start, end = start.without(replaced), end.without(replaced)
    replaced = start.recreated(end.topic_ids)
    for topic in sorted(replaced):
        lost(recreated(topic, start, end.topic_ids), "read the new topic from its beginning")
    begun, ended = start.without(replaced).offsets, end.offsets
    for topic, partition in sorted(begun.keys() - ended.keys()):
        lost(f"{topic}-{partition} is gone; it was read up to offset {begun[topic, partition]}")
    ranges = []
    for key in sorted(ended):
        name = f"{key[0]}-{key[1]}"
        begin = begun.get(key)
        if begin is None:
            begin = first[key]
            if begin > 0:
                lost(f"the new partition {name} begins at offset {begin}, those before were deleted")
        elif begin < first[key]:
            lost(f"offsets [{begin}, {min(first[key], ended[key])}) of {name} were deleted before they were read")
            begin = first[key]
        if ended[key] < begin and key in begun and ended[key] < begun[key]:
            lost(f"{name} ends at offset {ended[key]}, before offset {begun[key]} where reading was to go on")
        if ended[key] > begin:
            ranges.append(OffsetRange(*key, begin, ended[key]))
    return ranges


def recreated(topic: str, known: Position, topic_ids: TopicIds) -> str:
    """The fact that a topic has another id than the query knows."""
    read = ", ".join(f"{topic}-{key[1]} {offset}" for key, offset in sorted(known.offsets.items()) if key[0] == topic)
    return (
        f"topic '{topic}' was deleted and created again: its id was {render_uuid(known.topic_ids[topic])} and is "
        f"{render_uuid(topic_ids[topic])} now, so the next offsets ({read}) are those of the deleted topic"
    )
