"""Frames that carry megabytes of records, without building them in memory.

A message is encoded with a marker in the place of each of its records and cut there; what belongs there goes on the
socket from where it is, a file or a buffer. The marker is 16 random bytes of this process, so nothing that a peer can
send contains it.

    frame length | header, body up to the length of records 1 | records 1 | body up to ... | records 2 | ... | rest

The length in front of records is an int32, in flexible versions a varint of one more.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from kwire.wire.varint import write_unsigned_varint

__all__ = ["RECORDS_ELSEWHERE", "cut_frame"]

RECORDS_ELSEWHERE = secrets.token_bytes(16)
"""What a message has in place of records that come from elsewhere."""


def cut_frame(frame: bytes, sizes: Sequence[int], *, is_flexible: bool) -> list[bytes]:
    """The pieces of a frame around the records, one more than there are records.

    frame: with RECORDS_ELSEWHERE in each place. sizes: of what belongs there, in bytes. is_flexible: the message's
    version.
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
