"""Batches for benchmarks, as from a producer: 16 KB uncompressed.

Even ones have 16 byte keys and 100 byte JSON-like values; varied ones keys, values and headers of different lengths,
some of them null, so that no reader gains from records that are all alike. They are encoded here, so that readers are
not measured on output of kwire's writers.
"""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Sequence

import cramjam
import google_crc32c

from kwire.wire.varint import write_varint

HEADER = struct.Struct(">qiibIhiqqqhii")
RECORDS_PER_BATCH = 128
BATCH_BYTES = 16_000
HEADERS = (b"trace", b"content-type", b"source", b"x")
FIRST_TIMESTAMP_MS = 1_760_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NAMES = ("anna", "berta", "carla", "doris", "emma", "frieda", "greta", "hanna")


def encode_record(
    offset_delta: int, key: bytes | None, value: bytes | None, headers: Sequence[tuple[bytes, bytes | None]] = ()
) -> bytes:
    """Encode a record, one millisecond after the previous one."""
    body = bytearray(1)
    write_varint(body, offset_delta)
    write_varint(body, offset_delta)
    write_field(body, key)
    write_field(body, value)
    write_varint(body, len(headers))
    for name, content in headers:
        write_field(body, name)
        write_field(body, content)
    out = bytearray()
    write_varint(out, len(body))
    return bytes(out + body)


def write_field(body: bytearray, field: bytes | None) -> None:
    """Append a length as a varint, then the bytes; -1 for null."""
    write_varint(body, -1 if field is None else len(field))
    body += field or b""


def json_like(source: random.Random, number: int) -> bytes:
    """Return 100 bytes that zstd compresses to about a third, like events."""
    text = (
        f'{{"id":{number:010d},"user":"{source.choice(NAMES)}","amount":{source.random() * 1000:.2f},'
        f'"session":"{source.getrandbits(64):016x}","ok":true}}'
    )
    return text.encode().ljust(100)[:100]


def compress(codec: str, section: bytes) -> bytes:
    """Compress the payload of a batch in the framing of Java's producer."""
    if codec == "gzip":
        return gzip.compress(section, 6)
    if codec == "snappy":
        blocks = (bytes(cramjam.snappy.compress_raw(section[at : at + 32768])) for at in range(0, len(section), 32768))
        return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    if codec == "lz4":
        out = bytearray(b"\x04\x22\x4d\x18\x60\x40\x82")
        for at in range(0, len(section), 65536):
            block = bytes(cramjam.lz4.compress_block(section[at : at + 65536], store_size=False))
            out += struct.pack("<I", len(block)) + block
        return bytes(out + bytes(4))
    if codec == "zstd":
        return bytes(cramjam.zstd.compress(section, 3))
    return section


def batch(base_offset: int, codec: str, section: bytes, count: int) -> bytes:
    """Encode a magic 2 batch with a record section."""
    payload = compress(codec, section)
    header = bytearray(
        HEADER.pack(
            base_offset, 49 + len(payload), 0, 2, 0, CODECS.index(codec), count - 1,
            FIRST_TIMESTAMP_MS + base_offset, FIRST_TIMESTAMP_MS + base_offset + count - 1, -1, -1, -1, count,
        )
    )  # fmt: skip
    header[17:21] = google_crc32c.value(bytes(header[21:]) + payload).to_bytes(4, "big")
    return bytes(header) + payload


def segment(codec: str, batches: int) -> bytes:
    """Encode a sequence of different batches."""
    source = random.Random(1)
    out = bytearray()
    for number in range(batches):
        base = number * RECORDS_PER_BATCH
        section = b"".join(
            encode_record(delta, b"key-%012d" % source.randrange(100_000), json_like(source, base + delta))
            for delta in range(RECORDS_PER_BATCH)
        )
        out += batch(base, codec, section, RECORDS_PER_BATCH)
    return bytes(out)


def varied_segment(codec: str, batches: int) -> bytes:
    """Encode batches of about 16 KB whose records have different shapes.

    Values are JSON-like, 20 to 2,000 bytes (median 90); one in 20 is null. Keys are 4 to 40 bytes; a quarter are null.
    A third of the records have one to three headers. A record takes 147 bytes on average.
    """
    source = random.Random(3)
    out, base = bytearray(), 0
    for _ in range(batches):
        section, count = bytearray(), 0
        while len(section) < BATCH_BYTES:
            section += encode_record(count, *varied_fields(source, base + count))
            count += 1
        out += batch(base, codec, bytes(section), count)
        base += count
    return bytes(out)


def varied_fields(source: random.Random, number: int) -> tuple[bytes | None, bytes | None, list[tuple[bytes, bytes]]]:
    """Return a key, a value and headers of varied lengths."""
    key = None if source.random() < 0.25 else b"%0*d" % (source.randrange(4, 41), source.randrange(10_000))
    length = min(max(int(source.lognormvariate(4.5, 0.7)), 20), 2000)
    value = None if source.random() < 0.05 else json_like(source, number)
    if value is not None:
        value = (value.rstrip() + b"%x" % source.getrandbits(8 * max(length - 80, 1)))[:length]
    count = source.choice((1, 1, 2, 3)) if source.random() < 0.33 else 0
    return key, value, [(source.choice(HEADERS), b"%x" % source.getrandbits(64)) for _ in range(count)]


def legacy_segment(codec: str, messages: int) -> bytes:
    """Encode the same records as magic 1 messages, compressed ones with RECORDS_PER_BATCH records each."""
    source = random.Random(1)
    out = bytearray()
    for first in range(0, messages, RECORDS_PER_BATCH):
        inner = b"".join(
            message(
                first + i if codec == "none" else i,
                b"key-%012d" % source.randrange(100_000),
                json_like(source, first + i),
            )
            for i in range(RECORDS_PER_BATCH)
        )
        if codec == "none":
            out += inner
        else:
            out += message(first + RECORDS_PER_BATCH - 1, None, compress(codec, inner), CODECS.index(codec))
    return bytes(out)


def message(offset: int, key: bytes | None, value: bytes, attributes: int = 0) -> bytes:
    """Encode a magic 1 message."""
    body = struct.pack(">bBq", 1, attributes, FIRST_TIMESTAMP_MS + offset)
    body += struct.pack(">i", -1 if key is None else len(key)) + (key or b"") + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body
