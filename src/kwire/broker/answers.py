"""From a response to what goes on the socket: one piece of bytes, or pieces of bytes and of files between them.

A Fetch response that carries megabytes is not built in memory: its handler gives the response without the records and,
apart, where the records are. kwire.protocol.splicing cuts its frame there; records in files then go from the file to
the socket inside the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kwire.messages import ResponseHeader
from kwire.protocol.frames import response_codec
from kwire.protocol.splicing import RECORDS_ELSEWHERE, cut_frame

if TYPE_CHECKING:
    from kwire.log.log_reads import FilePart

    Piece = bytes | bytearray | memoryview | FilePart

__all__ = ["RECORDS_ELSEWHERE", "SplicedResponse", "encode_answer", "piece_bytes"]


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
    sizes = [sum(map(piece_bytes, payload)) for payload in answer.payloads]
    around = cut_frame(frame, sizes, is_flexible=version in type(answer.body).FLEXIBLE_VERSIONS)
    pieces: list[Piece] = [around[0]]
    for payload, after in zip(answer.payloads, around[1:], strict=True):
        pieces += payload
        pieces.append(after)
    if not around[-1]:
        del pieces[-1]
    return pieces
