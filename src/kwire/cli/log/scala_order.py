"""The order in which Scala's mutable hash tables give their elements back: lines of Kafka's tools before 4.0 show it.

A table of 16 buckets that doubles when an addition would fill three quarters of it; an element's bucket is the low bits
of its hash with the high half folded in; within a bucket elements stand by that number.
Source: scala.collection.mutable.HashSet and HashMap of 2.13; java.lang.String.hashCode, TopicPartition.hashCode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["partition_hash", "string_hash", "table_order"]

T = TypeVar("T")
FIRST_BUCKETS = 16
INT_BITS = 0xFFFF_FFFF


def table_order(elements: Sequence[T], hash_of: Callable[[T], int]) -> list[T]:
    """elements, all different and in the order of their addition, as the table lists them."""
    buckets = FIRST_BUCKETS
    while len(elements) >= buckets * 3 // 4:
        buckets *= 2

    def place(element: T) -> tuple[int, int]:
        code = hash_of(element)
        code ^= code >> 16
        return code & (buckets - 1), code - (code >> 31 << 32)  # within the bucket as signed numbers

    return sorted(elements, key=place)


def string_hash(text: str) -> int:
    """Java's String.hashCode as an unsigned 32 bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(units), 2):
        code = code * 31 + (units[at] << 8 | units[at + 1]) & INT_BITS
    return code


def partition_hash(partition: tuple[str, int]) -> int:
    """TopicPartition.hashCode of (topic, partition), unsigned."""
    topic, number = partition
    return ((31 + number) * 31 + string_hash(topic)) & INT_BITS
