"""Requests and responses in their frames: the one reader and writer for clients, brokers and captures.

    pos  bytes  field
      0      4  length           int32, of what follows
      4      n  header           request: api key, version, correlation id, client id; response: correlation id
    4+n      m  body

The first four bytes of a request's header choose its version, and with it the version of the header (W-84). The
response has the version of its request (W-87), except that an ApiVersions request of an unsupported version gets a
response of version 0 (W-85).
Source: KIP-482, KIP-511; org.apache.kafka.common.requests.RequestHeader, ResponseHeader.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from kwire.errors import Malformed, Truncated, UnsupportedVersion
from kwire.messages import RequestHeader, ResponseHeader, registry
from kwire.plan import Codec, frame_codec
from kwire.protocol.frames import LENGTH_BYTES
from kwire.protocol.versions import API_VERSIONS, UNSUPPORTED_VERSION

if TYPE_CHECKING:
    from kwire.messages.base import Message
    from kwire.messages.registry import Definitions
    from kwire.schema import Versions

__all__ = [
    "Request",
    "Response",
    "known_versions",
    "read_correlation_id",
    "read_request",
    "read_response",
    "request_codec",
    "request_key",
    "response_codec",
    "response_version",
    "write_request",
    "write_response",
]

PRODUCE, PRODUCE_REQUEST = 0, "ProduceRequest"
API_VERSIONS_REQUEST, API_VERSIONS_RESPONSE = "ApiVersionsRequest", "ApiVersionsResponse"
ERROR_CODE_POSITION = 8  # in an ApiVersions response: after length and correlation id, in every version
API_KEY_AND_VERSION = struct.Struct(">hh")

Frame = bytes | memoryview


class VersionRange(Protocol):
    """A range of versions, both ends included."""

    @property
    def lowest(self) -> int:
        """The lowest version."""

    @property
    def highest(self) -> int:
        """The highest version."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was received or sent.

    body: None for an ApiVersions request of an unsupported version. expects_reply: false for Produce with acks=0.
    size_bytes: size of its frame.
    """

    api_key: int
    version: int
    header: RequestHeader
    body: Any
    expects_reply: bool
    size_bytes: int

    @property
    def correlation_id(self) -> int:
        """The number that the response repeats."""
        return self.header.correlation_id

    @property
    def client_id(self) -> str:
        """The client id; empty if it is null (W-84)."""
        return self.header.client_id or ""

    @property
    def response_version(self) -> int:
        """The version of the response."""
        return 0 if self.body is None else self.version

    def reply(self, body: Message) -> Response:
        """Make the response to this request, in its version."""
        return Response(request=self, body=body, size_bytes=0)


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A response with its request. size_bytes: size of its frame, 0 before it is encoded."""

    request: Request
    body: Any
    size_bytes: int


CACHED_CODECS = 4096
"""More than Kafka has versions of messages; codecs of definitions that are no longer used make place for others."""


def request_class(api_key: int, kafka: Definitions | None = None) -> type[Message]:
    """Return the class of a request. Definitions without ApiVersions use Kafka's.

    Raises UnsupportedVersion for an unknown api key.
    """
    return _class("request", api_key, kafka)


def _class(kind: str, api_key: int, kafka: Definitions | None) -> type[Message]:
    try:
        return registry.find(kind, api_key, kafka=kafka)
    except UnsupportedVersion:
        if api_key != API_VERSIONS or isinstance(kafka, str):
            raise
        return registry.find(kind, api_key)


@functools.lru_cache(CACHED_CODECS)
def request_codec(api_key: int, version: int, kafka: Definitions | None = None) -> Codec:
    """Return the codec of a request's (header, body). Raises UnsupportedVersion for an unknown api key or version."""
    return _codec(RequestHeader, request_class(api_key, kafka), version)


@functools.lru_cache(CACHED_CODECS)
def response_codec(api_key: int, version: int, kafka: Definitions | None = None) -> Codec:
    """Return the codec of a response's (header, body). Raises UnsupportedVersion for an unknown api key or version."""
    return _codec(ResponseHeader, _class("response", api_key, kafka), version)


def _codec(header: type[Message], cls: type[Message], version: int) -> Codec:
    cls.check_version(version)
    return frame_codec(header.SPEC, cls.SPEC.header_version(version), header, cls.SPEC, version, cls)


def request_key(frame: Frame) -> tuple[int, int]:
    """Return (api key, version) of a request: the fields that have the same position in every version of its header.

    Raises Truncated.
    """
    if len(frame) < LENGTH_BYTES + API_KEY_AND_VERSION.size:
        size = len(frame) - LENGTH_BYTES
        raise Truncated(f"request of {size} bytes, api key and version take 4", LENGTH_BYTES)
    api_key, version = API_KEY_AND_VERSION.unpack_from(frame, LENGTH_BYTES)
    return api_key, version


@functools.lru_cache(CACHED_CODECS)
def known_versions(api_key: int, kafka: Definitions | None = None) -> Versions:
    """Return every version of a request, unstable ones included. Raises UnsupportedVersion for an unknown api key."""
    return request_class(api_key, kafka).VALID_VERSIONS


