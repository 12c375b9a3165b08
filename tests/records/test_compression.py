"""Decompression: input that Kafka accepts, the end of streams, size limits."""

from __future__ import annotations

import gzip
import resource
import struct
import zlib

import cramjam
import pytest
from tests.records.both_paths import through_both
from tests.records.building import batch, message, record

from kwire.errors import CorruptBatch, Malformed
from kwire.records import ColumnReader, Compression, read_batches
from kwire.records.compression.codecs import RoomExhausted, TooLarge, expand, expand_into

LIMIT = 1 << 20
DATA = b"".join(b"%d," % i for i in range(9000))  # 43 KB


def opened(codec: Compression, payload: bytes, magic: int = 2, limit: int = LIMIT) -> bytes:
    return bytes(expand(codec, magic, memoryview(payload), limit))


def refused(codec: Compression, payload: bytes, magic: int = 2) -> str:
    with pytest.raises(Malformed) as caught:
        opened(codec, payload, magic)
    return str(caught.value)


def member(data: bytes, flags: int = 0, extra: bytes = b"") -> bytes:
    """Return a gzip member with these header flags and fields."""
    deflate = zlib.compressobj(wbits=-15)
    body = deflate.compress(data) + deflate.flush()
    return b"\x1f\x8b\x08" + bytes((flags,)) + bytes(6) + extra + body + struct.pack("<II", zlib.crc32(data), len(data))


# --- gzip


@pytest.mark.requirement("C-01")
def test_gzip_members_are_concatenated() -> None:
    assert opened(Compression.GZIP, gzip.compress(DATA)) == DATA
    assert opened(Compression.GZIP, gzip.compress(DATA) + gzip.compress(b"two") + gzip.compress(DATA)) == (
        DATA + b"two" + DATA
    )
    assert opened(Compression.GZIP, gzip.compress(b"")) == b""


@pytest.mark.requirement("C-01")
@pytest.mark.parametrize(
    "behind", [b"\0" * 40, b"garbage" * 9, b"\x1f\x8b\x07" + bytes(40), gzip.compress(b"x", mtime=0)[:18]]
)
def test_trailing_garbage_ends_a_gzip_stream(behind: bytes) -> None:
    assert opened(Compression.GZIP, gzip.compress(DATA) + behind) == DATA


@pytest.mark.requirement("C-01")
def test_a_corrupt_gzip_member_is_rejected() -> None:
    assert "ends early" in refused(Compression.GZIP, gzip.compress(DATA) + gzip.compress(DATA)[:-200])


@pytest.mark.requirement("C-01")
def test_optional_gzip_header_fields_are_skipped() -> None:
    extra = struct.pack("<H", 3) + b"abc" + b"name\0" + b"comment\0"
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + extra
    with_crc = extra + struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    assert opened(Compression.GZIP, member(DATA, 0x1E, with_crc)) == DATA
    wrong_crc = extra + struct.pack("<H", zlib.crc32(header) & 0xFFFF ^ 1)
    assert "no header" in refused(Compression.GZIP, member(DATA, 0x1E, wrong_crc))


@pytest.mark.parametrize("flags", [4, 8, 16, 2, 0])
def test_a_gzip_header_truncated_anywhere_is_an_error(flags: int) -> None:
    for length in range(16):
        refused(Compression.GZIP, (b"\x1f\x8b\x08" + bytes((flags,)) + bytes(6) + b"\xff" * 9)[:length])


@pytest.mark.requirement("C-01")
def test_gzip_trailers_are_checked() -> None:
    whole = gzip.compress(DATA)
    for wrong in (whole[:-8] + bytes(4) + whole[-4:], whole[:-4] + bytes(4)):
        assert "trailer" in refused(Compression.GZIP, wrong)
    assert "trailer ends early" in refused(Compression.GZIP, whole[:-1])


# --- snappy


def chunk(data: bytes) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(data))
    return struct.pack(">i", len(block)) + block


XERIAL = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"


@pytest.mark.requirement("C-02")
def test_xerial_chunks_can_have_any_size_and_repeated_headers() -> None:
    assert opened(Compression.SNAPPY, XERIAL + chunk(DATA)) == DATA
    assert opened(Compression.SNAPPY, XERIAL + chunk(DATA[:5]) + XERIAL + XERIAL + chunk(DATA[5:]) + XERIAL) == DATA
    assert opened(Compression.SNAPPY, XERIAL) == b""


@pytest.mark.requirement("C-02")
def test_snappy_without_a_xerial_header_is_one_raw_block() -> None:
    assert opened(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(DATA))) == DATA
    assert opened(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(b"x"))) == b"x"


@pytest.mark.requirement("C-02")
def test_snappy_streams_that_kafka_rejects_are_rejected() -> None:
    for payload, why in [
        (b"", "empty"),
        (XERIAL[:15], "claims"),  # read as a raw block, which it is not
        (XERIAL[:8] + bytes(8), "version 0"),
        (XERIAL + chunk(DATA)[:-1], "left"),
        (XERIAL + struct.pack(">i", -5) + bytes(9), "too big or negative"),
        (XERIAL + struct.pack(">i", 1 << 30), "too big or negative"),
        (XERIAL + chunk(DATA) + XERIAL[:10], "ends early"),
        (XERIAL + bytes(4), "empty"),
        (b"\xff\xff\xff\xff\x0f" + bytes(40), "claims"),
    ]:
        assert why in refused(Compression.SNAPPY, payload)


