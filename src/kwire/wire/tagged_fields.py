"""The section of tagged fields that ends every struct of a flexible version.

    unsigned varint     number of fields
    for each, tags ascending:
      unsigned varint   tag, 31 bits
      unsigned varint   size of the value in bytes
      bytes             the value

Reading them is part of a plan: `native/messages.c`, `kwire.plan.reading`.

Source: KIP-482, "Tagged Fields"; org.apache.kafka.common.protocol.types.RawTaggedField.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.wire.varint import write_unsigned_varint

__all__ = ["MAX_TAG", "write_tagged_fields"]

MAX_TAG = 0x7FFF_FFFF


def write_tagged_fields(out: bytearray, fields: Iterable[tuple[int, bytes]]) -> None:
    """Append the section of these (tag, value), which have different tags, in ascending order."""
    section = sorted(fields)
    write_unsigned_varint(out, len(section))
    for tag, value in section:
        write_unsigned_varint(out, tag)
        write_unsigned_varint(out, len(value))
        out += value
