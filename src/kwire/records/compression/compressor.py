"""Compression of batches for Kafka's readers; `compression` is the reverse.

    gzip     one RFC 1952 member. Levels 1 to 9 are zlib's, with the bytes that Kafka writes on Java 16 and later;
             without a level ISA-L's fast one
    snappy   xerial framing, blocks of 32 KiB of input. No levels
    lz4      one frame of independent 64 KiB blocks, no checksums; a block that does not shrink is stored. Level 9, the
             default, is the fast compressor and every other level the high compression one, as in Kafka
    zstd     one frame, levels -131072 to 22, default 3; magic 2 only

Other compressed bytes differ between libraries: only what they decompress to is comparable.
Figures for codecs and levels: docs/compression.md.
Source: KIP-110, KIP-390; org.apache.kafka.common.compress; org.xerial.snappy.SnappyOutputStream 1.1.10; KAFKA-3160.
"""

from __future__ import annotations

import zlib

import cramjam
from isal import isal_zlib

from kwire.errors import OptionError
from kwire.records.attributes import Compression

__all__ = [
    "DEFAULT_LEVELS",
    "KAFKA_LEVELS",
    "check_level",
    "compress",
    "compress_into",
    "largest_compressed",
    "parse_compression",
]

DEFAULT_LEVELS = {Compression.GZIP: -1, Compression.LZ4: 9, Compression.ZSTD: 3}
LEVELS = {Compression.GZIP: (1, 9), Compression.LZ4: (1, 17), Compression.ZSTD: (-131072, 22)}

KAFKA_LEVELS = {Compression.GZIP: 6}
"""The level by which Kafka's default is written: of gzip, zlib's own default."""
ISAL_LEVEL = 1  # six to ten times zlib's default in speed for 2 to 20 % more bytes (docs/compression.md)
GZIP_WINDOW = 31  # zlib's wbits for a gzip header and a window of 32 KiB
GZIP_SYSTEM_POSITION, UNKNOWN_SYSTEM = 9, 0xFF  # of the header; Java writes the second since 16 (JDK-8244706)

XERIAL_HEADER = b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2  # version, lowest compatible version
XERIAL_BLOCK_BYTES = 32 << 10

LZ4_FRAME = b"\x04\x22\x4d\x18\x60\x40"  # version 1, independent blocks, no checksums, blocks of 64 KiB
LZ4_HEADER_CHECKSUM = 0x82
LZ4_HEADER_CHECKSUM_OF_MAGIC_0 = 0x1A  # taken over the frame's own magic number too, by mistake; kept for its readers
LZ4_BLOCK_BYTES = 64 << 10
LZ4_STORED = 0x8000_0000
LZ4_END = bytes(4)
LZ4_HIGH_LEVELS = (3, 12)  # of liblz4: what lies outside means the nearest


def parse_compression(name: str | Compression) -> Compression:
    """Return the codec of a name in Kafka's configs (none, gzip, snappy, lz4, zstd); raises OptionError."""
    if isinstance(name, Compression):
        return name
    try:
        return Compression[str(name).upper()]
    except KeyError:
        raise OptionError(
            f"unknown compression {name!r}; expected one of {', '.join(c.text for c in Compression)}"
        ) from None


def check_level(codec: Compression, level: int | None) -> int | None:
    """Return level if the codec supports it, None for the codec's default; raises OptionError."""
    if level is None or level == DEFAULT_LEVELS.get(codec):
        return None
    if codec not in LEVELS:
        raise OptionError(f"compression {codec.text} has no levels; got level {level}")
    low, high = LEVELS[codec]
    if not low <= level <= high:
        raise OptionError(
            f"compression level {level} of {codec.text}: {low} to {high}, default {DEFAULT_LEVELS[codec]}"
        )
    return level


def compress(
    codec: Compression, payload: bytes | bytearray | memoryview, *, magic: int = 2, level: int | None = None
) -> bytes:
    """Compress payload. magic: of the batch (lz4's header checksum differs in magic 0).

    Raises OptionError for a level that the codec does not support.
    """
    if codec == Compression.NONE:
        return bytes(payload)
    room = bytearray(largest_compressed(codec, len(payload)))
    return bytes(
        memoryview(room)[: compress_into(codec, memoryview(payload), memoryview(room), magic=magic, level=level)]
    )


