"""The partition of an internal topic that holds a group or transactional id.

Kafka hashes the name like Java's String and takes the absolute value modulo the number of partitions. The smallest
int32, which has no absolute value, counts as 0.

Source: java.lang.String.hashCode; org.apache.kafka.common.utils.Utils.abs; GroupCoordinatorService.partitionFor.
"""

from __future__ import annotations

import struct

__all__ = ["java_hash", "partition_for"]

SMALLEST_INT32 = -(1 << 31)


def java_hash(text: str) -> int:
    """Return Java's hash of a string, an int32 over UTF-16 code units."""
    value = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        value = (31 * value + unit) & 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


def partition_for(name: str, partition_count: int) -> int:
    """Return the partition of a name, 0 <= partition < partition_count."""
    value = java_hash(name)
    return 0 if value == SMALLEST_INT32 else abs(value) % partition_count
