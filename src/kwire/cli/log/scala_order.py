"""The order in which Scala's mutable hash tables give their elements back: lines of Kafka's tools before 4.0 show it.

An element's bucket is the low bits of its hash with the high half folded in; within a bucket elements stand by that
number. A table begins with 16 buckets. It doubles when an element is added that would fill three quarters of it; but
when a set of five or more is added at once, the table only grows to what that set needs by itself.
Source: scala.collection.mutable.HashSet and HashMap of 2.13; java.lang.String.hashCode, TopicPartition.hashCode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

__all__ = ["partition_hash", "string_hash", "table_order"]

T = TypeVar("T")
FIRST_BUCKETS = 16
SMALL_SET = 4  # up to here Scala's immutable sets are no hash tables, and are added element by element
INT_BITS = 0xFFFF_FFFF


def table_order(additions: Iterable[Sequence[T]], hash_of: Callable[[T], int]) -> list[T]:
    """The elements of a table as it lists them. additions: the sets that were added, one after another."""
    buckets, elements = FIRST_BUCKETS, dict[T, None]()
    for added in additions:
        buckets = max(buckets, _buckets_for(len(added)))
        for element in added:
            if len(added) <= SMALL_SET and len(elements) + 1 >= buckets * 3 // 4:
                buckets *= 2
            elements[element] = None

    def place(element: T) -> tuple[int, int]:
        code = hash_of(element)
        code ^= code >> 16
        return code & (buckets - 1), code - (code >> 31 << 32)  # within the bucket as signed numbers

    return sorted(elements, key=place)


def _buckets_for(size: int) -> int:
    """The power of two that Scala reserves for a set of that size: a third more, at least 8."""
    return 1 << max(((size + 1) * 4 // 3 - 1).bit_length(), 3)


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
