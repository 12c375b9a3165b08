"""The LZ4 frame by Kafka's rules (C-03 to C-05): each rule is violated once."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable

import cramjam
import pytest
from tests.records.both_paths import through_both
from tests.records.building import message

from kwire.errors import Malformed
from kwire.records.compression.lz4_frame import FRAME_MAGIC, RoomExhausted, expand_lz4_into, xxhash32_of_few

DATA = b"".join(b"%d," % i for i in range(9000))  # 43 KB, one block
BLOCK = bytes(cramjam.lz4.compress_block(DATA, store_size=False))


def frame(
    blocks: bytes,
    *,
    flags: int = 0x60,
    descriptor: int = 0x40,
    size: bytes = b"",
    checksum: int | None = None,
    end: bytes = bytes(4),
) -> bytes:
    head = bytes((flags, descriptor)) + size
    right = xxhash32_of_few(head) >> 8 & 0xFF
    return FRAME_MAGIC + head + bytes((right if checksum is None else checksum,)) + blocks + end


def stored(data: bytes) -> bytes:
    return struct.pack("<I", len(data) | 0x8000_0000) + data


def packed(block: bytes, checksum: bytes = b"") -> bytes:
    return struct.pack("<I", len(block)) + block + checksum


def opened(payload: bytes, check_header: bool = True) -> bytes:
    room = bytearray(1 << 20)
    return bytes(room[: expand_lz4_into(memoryview(payload), memoryview(room), check_header=check_header)])


@pytest.mark.requirement("C-03")
def test_blocks_are_compressed_or_stored() -> None:
    assert opened(frame(packed(BLOCK))) == DATA
    assert opened(frame(stored(DATA[:100]) + packed(BLOCK) + stored(b"x"))) == DATA[:100] + DATA + b"x"
    assert opened(frame(b"")) == b""


@pytest.mark.requirement("C-03", "C-04")
def test_the_frame_header_checksum_equals_kafkas() -> None:
    assert frame(b"")[:7] == bytes.fromhex("04224d18 60 40 82")
    assert xxhash32_of_few(b"") == 0x02CC5D05
    assert xxhash32_of_few(b"abc") == 0x32D153FF
    assert xxhash32_of_few(b"abcd") == 0xA3643705


@pytest.mark.requirement("C-04")
def test_the_header_checksum_is_verified_except_in_magic_0() -> None:
    wrong = frame(packed(BLOCK), checksum=0x1A)
    assert opened(wrong, check_header=False) == DATA
    with pytest.raises(Malformed, match="header checksum"):
        opened(wrong)
    inner = message(0, offset=3, timestamp=0)
    for checksum in (0x1A, 0x82, 0x00):
        payload = frame(stored(inner), checksum=checksum)
        assert len(through_both(message(0, offset=3, attributes=3, key=None, value=payload)).rows) == 1
        errors = through_both(message(1, offset=3, attributes=3, key=None, value=payload)).errors
        assert bool(errors) == (checksum != 0x82)


@pytest.mark.requirement("C-05")
def test_content_sizes_and_checksums_are_skipped() -> None:
    assert opened(frame(packed(BLOCK), flags=0x68, size=bytes(8))) == DATA
    assert opened(frame(packed(BLOCK), flags=0x64, end=bytes(4) + b"junk")) == DATA
    assert opened(frame(packed(BLOCK), flags=0x6C, size=b"\xff" * 8, end=bytes(4) + b"junk")) == DATA


@pytest.mark.requirement("C-05")
def test_bytes_after_the_end_mark_are_ignored() -> None:
    assert opened(frame(packed(BLOCK)) + b"garbage") == DATA
    assert opened(frame(packed(BLOCK)) + frame(packed(BLOCK))) == DATA  # a second frame too, as in Kafka


@pytest.mark.requirement("C-05")
def test_block_checksums_are_checked() -> None:
    good = b"\x5b\x5a\x5a\x5a"  # not the checksum of anything here
    payload = frame(packed(BLOCK, good), flags=0x70)
    with pytest.raises(Malformed, match="lz4"):
        opened(payload)
    right = struct.pack("<I", xxhash32_of_few(b"stored block"))
    assert opened(frame(stored(b"stored block") + right, flags=0x70)) == b"stored block"
    assert opened(frame(stored(b"stored block") + right, flags=0x74, end=bytes(4) + b"junk")) == b"stored block"
    with pytest.raises(Malformed):
        opened(frame(stored(b"stored block") + right, flags=0x70)[:-5])
    with pytest.raises(Malformed, match="left"):
        opened(frame(stored(b"stored block"), flags=0x70, end=b""))
    whole = frame(stored(b"stored block") + right, flags=0x70)
    with pytest.raises(RoomExhausted):
        expand_lz4_into(memoryview(whole), memoryview(bytearray(5)), check_header=True)


BROKEN: list[tuple[str, Callable[[], bytes]]] = [
    ("not a frame", lambda: b"\x04\x22\x4d\x19" + frame(packed(BLOCK))[4:]),
    ("version", lambda: frame(packed(BLOCK), flags=0x20)),
    ("version", lambda: frame(packed(BLOCK), flags=0xE0)),
    ("dependent", lambda: frame(packed(BLOCK), flags=0x40)),
    ("reserved", lambda: frame(packed(BLOCK), flags=0x61)),
    ("reserved", lambda: frame(packed(BLOCK), flags=0x62)),
    ("reserved", lambda: frame(packed(BLOCK), descriptor=0x41)),
    ("reserved", lambda: frame(packed(BLOCK), descriptor=0xC0)),
    ("block size code 3", lambda: frame(packed(BLOCK), descriptor=0x30)),
    ("block size code 0", lambda: frame(packed(BLOCK), descriptor=0x00)),
    ("exceeds the maximum", lambda: frame(struct.pack("<I", 65537) + bytes(70000))),
    ("exceeds the maximum", lambda: frame(stored(bytes(65537)))),
    ("left", lambda: frame(struct.pack("<I", 1000) + BLOCK[:10], end=b"")),
    ("does not decode", lambda: frame(packed(BLOCK[:-3]))),
    ("does not decode", lambda: frame(packed(gzip.compress(DATA)))),
    ("no end mark", lambda: frame(packed(BLOCK), end=b"")),
    ("no end mark", lambda: frame(packed(BLOCK), end=bytes(3))),
    ("content checksum", lambda: frame(packed(BLOCK), flags=0x64)),
]


@pytest.mark.requirement("C-05")
@pytest.mark.parametrize(("why", "make"), BROKEN, ids=[why for why, _ in BROKEN])
def test_frames_that_kafka_rejects_are_rejected(why: str, make: Callable[[], bytes]) -> None:
    with pytest.raises(Malformed, match=why):
        opened(make())


def test_a_frame_truncated_anywhere_is_an_error() -> None:
    whole = frame(packed(BLOCK[:30]) + stored(DATA[:30]), flags=0x6C, size=bytes(8), end=bytes(8))
    for length in range(len(whole)):
        with pytest.raises(Malformed):
            opened(whole[:length])


def test_the_largest_block_size_is_allocated_only_if_used() -> None:
    stored_only = frame(stored(DATA), descriptor=0x70)
    room = memoryview(bytearray(65536))
    assert expand_lz4_into(memoryview(stored_only), room[: len(DATA)], check_header=True) == len(DATA)
    with pytest.raises(RoomExhausted):
        expand_lz4_into(memoryview(stored_only), room[: len(DATA) - 1], check_header=True)
    assert expand_lz4_into(memoryview(frame(packed(BLOCK))), room, check_header=True) == len(DATA)
    with pytest.raises(RoomExhausted):
        expand_lz4_into(memoryview(frame(packed(BLOCK))), room[:-1], check_header=True)


def test_a_block_that_starts_like_a_content_size_is_a_block() -> None:
    """Regression: cramjam read the first four bytes of a block as its size if the rest was decodable."""
    literals = bytes.fromhex("f01b") + bytes(range(42))
    for begin in (b"\xfe\0\1\0", b"\x2a\0\0\0", b"\0\0\1\0"):
        with pytest.raises(Malformed, match="does not decode"):
            opened(frame(packed(begin + literals)))
    assert opened(frame(packed(literals))) == bytes(range(42))
    both = b"\x50\0\0\0\x10\x10"  # five literals; or: room for 80, one literal
    assert opened(frame(packed(both))) == both[1:]
