"""LZ4 frames as Kafka reads them, which differs from the format.

    magic 04 22 4d 18 | FLG | BD | [content size, 8] | HC | blocks | end mark 00000000 | [content checksum, 4]
    block: little-endian int32 size, high bit set for uncompressed data | data | [xxHash32 of data, 4]

Refused: reserved bits, dependent blocks, versions other than 1, block size codes below 4, a wrong header checksum HC
(except in magic 0, whose writers got it wrong), a wrong block checksum, a block above the maximum, a missing end mark.
Ignored: the content size, the value of the content checksum (it must be present), and everything after the first end
mark, including a second frame.
Source: org.apache.kafka.common.compress.Lz4BlockInputStream; KAFKA-3160 for magic 0.
"""

from __future__ import annotations

import functools
import struct

import cramjam

from kwire.errors import Malformed

__all__ = ["MAX_BLOCK_BYTES", "RoomExhausted", "expand_lz4_into", "xxhash32_of_few"]

FRAME_MAGIC = b"\x04\x22\x4d\x18"
MAX_BLOCK_BYTES = 4 << 20  # block size code 7
BLOCK_SIZE = struct.Struct("<I")
STORED = 0x8000_0000
KAFKA_HEADER = bytes.fromhex("04224d18 60 40 82")  # what Java's producers write
CONTENT_CHECKSUM, CONTENT_SIZE, BLOCK_CHECKSUM, INDEPENDENT = 0x04, 0x08, 0x10, 0x20


class RoomExhausted(Exception):
    """The output does not fit the buffer. needed: bytes needed, 0 if unknown."""

    def __init__(self, needed: int = 0) -> None:
        super().__init__(needed)
        self.needed = needed


def expand_lz4_into(source: memoryview, room: memoryview, *, check_header: bool) -> int:
    """Decompress the first frame of source to the start of room; returns the number of bytes written.

    Raises Malformed where Kafka's reader fails, RoomExhausted when room is too small.
    """
    flags, block_bytes, pos = read_frame_header(source, check_header)
    if flags & BLOCK_CHECKSUM:
        return expand_checked_blocks(source, room, flags, pos)
    written = 0
    while True:
        size, stored, pos = read_block_size(source, pos, block_bytes)
        if not size:
            check_frame_end(source, pos, flags)
            return written
        if size > len(source) - pos:
            raise Malformed(f"lz4: block of {size} bytes, {len(source) - pos} left", pos)
        if len(room) - written < (size if stored else block_bytes):
            raise RoomExhausted(written + block_bytes)
        if stored:
            room[written : written + size] = source[pos : pos + size]
            written += size
        else:
            written += expand_block(source[pos : pos + size], room[written:], block_bytes)
        pos += size


def expand_block(block: memoryview, room: memoryview, block_bytes: int) -> int:
    """Decompress one block; room: at least block_bytes, which is 2**16, 2**18, 2**20 or 2**22.

    The library guesses whether a block has a size prefix: it takes the first four bytes for one if they are small
    enough and the rest decodes, which also happens for blocks without a prefix. So every block gets a prefix. If the
    block is corrupt, the library's second guess, that the prefix is part of the block, always fails: such a block would
    begin with a copy from 256 bytes or more before the start.
    """
    try:
        return int(cramjam.lz4.decompress_block_into(b"".join((BLOCK_SIZE.pack(block_bytes), block)), room))
    except cramjam.DecompressionError:
        raise Malformed("lz4: block does not decode", 0) from None


def read_frame_header(source: memoryview, check_header: bool) -> tuple[int, int, int]:
    """Read the frame header: (FLG, largest block in bytes, position of the first block)."""
    if source[:7] == KAFKA_HEADER:
        return INDEPENDENT, 65536, 7
    if len(source) < 7:
        raise Malformed("lz4: frame header ends early", 0)
    if source[:4] != FRAME_MAGIC:
        raise Malformed("lz4: not a frame", 0)
    flags, descriptor = source[4], source[5]
    if flags >> 6 != 1:
        raise Malformed(f"lz4: unsupported frame version {flags >> 6}", 4)
    if not flags & INDEPENDENT:
        raise Malformed("lz4: dependent blocks are not supported", 4)
    if flags & 0x03 or descriptor & 0x8F:
        raise Malformed("lz4: reserved bits set", 4)
    code = descriptor >> 4
    if code < 4:
        raise Malformed(f"lz4: block size code {code}", 5)
    end = 14 if flags & CONTENT_SIZE else 6
    if len(source) <= end:
        raise Malformed("lz4: frame header ends early", 6)
    if check_header and source[end] != header_checksum(bytes(source[4:end])):
        raise Malformed("lz4: wrong header checksum", end)
    return flags, 1 << (2 * code + 8), end + 1


def read_block_size(source: memoryview, pos: int, block_bytes: int) -> tuple[int, bool, int]:
    """Read a block size: (size, whether the block is uncompressed, position after it); size 0 is the end mark."""
    if len(source) - pos < 4:
        raise Malformed("lz4: no end mark", pos)
    (size,) = BLOCK_SIZE.unpack_from(source, pos)
    stored = size >= STORED
    size &= STORED - 1
    if size > block_bytes:
        raise Malformed(f"lz4: block of {size} bytes exceeds the maximum of {block_bytes}", pos)
    return size, stored, pos + 4


def check_frame_end(source: memoryview, pos: int, flags: int) -> None:
    """Refuse a frame without the content checksum that its flags announce."""
    if flags & CONTENT_CHECKSUM and len(source) - pos < 4:
        raise Malformed("lz4: content checksum ends early", pos)


def expand_checked_blocks(source: memoryview, room: memoryview, flags: int, start: int) -> int:
    """Decompress a frame with block checksums, which are rare: the library checks them but needs a whole frame.

    The blocks get a plain header and an end mark; the content checksum, which Kafka ignores, is dropped.
    """
    block_bytes = 1 << (2 * (source[5] >> 4) + 8)
    pos = start
    while True:
        size, _, pos = read_block_size(source, pos, block_bytes)
        if not size:
            break
        if size + 4 > len(source) - pos:
            raise Malformed(f"lz4: block of {size} bytes, {len(source) - pos} left", pos)
        pos += size + 4
    check_frame_end(source, pos, flags)
    descriptor = bytes((0x40 | INDEPENDENT | BLOCK_CHECKSUM, source[5]))
    frame = b"".join((FRAME_MAGIC, descriptor, bytes((header_checksum(descriptor),)), source[start:pos]))
    try:
        return int(cramjam.lz4.decompress_into(frame, room))
    except cramjam.DecompressionError as error:
        if "write whole buffer" in str(error):
            raise RoomExhausted from None
        raise Malformed(f"lz4: {error}", start) from None


@functools.lru_cache(maxsize=64)
def header_checksum(descriptor: bytes) -> int:
    """HC: the second lowest byte of the descriptor's xxHash32."""
    return xxhash32_of_few(descriptor) >> 8 & 0xFF


def xxhash32_of_few(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes, which is all a frame header needs."""
    assert len(data) < 16
    mask = 0xFFFF_FFFF
    value = 374761393 + len(data)
    words = len(data) & ~3
    for i in range(0, words, 4):
        value = value + int.from_bytes(data[i : i + 4], "little") * 3266489917 & mask
        value = (value << 17 | value >> 15) * 668265263 & mask
    for byte in data[words:]:
        value = value + byte * 374761393 & mask
        value = (value << 11 | value >> 21) * 2654435761 & mask
    value = (value ^ value >> 15) * 2246822519 & mask
    value = (value ^ value >> 13) * 3266489917 & mask
    return value ^ value >> 16