def largest_compressed(codec: Compression, n_bytes: int) -> int:
    """Return the buffer size for any payload of n_bytes."""
    if codec == Compression.SNAPPY:
        return n_bytes + n_bytes // 6 + 64 * (n_bytes // XERIAL_BLOCK_BYTES + 2)
    return n_bytes + n_bytes // 128 + 64 * (n_bytes // LZ4_BLOCK_BYTES + 2)


def compress_into(
    codec: Compression, payload: memoryview, room: memoryview, *, magic: int = 2, level: int | None = None
) -> int:
    """Compress payload to the start of room, which has largest_compressed(...) bytes; returns the bytes written."""
    level = check_level(codec, level)
    if codec == Compression.LZ4:
        return compress_lz4_into(payload, room, magic, level)
    if codec == Compression.ZSTD:
        return int(cramjam.zstd.compress_into(payload, room, level=DEFAULT_LEVELS[codec] if level is None else level))
    if codec == Compression.SNAPPY:
        return compress_snappy_into(payload, room)
    if codec == Compression.GZIP:
        return put(room, 0, compress_gzip(payload, level))
    return put(room, 0, payload)


def compress_gzip(payload: memoryview, level: int | None) -> bytes | bytearray:
    """Compress into one gzip member."""
    if level is None:
        return isal_zlib.compress(payload, ISAL_LEVEL, wbits=GZIP_WINDOW)
    member = bytearray(zlib.compress(payload, level, wbits=GZIP_WINDOW))
    member[GZIP_SYSTEM_POSITION] = UNKNOWN_SYSTEM
    return member


def compress_snappy_into(payload: memoryview, room: memoryview) -> int:
    """Write xerial's header, then each 32 KiB of payload as a raw block with a length prefix."""
    pos = put(room, 0, XERIAL_HEADER)
    for start in range(0, len(payload), XERIAL_BLOCK_BYTES):
        size = int(cramjam.snappy.compress_raw_into(payload[start : start + XERIAL_BLOCK_BYTES], room[pos + 4 :]))
        room[pos : pos + 4] = size.to_bytes(4, "big")
        pos += 4 + size
    return pos


def compress_lz4_into(payload: memoryview, room: memoryview, magic: int, level: int | None) -> int:
    """Write a frame of independent blocks. cramjam's own frames have linked blocks, which Kafka refuses."""
    pos = put(room, 0, LZ4_FRAME)
    room[pos] = LZ4_HEADER_CHECKSUM if magic else LZ4_HEADER_CHECKSUM_OF_MAGIC_0
    pos += 1
    if level is not None:
        return put_high_compression_blocks(payload, room, pos, level)
    for start in range(0, len(payload), LZ4_BLOCK_BYTES):
        block = payload[start : start + LZ4_BLOCK_BYTES]
        size = int(cramjam.lz4.compress_block_into(block, room[pos + 4 :], store_size=False))
        if size >= len(block):
            pos = put_stored(room, pos, block)
        else:
            room[pos : pos + 4] = size.to_bytes(4, "little")
            pos += 4 + size
    return put(room, pos, LZ4_END)


def put_high_compression_blocks(payload: memoryview, room: memoryview, pos: int, level: int) -> int:
    """Write the blocks of a frame with the library, which has the high levels, without its block checksums."""
    low, high = LZ4_HIGH_LEVELS
    compressor = cramjam.lz4.Compressor(level=min(max(level, low), high), content_checksum=False, block_linked=False)
    for start in range(0, len(payload), LZ4_BLOCK_BYTES):
        compressor.compress(bytes(payload[start : start + LZ4_BLOCK_BYTES]))  # it takes nothing else
    frame = memoryview(compressor.finish())
    assert frame[4] == 0x70  # independent blocks with checksums
    assert frame[5] == LZ4_FRAME[5]  # blocks of 64 KiB
    at = 7
    while size := int.from_bytes(frame[at : at + 4], "little"):
        end = at + 4 + (size & LZ4_STORED - 1)
        pos = put(room, pos, frame[at:end])
        at = end + 4
    return put(room, pos, LZ4_END)


def put_stored(room: memoryview, pos: int, block: memoryview) -> int:
    """Write a block uncompressed; returns the position after it."""
    room[pos : pos + 4] = (len(block) | LZ4_STORED).to_bytes(4, "little")
    return put(room, pos + 4, block)


def put(room: memoryview, pos: int, data: bytes | bytearray | memoryview) -> int:
    """Copy data to pos of room; returns the position after it."""
    end = pos + len(data)
    room[pos:end] = data
    return end
