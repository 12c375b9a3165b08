"""Compression: requirements of Kafka's readers, levels, and what other libraries read."""

from __future__ import annotations

import gzip
import random
import struct

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.errors import OptionError
from kwire.records import Compression
from kwire.records.compression.codecs import expand
from kwire.records.compression.compressor import (
    check_level,
    compress,
    compress_into,
    largest_compressed,
    parse_compression,
)

WORDS = b" ".join(b'{"id":%d,"name":"user-%d"}' % (i, i % 100) for i in range(12_000))
NOISE = random.Random(5).randbytes(200_000)
PAYLOADS = {
    "empty": b"",
    "byte": b"x",
    "block": WORDS[: 64 << 10],
    "block-and-byte": WORDS[: (64 << 10) + 1],
    "words": WORDS,
    "noise": NOISE,
    "noise-then-words": NOISE[: 64 << 10] + WORDS,
}
CODECS = [codec for codec in Compression if codec]
LEVELS = [
    *((Compression.GZIP, level) for level in (None, -1, *range(1, 10))),
    *((Compression.LZ4, level) for level in (None, *range(1, 18))),
    *((Compression.ZSTD, level) for level in (None, -131072, -5, *range(1, 23))),
    (Compression.SNAPPY, None),
]


def expanded_elsewhere(codec: Compression, packed: bytes) -> bytes:
    """Decompress with the libraries that kafka-python uses; none of them is one of ours."""
    match codec:
        case Compression.GZIP:
            return gzip.decompress(packed)
        case Compression.SNAPPY:
            assert packed[:16] == bytes.fromhex("82534e4150505900 00000001 00000001")  # xerial's stream
            pos, out = 16, b""
            while pos < len(packed):
                end = pos + 4 + int.from_bytes(packed[pos : pos + 4], "big")
                out += snappy.uncompress(packed[pos + 4 : end])
                pos = end
            assert pos == len(packed)
            return out
        case Compression.LZ4:
            assert packed[4:6] == bytes.fromhex("6040")
            checksum = b"\x82"  # of these two bytes; magic 0 has another, by a fault of old clients
            return bytes(lz4.frame.decompress(packed[:6] + checksum + packed[7:]))
        case _:
            return zstandard.ZstdDecompressor().decompressobj().decompress(packed)


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.requirement("C-01", "C-02", "C-03", "C-04", "C-06")
def test_every_codec_is_read_by_other_libraries(codec: Compression, magic: int, payload: bytes) -> None:
    packed = bytes(compress(codec, payload, magic=magic))
    assert len(packed) <= largest_compressed(codec, len(payload))
    assert expanded_elsewhere(codec, packed) == payload
    assert expand(codec, magic, memoryview(packed), 1 << 22) == payload


@pytest.mark.parametrize(("codec", "level"), LEVELS)
@pytest.mark.requirement("C-01", "C-06", "C-07")
def test_every_level_is_read_by_other_libraries(codec: Compression, level: int | None) -> None:
    payload = PAYLOADS["noise-then-words"][50_000:200_000] if level in (None, 1, 9) else WORDS[:20_000]
    packed = bytes(compress(codec, payload, level=level))
    assert expanded_elsewhere(codec, packed) == payload
    assert expand(codec, 2, memoryview(packed), 1 << 22) == payload


@pytest.mark.requirement("C-07")
def test_higher_levels_make_smaller_payloads() -> None:
    for codec, levels in {Compression.GZIP: (1, 9), Compression.LZ4: (9, 3, 12), Compression.ZSTD: (-5, 1)}.items():
        sizes = [len(compress(codec, WORDS, level=level)) for level in levels]
        assert sizes == sorted(sizes, reverse=True)
        assert len(set(sizes)) == len(sizes)


def lz4_blocks(frame: bytes) -> list[tuple[int, bool]]:
    """Return (size, stored) of each block; check the frame."""
    blocks, pos = [], 7
    while size := struct.unpack_from("<I", frame, pos)[0]:
        stored = size & 0x8000_0000 != 0
        blocks.append((size & 0x7FFF_FFFF, stored))
        pos += 4 + (size & 0x7FFF_FFFF)
    assert pos + 4 == len(frame)
    return blocks


@pytest.mark.parametrize("level", [None, 3, 12])
@pytest.mark.requirement("C-03", "C-04")
def test_lz4_frames_equal_kafkas(level: int | None) -> None:
    for magic, checksum in ((0, 0x1A), (1, 0x82), (2, 0x82)):
        frame = compress(Compression.LZ4, PAYLOADS["noise-then-words"], magic=magic, level=level)
        assert frame[:7] == bytes.fromhex("04224d18 6040") + bytes([checksum])
        blocks = lz4_blocks(frame)
        assert blocks[0] == (64 << 10, True)  # noise does not shrink, so it is stored
        assert all(not stored for _, stored in blocks[1:])
        assert len(blocks) == -(-len(PAYLOADS["noise-then-words"]) // (64 << 10))


@pytest.mark.requirement("C-03")
def test_lz4_blocks_are_independent() -> None:
    twice = PAYLOADS["block"] * 2
    first, second = lz4_blocks(compress(Compression.LZ4, twice))
    assert first == second


@pytest.mark.requirement("C-02")
def test_snappy_is_written_in_xerial_blocks_of_32_kib() -> None:
    packed = compress(Compression.SNAPPY, WORDS)
    assert packed[:16] == bytes.fromhex("82534e4150505900 00000001 00000001")
    pos, inputs = 16, []
    while pos < len(packed):
        (size,) = struct.unpack_from(">i", packed, pos)
        alone = packed[:16] + packed[pos : pos + 4 + size]
        inputs.append(len(expand(Compression.SNAPPY, 2, memoryview(alone), 1 << 20)))
        pos += 4 + size
    assert set(inputs[:-1]) == {32 << 10}
    assert sum(inputs) == len(WORDS)


def test_the_stated_buffer_size_suffices() -> None:
    for codec in CODECS:
        for payload in PAYLOADS.values():
            room = memoryview(bytearray(largest_compressed(codec, len(payload))))
            assert compress_into(codec, memoryview(payload), room) <= len(room)


def test_unknown_codec_names_and_levels_are_rejected() -> None:
    assert parse_compression("zstd") == Compression.ZSTD
    assert parse_compression(Compression.LZ4) == Compression.LZ4
    for name in ("", "deflate", "none "):
        with pytest.raises(OptionError, match="none, gzip, snappy, lz4, zstd"):
            parse_compression(name)
    for codec, level in ((Compression.NONE, 1), (Compression.SNAPPY, 1), (Compression.GZIP, 10), (Compression.LZ4, 0)):
        with pytest.raises(OptionError, match="level"):
            check_level(codec, level)
    assert check_level(Compression.LZ4, 9) is None  # the default of each codec goes by the fast way


@given(payload=st.binary(max_size=300), codec=st.sampled_from(CODECS), magic=st.sampled_from([0, 1, 2]))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_read_by_other_libraries(payload: bytes, codec: Compression, magic: int) -> None:
    packed = bytes(compress(codec, payload, magic=magic))
    assert expanded_elsewhere(codec, packed) == payload
    assert expand(codec, magic, memoryview(packed), 1000) == payload
