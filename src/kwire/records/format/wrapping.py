"""Integer arithmetic that wraps as Java's does, on values that Kafka computes without an overflow check."""

from __future__ import annotations

__all__ = ["MAX_INT64", "MIN_INT64", "add_to_sequence", "to_int32", "to_int64"]

MAX_INT64 = (1 << 63) - 1
MIN_INT64 = -MAX_INT64 - 1


def to_int64(value: int) -> int:
    """Wrap value to a signed 64-bit number, as Java's arithmetic does."""
    return (value + 0x8000_0000_0000_0000 & 0xFFFF_FFFF_FFFF_FFFF) - 0x8000_0000_0000_0000


def to_int32(value: int) -> int:
    """Wrap value to a signed 32-bit number, as Java's arithmetic does."""
    return (value + 0x8000_0000 & 0xFFFF_FFFF) - 0x8000_0000


def add_to_sequence(sequence: int, increment: int) -> int:
    """Add to a producer's sequence number; after 2**31 - 1 comes 0.

    Source: DefaultRecordBatch.incrementSequence, whose 32-bit arithmetic also wraps for impossible input.
    """
    room = to_int32(0x7FFF_FFFF - increment)
    if sequence > room:
        return to_int32(increment - (0x7FFF_FFFF - sequence) - 1)
    return to_int32(sequence + increment)
