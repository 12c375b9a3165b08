"""Which partition of an internal topic a group or transactional id lives in.

Kafka hashes the name as Java hashes a String and takes the absolute value modulo the number of partitions, where the
one number without an absolute value, the smallest int32, counts as 0.

Source: java.lang.String.hashCode; org.apache.kafka.common.utils.Utils.abs; GroupCoordinatorService.partitionFor.
"""

from __future__ import annotations

import struct

__all__ = ["java_hash", "partition_for"]

SMALLEST_INT32 = -(1 << 31)


def java_hash(text: str) -> int:
    """Java's hash of a string, an int32: over UTF-16 code units, so a character beyond the BMP counts as two."""
    value = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        value = (31 * value + unit) & 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


def partition_for(name: str, partition_count: int) -> int:
    """The partition of a name among so many, 0 <= partition < partition_count."""
    value = java_hash(name)
    return 0 if value == SMALLEST_INT32 else abs(value) % partition_count
