"""Batches for benchmarks, as from a producer: 16 byte keys, 100 byte JSON-like values, 16 KB uncompressed.

They are encoded here, so that readers are not measured on output of kwire's writers.
"""

from __future__ import annotations

import gzip
import random
import struct
import zlib

import cramjam
import google_crc32c

from kwire.wire.varint import write_varint

HEADER = struct.Struct(">qiibIhiqqqhii")
RECORDS_PER_BATCH = 128
FIRST_TIMESTAMP_MS = 1_760_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NAMES = ("anna", "berta", "carla", "doris", "emma", "frieda", "greta", "hanna")


def record(offset_delta: int, key: bytes, value: bytes) -> bytes:
    """Encode a record without headers, one millisecond after the previous one."""
    body = bytearray(1)
    write_varint(body, offset_delta)
    write_varint(body, offset_delta)
    for field in (key, value):
        write_varint(body, len(field))
        body += field
    write_varint(body, 0)
    out = bytearray()
    write_varint(out, len(body))
    return bytes(out + body)


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
            record(delta, b"key-%012d" % source.randrange(100_000), json_like(source, base + delta))
            for delta in range(RECORDS_PER_BATCH)
        )
        out += batch(base, codec, section, RECORDS_PER_BATCH)
    return bytes(out)


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
