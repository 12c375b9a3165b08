"""Hand-written batches for tests: any field may be wrong; checksums are valid by default."""

from __future__ import annotations

import struct
import zlib

from kwire.records.format.checksum import crc32c
from kwire.wire.varint import write_varint, write_varlong

HEADER = struct.Struct(">qiibIhiqqqhii")

Header = tuple[bytes, bytes | None]


def field(data: bytes | None) -> bytes:
    """Encode a varint length and the bytes; None is -1."""
    out = bytearray()
    write_varint(out, -1 if data is None else len(data))
    return bytes(out) + (data or b"")


def varint(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


def record(
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: list[Header] | None = None,
) -> bytes:
    """Encode a record of magic 2 with its length."""
    body = bytearray(1)
    write_varlong(body, timestamp_delta)
    write_varint(body, offset_delta)
    body += field(key) + field(value)
    write_varint(body, len(headers or []))
    for header_key, header_value in headers or []:
        body += field(header_key) + field(header_value)
    return varint(len(body)) + bytes(body)


def batch(
    payload: bytes = record(),
    *,
    count: int = 1,
    base_offset: int = 0,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int = 1000,
    max_timestamp: int = 1000,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    leader_epoch: int = -1,
    crc: int | None = None,
) -> bytes:
    """Encode a batch of magic 2 with a payload of records, already compressed if the attributes have a codec."""
    delta = max(count - 1, 0) if last_offset_delta is None else last_offset_delta
    out = bytearray(
        HEADER.pack(
            base_offset, 49 + len(payload), leader_epoch, 2, 0, attributes, delta, base_timestamp, max_timestamp,
            producer_id, producer_epoch, base_sequence, count,
        )
    )  # fmt: skip
    out += payload
    out[17:21] = (crc32c(bytes(out[21:])) if crc is None else crc).to_bytes(4, "big")
    return bytes(out)


def message(
    magic: int = 1,
    *,
    offset: int = 0,
    attributes: int = 0,
    timestamp: int = 1000,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    tail: bytes = b"",
    crc: int | None = None,
) -> bytes:
    """Encode a message of magic 0 or 1; the value is already compressed if the attributes have a codec."""
    body = struct.pack(">bB", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for data in (key, value):
        body += struct.pack(">i", -1 if data is None else len(data)) + (data or b"")
    return framed(body + tail, offset, crc)


def framed(body: bytes, offset: int = 0, crc: int | None = None) -> bytes:
    """Prepend offset, size and checksum to a message of magic 0 or 1."""
    checksum = zlib.crc32(body) if crc is None else crc
    return struct.pack(">qiI", offset, 4 + len(body), checksum) + body


def with_right_checksums(data: bytes) -> bytes:
    """Correct the outer checksums of a record set, as far as its sizes are valid."""
    out, pos = bytearray(data), 0
    while len(out) - pos >= 17:
        size = int.from_bytes(out[pos + 8 : pos + 12], "big", signed=True)
        magic, end = out[pos + 16], pos + 12 + size
        if size < 14 or end > len(out):
            break
        if magic == 2 and size >= 49:
            out[pos + 17 : pos + 21] = crc32c(bytes(out[pos + 21 : end])).to_bytes(4, "big")
        elif magic < 2:
            out[pos + 12 : pos + 16] = zlib.crc32(out[pos + 16 : end]).to_bytes(4, "big")
        pos = end
    return bytes(out)
