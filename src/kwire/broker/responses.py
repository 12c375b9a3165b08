"""Responses that are sent from where their records are stored.

A Fetch or ShareFetch response with megabytes of records is not built in memory. Its handler returns the response
without the records and, separately, where the records are. kwire.protocol.splicing cuts the encoded frame at these
places, and sendfile copies the records from their files to the socket.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from kwire.messages import FetchResponse, ShareFetchResponse
from kwire.messages.base import Message
from kwire.protocol.requests import write_response
from kwire.protocol.splicing import RECORDS_ELSEWHERE, cut_frame

if TYPE_CHECKING:
    from kwire.log.writing.log_reads import FilePart

    Piece = bytes | bytearray | memoryview | FilePart

__all__ = ["RECORDS_ELSEWHERE", "Response", "SplicedResponse", "piece_bytes"]


class SplicedResponse(msgspec.Struct, kw_only=True):
    """A Fetch or ShareFetch response whose records are sent from where they are stored.

    body: the response with RECORDS_ELSEWHERE in place of records. payloads: the records of each such place, in order.
    """

    body: FetchResponse | ShareFetchResponse
    payloads: list[Sequence[Piece]]

    def encode(self, version: int, correlation_id: int) -> list[Piece]:
        """Encode the response as a frame, in pieces. Raises EncodeError if a value does not fit the version."""
        body = self.body
        assert body.API_KEY is not None
        frame = write_response(body, api_key=body.API_KEY, version=version, correlation_id=correlation_id)
        sizes = [sum(map(piece_bytes, payload)) for payload in self.payloads]
        around = cut_frame(frame, sizes, is_flexible=version in body.FLEXIBLE_VERSIONS)
        pieces: list[Piece] = [around[0]]
        for payload, after in zip(self.payloads, around[1:], strict=True):
            pieces += payload
            pieces.append(after)
        if not around[-1]:
            del pieces[-1]
        return pieces


Response: TypeAlias = Message | SplicedResponse
"""The result of a handler."""


def piece_bytes(piece: Piece) -> int:
    """Return the size of a piece."""
    return len(piece) if isinstance(piece, bytes | bytearray | memoryview) else piece.size_bytes
