"""The first bytes of a request: what the tap knows about it without reading its body."""

from __future__ import annotations

import struct
from enum import Enum

import msgspec

from kwire.errors import DecodeError, Truncated
from kwire.messages import registry
from kwire.protocol.frames import LENGTH_BYTES
from kwire.protocol.requests import request_key
from kwire.tap.responses import KNOWN
from kwire.wire.varint import read_unsigned_varint

__all__ = ["HEAD_BYTES", "PRODUCE", "Acks", "Head", "looks_like_request", "peek_acks", "read_head"]

PRODUCE = 0
HEAD_BYTES = 12
"""Length, api key, version and correlation id."""
FIRST_WITH_TRANSACTIONAL_ID = 3
HEAD = struct.Struct(">hhi")


class Head(msgspec.Struct, frozen=True):
    """The fields that every request begins with. is_known: whether the tap can read the request."""

    api_key: int
    version: int
    correlation_id: int
    is_known: bool


class Acks(Enum):
    """Whether a Produce request has a response. UNKNOWN: its first bytes do not say."""

    NONE = "none"
    SOME = "some"
    UNKNOWN = "unknown"


def read_head(view: bytes | memoryview) -> Head:
    """Read the first HEAD_BYTES of a request. Raises Truncated."""
    if len(view) < HEAD_BYTES:
        raise Truncated("request without a correlation id", len(view))
    api_key, version, correlation_id = HEAD.unpack_from(view, LENGTH_BYTES)
    return Head(api_key, version, correlation_id, is_known(api_key, version))


def is_known(api_key: int, version: int) -> bool:
    """Return whether the tap can read requests of a version."""
    known = KNOWN.get(api_key)
    return known is not None and known.lowest <= version <= known.highest


def looks_like_request(view: bytes | memoryview) -> bool:
    """Return whether a frame is a request, and not a SASL token without a header.

    Tokens are never taken for one: in those of PLAIN, what would be the version has a letter in its upper byte, or the
    first letter of the password as lower byte, above the versions of every API. Those of SCRAM, OAUTHBEARER and GSSAPI
    begin with letters, or with a tag of ASN.1.
    """
    return len(view) >= HEAD_BYTES and is_known(*request_key(view))


def peek_acks(view: bytes | memoryview, version: int) -> Acks:
    """Return whether a Produce request, of which there are the first bytes, has a response."""
    try:
        pos = HEAD_BYTES
        size, pos = _int16(view, pos)  # client id
        pos += max(0, size)
        if registry.request_header_version(PRODUCE, version) >= 2:
            tags, pos = read_unsigned_varint(view, pos)
            if tags:
                return Acks.UNKNOWN
            size, pos = read_unsigned_varint(view, pos)
            pos += max(0, size - 1)
        elif version >= FIRST_WITH_TRANSACTIONAL_ID:
            size, pos = _int16(view, pos)
            pos += max(0, size)
        acks, _ = _int16(view, pos)
    except DecodeError:
        return Acks.UNKNOWN
    return Acks.SOME if acks else Acks.NONE


def _int16(view: bytes | memoryview, pos: int) -> tuple[int, int]:
    if pos + 2 > len(view):
        raise Truncated("request ends early", pos)
    return int.from_bytes(view[pos : pos + 2], "big", signed=True), pos + 2
