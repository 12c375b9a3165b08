"""Offsets of a micro-batch. Standard library only.

Source: Spark's KafkaMicroBatchStream (rateLimit, delayBatch), KafkaOffsetReaderAdmin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from kwire.identifiers import TopicPartition, render_uuid
from kwire.spark.offsets import OffsetRange, report_data_loss
from kwire.spark.options.query import RateLimits
from kwire.spark.streaming.position import Offsets, Position, TopicIds

__all__ = ["has_enough_offsets", "next_ranges", "rate_limit"]


def rate_limit(limit: int, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> Offsets:
    """Return the end offsets of a micro-batch of about `limit` offsets, shared by the partitions' backlogs.

    start: has every partition of latest. Every partition with a backlog advances by at least one offset.
    """
    sizes = {key: end - start[key] for key, end in latest.items() if end > start[key]}
    total = sum(sizes.values())
    if total <= limit:
        return dict(latest)
    ends = dict(latest)
    for key, size in sizes.items():
        share = limit * (size / total)
        # a share below one offset is rounded up, so that the partition advances
        ends[key] = min(start[key] + (math.ceil(share) if share < 1 else math.floor(share)), latest[key])
    return ends


def has_enough_offsets(
    limits: RateLimits, start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], waited_ms: float
) -> bool:
    """Return whether a micro-batch is due: minOffsetsPerTrigger is reached, or maxTriggerDelay is over.

    waited_ms: time since the last one; infinite for the first, which does not wait.
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
) -> list[OffsetRange]:
    """Return the offsets of a micro-batch, by partition.

    earliest(keys): first available offsets. topic_ids(topics): ids as of that call. New partitions, and topics that
    were deleted and created again, are read from their first offset. Records that were deleted before they were read,
    and deleted partitions, are data loss: LogError, or a warning.
    """

    def lost(what: str, remedy: str = "continue with the remaining records") -> None:
        report_data_loss(what, remedy, fail=fail_on_data_loss)

    replaced = start.recreated(end.topic_ids)
    for topic in sorted(replaced):
        lost(_recreated(topic, start, end.topic_ids), "read the new topic from its beginning")
    starts, ends = start.without(replaced).offsets, end.offsets
    for topic, partition in sorted(starts.keys() - ends.keys()):
        lost(f"{topic}-{partition} was deleted; the query had read it up to offset {starts[topic, partition]}")
    changed = [key for key in sorted(ends) if starts.get(key) != ends[key]]  # others may be invisible, and lose nothing
    first = earliest(changed) if changed else {}
    current = topic_ids({topic for topic, _ in changed})
    replaced = end.recreated(current)
    for topic in sorted(replaced):
        lost(_recreated(topic, end, current, " after this micro-batch was planned"), "skip the deleted records")
    ranges = []
    for key in changed:
        if key[0] in replaced:
            continue
        name = f"{key[0]}-{key[1]}"
        begin = starts.get(key)
        if begin is None:
            begin = first[key]
            if begin > 0:
                lost(f"the new partition {name} starts at offset {begin}; earlier records were deleted")
        elif begin < first[key]:
            lost(f"offsets [{begin}, {min(first[key], ends[key])}) of {name} were deleted before they were read")
            begin = first[key]
        if ends[key] < begin and key in starts and ends[key] < starts[key]:
            lost(f"{name} ends at offset {ends[key]}, before the next offset to read, {starts[key]}")
        if ends[key] > begin:
            ranges.append(OffsetRange(*key, begin, ends[key]))
    return ranges


def _recreated(topic: str, known: Position, topic_ids: TopicIds, when: str = "") -> str:
    offsets = ", ".join(
        f"{topic}-{key[1]} {offset}" for key, offset in sorted(known.offsets.items()) if key[0] == topic
    )
    return (
        f"topic '{topic}' was deleted and created again{when}: its id was {render_uuid(known.topic_ids[topic])} and is "
        f"{render_uuid(topic_ids[topic])} now, so the next offsets ({offsets}) belong to the deleted topic"
    )
