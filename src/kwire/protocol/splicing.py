"""Frames with megabytes of records, without a copy of the records in memory.

A message is encoded with a placeholder instead of each of its records fields, and cut there. The records are then sent
from where they are, a file or a buffer. The placeholder is 16 bytes drawn at random when the process starts, so nothing
that a peer sends contains it.

    frame length | header, body up to the length of records 1 | records 1 | body up to ... | records 2 | ... | rest

Records are preceded by their length: an int32, or in flexible versions an unsigned varint of length + 1.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from kwire.wire.varint import write_unsigned_varint

__all__ = ["RECORDS_ELSEWHERE", "cut_frame"]

RECORDS_ELSEWHERE = secrets.token_bytes(16)
"""The placeholder in a message for records that are sent from elsewhere."""


def cut_frame(frame: bytes, sizes: Sequence[int], *, is_flexible: bool) -> list[bytes]:
    """Return the pieces of a frame before, between and after its records.

    frame: with RECORDS_ELSEWHERE for each records field. sizes: of the records in bytes, in order. is_flexible: whether
    the message's version is flexible.
    """
    prefix_bytes = 1 if is_flexible else 4
    pieces = []
    start = 4
    for size in sizes:
        at = frame.index(RECORDS_ELSEWHERE, start)
        prefix = bytearray()
        if is_flexible:
            write_unsigned_varint(prefix, size + 1)
        else:
            prefix += size.to_bytes(4, "big")
        pieces.append(frame[start : at - prefix_bytes] + prefix)
        start = at + len(RECORDS_ELSEWHERE)
    pieces.append(frame[start:])
    total = sum(sizes) + sum(map(len, pieces))
    pieces[0] = total.to_bytes(4, "big") + pieces[0]
    return pieces
