"""The iteration order of Scala's mutable hash tables, which shows in the output of Kafka's tools before 4.0.

The bucket of an element is the low bits of its hash, XORed with the high half; within a bucket, elements are sorted by
that number. A table starts with 16 buckets and doubles when an element would fill three quarters of it. Adding a set of
five or more elements only grows the table to the size of that set.
Source: scala.collection.mutable.HashSet and HashMap of 2.13; TopicPartition.hashCode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kwire.internal_topics.placement import java_hash

__all__ = ["partition_hash", "table_order"]

T = TypeVar("T")
FIRST_BUCKETS = 16
SMALL_SET = 4  # Scala's immutable sets up to this size are not hash tables and are added element by element
INT_BITS = 0xFFFF_FFFF


def table_order(additions: Iterable[Sequence[T]], hash_of: Callable[[T], int]) -> list[T]:
    """Return the elements of a table in its iteration order. additions: the sets added, in order."""
    buckets, elements = FIRST_BUCKETS, dict[T, None]()
    for added in additions:
        buckets = max(buckets, _buckets_for(len(added)))
        for element in added:
            if len(added) <= SMALL_SET and len(elements) + 1 >= buckets * 3 // 4:
                buckets *= 2
            elements[element] = None

    def place(element: T) -> tuple[int, int]:
        code = hash_of(element) & INT_BITS
        code ^= code >> 16
        return code & (buckets - 1), code - (code >> 31 << 32)  # as signed numbers within the bucket

    return sorted(elements, key=place)


def _buckets_for(size: int) -> int:
    """Return the buckets that Scala reserves for a set: a power of two, a third more, at least 8."""
    return 1 << max(((size + 1) * 4 // 3 - 1).bit_length(), 3)


def partition_hash(partition: tuple[str, int]) -> int:
    """Return TopicPartition.hashCode of (topic, partition), unsigned."""
    topic, number = partition
    return ((31 + number) * 31 + java_hash(topic)) & INT_BITS
