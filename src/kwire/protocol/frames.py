"""Frames: what travels on a connection, and the codecs of their header and body.

    pos  bytes  field
      0      4  length           int32, of what follows
      4      n  header           request: api key, version, correlation id, client id; response: correlation id
    4+n      m  body

The first four bytes of a request's header choose its version, and with it the version of the header (W-84). The
response has the version of its request (W-87). Source: KIP-482; org.apache.kafka.common.requests.RequestHeader,
ResponseHeader.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from kwire.errors import Malformed, Truncated
from kwire.messages import registry
from kwire.plan import Codec, frame_codec

if TYPE_CHECKING:
    from kwire.messages.base import Message

__all__ = [
    "MAX_FRAME_BYTES",
    "NEED_DATA",
    "FrameBuffer",
    "NeedData",
    "request_codec",
    "request_key",
    "response_codec",
]

MAX_FRAME_BYTES = 100 * 1024 * 1024
"""Kafka's default for socket.request.max.bytes."""
LENGTH_BYTES = 4


class NeedData:
    """The type of NEED_DATA."""

    def __repr__(self) -> str:
        return "NEED_DATA"

    def __bool__(self) -> bool:
        return False


NEED_DATA = NeedData()
"""There is no whole frame yet: give the connection more bytes."""


@functools.cache
def request_codec(api_key: int, version: int, kafka: str | None = None) -> Codec:
    """The codec of (header, body) of a request. Raises UnsupportedVersion for an unknown key or version."""
    return _codec("RequestHeader", registry.request(api_key, kafka), version)


@functools.cache
def response_codec(api_key: int, version: int, kafka: str | None = None) -> Codec:
    """The codec of (header, body) of a response. Raises UnsupportedVersion for an unknown key or version."""
    return _codec("ResponseHeader", registry.response(api_key, kafka), version)


def _codec(header: str, cls: type[Message], version: int) -> Codec:
    cls.check_version(version)
    header_cls: Any = registry.get(header)
    spec = cls.SPEC
    return frame_codec(header_cls.SPEC, spec.header_version(version), header_cls, spec, version, cls)


def request_key(frame: bytes) -> tuple[int, int]:
    """(api key, version) of a request, the only part of it that can be read without knowing them.

    frame: with its length. Raises Truncated if it is too short for them.
    """
    if len(frame) < LENGTH_BYTES + 4:
        raise Truncated(f"request of {len(frame) - LENGTH_BYTES} bytes, its api key and version take 4", LENGTH_BYTES)
    return int.from_bytes(frame[4:6], "big", signed=True), int.from_bytes(frame[6:8], "big", signed=True)


class FrameBuffer:
    """Cuts a stream of bytes into frames, however it was split on its way.

    max_frame_bytes: of a frame without its length. Memory: what was received and not taken yet.
    """

    __slots__ = ("_buffer", "_position", "max_frame_bytes")

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._position = 0

    def __len__(self) -> int:
        """Bytes received and not taken."""
        return len(self._buffer) - self._position

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Take what came from the stream."""
        if self._position:
            del self._buffer[: self._position]
            self._position = 0
        self._buffer += data

    def next_frame(self) -> bytes | NeedData:
        """The next whole frame with its length, or NEED_DATA.

        Raises Malformed as soon as a length is there that is negative or above max_frame_bytes.
        """
        start = self._position
        if len(self._buffer) - start < LENGTH_BYTES:
            return NEED_DATA
        size = int.from_bytes(self._buffer[start : start + LENGTH_BYTES], "big", signed=True)
        if size < 0 or size > self.max_frame_bytes:
            raise Malformed(f"frame of {size} bytes, at most {self.max_frame_bytes} are allowed", 0)
        end = start + LENGTH_BYTES + size
        if end > len(self._buffer):
            return NEED_DATA
        self._position = end
        return bytes(memoryview(self._buffer)[start:end])