@pytest.mark.requirement("C-02")
def test_xerial_streams_end_as_in_snappy_java() -> None:
    assert opened(Compression.SNAPPY, XERIAL + chunk(DATA) + b"abc") == DATA  # no room for a chunk's length
    assert opened(Compression.SNAPPY, XERIAL + chunk(DATA) + b"\x82SNAbcdefghijklmnop") == DATA  # half a header


# --- zstd


@pytest.mark.requirement("C-06")
def test_zstd_frames_are_concatenated_and_anything_else_is_rejected() -> None:
    frame = bytes(cramjam.zstd.compress(DATA, 3))
    assert opened(Compression.ZSTD, frame) == DATA
    assert opened(Compression.ZSTD, frame + frame) == DATA + DATA
    assert refused(Compression.ZSTD, frame + b"garbage")
    assert refused(Compression.ZSTD, frame[:-1])
    assert refused(Compression.ZSTD, b"")


# --- limits

BOMBS = {
    Compression.GZIP: gzip.compress(bytes(64 << 20)),
    Compression.SNAPPY: XERIAL + chunk(bytes(1 << 20)) * 64,
    Compression.LZ4: bytes.fromhex("04224d18 60 70 73")
    + 16
    * (lambda block: struct.pack("<I", len(block)) + block)(
        bytes(cramjam.lz4.compress_block(bytes(4 << 20), store_size=False))
    )
    + bytes(4),
    Compression.ZSTD: bytes(cramjam.zstd.compress(bytes(64 << 20), 3)),
}


@pytest.mark.parametrize("codec", BOMBS, ids=lambda codec: codec.text)
def test_a_decompression_bomb_is_rejected_at_the_limit_with_the_option(codec: Compression) -> None:
    bomb = BOMBS[codec]
    assert len(bomb) < 4 << 20
    assert len(opened(codec, bomb, limit=64 << 20)) == 64 << 20
    with pytest.raises(TooLarge):
        opened(codec, bomb, limit=(64 << 20) - 1)
    data = batch(record()) + batch(bomb, attributes=codec, base_offset=1, count=3) + batch(base_offset=4)
    rows, errors = through_both(data, max_decompressed_bytes=1 << 20)
    assert [row[0] for row in rows] == [0, 4]
    assert f"{codec.text} payload decompresses to more than max_decompressed_bytes=1048576" in errors[0]


@pytest.mark.requirement("C-01", "C-03", "C-06")
def test_decompression_bombs_use_little_memory() -> None:
    bombs = b"".join(batch(bomb, attributes=codec, base_offset=codec, count=3) for codec, bomb in BOMBS.items()) * 5
    reader = ColumnReader(("offset",), max_decompressed_bytes=1 << 20, max_bytes=1 << 20, on_corrupt=lambda error: None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert list(reader.read(bombs)) == []
    for found in read_batches(bombs, max_decompressed_bytes=1 << 20):
        with pytest.raises(CorruptBatch):
            list(found.records())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # KiB; 40 bombs of 64 MiB each


def test_output_of_exactly_the_limit_is_accepted() -> None:
    for codec, payload in {
        Compression.GZIP: gzip.compress(DATA),
        Compression.SNAPPY: XERIAL + chunk(DATA),
        Compression.LZ4: BOMBS[Compression.LZ4],
        Compression.ZSTD: bytes(cramjam.zstd.compress(DATA, 3)),
    }.items():
        size = len(opened(codec, payload, limit=128 << 20))
        assert len(opened(codec, payload, limit=size)) == size
        with pytest.raises(TooLarge):
            opened(codec, payload, limit=size - 1)


@pytest.mark.parametrize("codec", BOMBS, ids=lambda codec: codec.text)
def test_nothing_is_written_beyond_the_output_buffer(codec: Compression) -> None:
    memory = bytearray(b"\xee" * 70000)
    with pytest.raises(RoomExhausted):
        expand_into(codec, 2, memoryview(BOMBS[codec]), memoryview(memory)[:65536])
    assert memory[65536:] == b"\xee" * (70000 - 65536)
    with pytest.raises(RoomExhausted):
        expand_into(codec, 2, memoryview(BOMBS[codec]), memoryview(memory)[:0])


def test_declared_sizes_are_not_trusted() -> None:
    data = b"".join(
        [
            batch(b"\xff\xff\xff\xff\x07" + bytes(40), attributes=Compression.SNAPPY, count=5),
            message(1, offset=6, attributes=Compression.SNAPPY, value=b"\xff\xff\xff\xff\x07" + bytes(40)),
            batch(bytes(50), base_offset=7, count=2**31 - 1),
        ]
    )
    assert len(through_both(data).errors) == 3