def read_request(
    frame: Frame,
    supported: Mapping[int, VersionRange] | None = None,
    *,
    kafka: Definitions | None = None,
    views: bool = False,
    lenient: bool = False,
    allow_trailing: bool = False,
) -> Request:
    """Read a request from a frame with its length.

    supported: versions by api key; None for all. kafka: read it as that release defines it, or as definitions of one's
    own do (`registry.load`).
    views: return bytes and records as memoryviews of the frame. lenient: accept the protocol violations that Kafka
    accepts. allow_trailing: ignore bytes after the body, as Kafka does.
    Raises Malformed, Truncated; UnsupportedVersion for an api key or version that is not supported, except for
    ApiVersions, whose body is None then.
    """
    api_key, version = request_key(frame)
    versions = known_versions(api_key, kafka) if supported is None else supported.get(api_key)
    if versions is None:
        raise UnsupportedVersion(f"api key {api_key} is not supported")
    expects_reply = True
    if versions.lowest <= version <= versions.highest:
        header, body = request_codec(api_key, version, kafka).decode(frame, views, lenient, allow_trailing)
        expects_reply = _expects_reply(api_key, body)
    elif (
        api_key == API_VERSIONS and request_class(api_key, kafka).__name__ == API_VERSIONS_REQUEST
    ):  # an unknown version is a later one, so its header is flexible
        latest = RequestHeader.VALID_VERSIONS.highest
        header, _ = RequestHeader.decode_from(frame, LENGTH_BYTES, version=latest)
        body = None
    else:
        raise UnsupportedVersion(
            f"api key {api_key} version {version} is not supported; supported versions: {versions}"
        )
    return Request(
        api_key=api_key,
        version=version,
        header=header,
        body=body,
        expects_reply=expects_reply,
        size_bytes=len(frame),
    )


def write_request(
    body: Message,
    version: int,
    *,
    correlation_id: int,
    client_id: str | None = None,
    kafka: Definitions | None = None,
) -> tuple[bytes, Request]:
    """Encode a request; return its frame and the Request to match its response with.

    Raises EncodeError for a message that does not fit the version, UnsupportedVersion.
    """
    api_key = body.API_KEY
    assert api_key is not None  # every request has one
    header = RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    frame = request_codec(api_key, version, kafka).encode((header, body))
    request = Request(
        api_key=api_key,
        version=version,
        header=header,
        body=body,
        expects_reply=_expects_reply(api_key, body),
        size_bytes=len(frame),
    )
    return frame, request


def _expects_reply(api_key: int, body: Message) -> bool:
    """Whether a request has a response: all but Produce with acks=0."""
    return api_key != PRODUCE or type(body).__name__ != PRODUCE_REQUEST or getattr(body, "acks", -1) != 0


def response_version(frame: Frame, api_key: int, request_version: int, kafka: Definitions | None = None) -> int:
    """Return the version of a response: the request's, or 0 for an ApiVersions response with UNSUPPORTED_VERSION."""
    if api_key == API_VERSIONS and _class("response", api_key, kafka).__name__ == API_VERSIONS_RESPONSE:
        error_code = bytes(frame[ERROR_CODE_POSITION : ERROR_CODE_POSITION + 2])
        if error_code == UNSUPPORTED_VERSION.to_bytes(2, "big"):
            return 0
    return request_version


def read_response(
    frame: Frame,
    request: Request,
    *,
    kafka: Definitions | None = None,
    views: bool = False,
    lenient: bool = False,
    allow_trailing: bool = False,
) -> Response:
    """Read the response to a request from a frame with its length; options as in `read_request`.

    Raises Truncated, Malformed, also for another correlation id than the request's.
    """
    correlation_id = read_correlation_id(frame)
    if correlation_id != request.correlation_id:
        raise Malformed(
            f"response with correlation id {correlation_id}, expected {request.correlation_id}", LENGTH_BYTES
        )
    version = response_version(frame, request.api_key, request.version, kafka)
    codec = response_codec(request.api_key, version, kafka)
    _, body = codec.decode(frame, views, lenient, allow_trailing)
    return Response(request=request, body=body, size_bytes=len(frame))


def read_correlation_id(frame: Frame) -> int:
    """Return the correlation id of a response. Raises Truncated."""
    if len(frame) < LENGTH_BYTES + 4:
        size = len(frame) - LENGTH_BYTES
        raise Truncated(f"response of {size} bytes, its correlation id takes 4", LENGTH_BYTES)
    return int.from_bytes(frame[LENGTH_BYTES : LENGTH_BYTES + 4], "big", signed=True)


def write_response(
    body: Message, *, api_key: int, version: int, correlation_id: int, kafka: Definitions | None = None
) -> bytes:
    """Encode a response with its frame. Raises EncodeError for a message that does not fit the version."""
    header = ResponseHeader(correlation_id=correlation_id)
    return response_codec(api_key, version, kafka).encode((header, body))
