"""Batches to measure with, as producers write them: 16 byte keys, 100 byte JSON-like values, 16 KB before compression.

Written here by hand, so that the reader is not measured on what its own writer makes of the format.
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
    """One record without headers, a millisecond after the one before it."""
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
    """100 bytes that compress to about a third with zstd, as events do."""
    text = (
        f'{{"id":{number:010d},"user":"{source.choice(NAMES)}","amount":{source.random() * 1000:.2f},'
        f'"session":"{source.getrandbits(64):016x}","ok":true}}'
    )
    return text.encode().ljust(100)[:100]


def compress(codec: str, section: bytes) -> bytes:
    """The payload of a batch, framed as Java's producers frame it."""
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
    """A batch of magic 2 around a record section."""
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
    """So many batches one after another, all different."""
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
    """The same records as messages of magic 1: single ones, or RECORDS_PER_BATCH to a compressed one."""
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
    """One message of magic 1."""
    body = struct.pack(">bBq", 1, attributes, FIRST_TIMESTAMP_MS + offset)
    body += struct.pack(">i", -1 if key is None else len(key)) + (key or b"") + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body
