"""From a response to what goes on the socket: one piece of bytes, or pieces of bytes and of files between them.

A Fetch response that carries megabytes is not built in memory: its handler gives the response without the records and,
apart, where the records are. The response is encoded with a marker in each place and cut there; records in files then
go from the file to the socket inside the kernel. The marker is 16 random bytes of this process, so nothing that a peer
can send contains it.

    frame length | header, body up to the length of records 1 | records 1 | body up to ... | records 2 | ... | rest

The length in front of records is an int32, in flexible versions a varint of one more.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kwire.messages import ResponseHeader
from kwire.protocol.frames import response_codec
from kwire.wire.varint import write_unsigned_varint

if TYPE_CHECKING:
    from kwire.log.log_reads import FilePart

    Piece = bytes | bytearray | memoryview | FilePart

__all__ = ["RECORDS_ELSEWHERE", "SplicedResponse", "encode_answer", "piece_bytes"]

RECORDS_ELSEWHERE = secrets.token_bytes(16)
"""What a response has in place of records that come from elsewhere."""


@dataclass(slots=True, kw_only=True)
class SplicedResponse:
    """A response whose records are elsewhere.

    body: with RECORDS_ELSEWHERE in each place, in order. payloads: what belongs there, in pieces, for each place.
    """

    body: Any
    payloads: list[Sequence[Piece]]


def piece_bytes(piece: Piece) -> int:
    """The size of a piece."""
    return len(piece) if isinstance(piece, bytes | bytearray | memoryview) else piece.size_bytes


def encode_answer(api_key: int, version: int, correlation_id: int, answer: Any) -> list[Piece]:
    """The frame of a response, in pieces. Raises EncodeError when the response does not fit its version."""
    codec = response_codec(api_key, version)
    header = ResponseHeader(correlation_id=correlation_id)
    if not isinstance(answer, SplicedResponse):
        return [codec.encode((header, answer))]
    frame = codec.encode((header, answer.body))
    flexible = version in type(answer.body).FLEXIBLE_VERSIONS
    prefix_bytes = 1 if flexible else 4
    pieces: list[Piece] = []
    start, total = 4, len(frame) - 4
    for payload in answer.payloads:
        at = frame.index(RECORDS_ELSEWHERE, start)
        size = sum(piece_bytes(piece) for piece in payload)
        prefix = bytearray()
        if flexible:
            write_unsigned_varint(prefix, size + 1)
        else:
            prefix += size.to_bytes(4, "big")
        pieces.append(frame[start : at - prefix_bytes] + prefix)
        pieces += payload
        start = at + len(RECORDS_ELSEWHERE)
        total += size - len(RECORDS_ELSEWHERE) + len(prefix) - prefix_bytes
    if start < len(frame):
        pieces.append(frame[start:])
    first = pieces[0]
    assert isinstance(first, bytes | bytearray)  # the header comes before any records
    pieces[0] = total.to_bytes(4, "big") + first
    return pieces
