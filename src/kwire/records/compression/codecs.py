"""Decompression of batches, accepting and rejecting the same data as Kafka's readers.

    gzip     RFC 1952, several members; what follows the last member is ignored (java.util.zip.GZIPInputStream)
    snappy   xerial framing, its header may be repeated between chunks; without that header one raw block
    lz4      one frame of independent blocks, see lz4_frame
    zstd     frames one after another, magic 2 only

Output goes into the caller's buffer and never past its end: the size of the output is unknown in advance, and sizes
claimed by the input are not trusted. If the buffer is too small, RoomExhausted is raised; the caller grows it up to its
limit and starts again.
Source: org.apache.kafka.common.compress, org.xerial.snappy.SnappyInputStream 1.1.10.
"""

from __future__ import annotations

import struct

import cramjam
from isal import isal_zlib

from kwire.errors import Malformed, UnsupportedVersion
from kwire.records.attributes import Compression
from kwire.records.compression.lz4_frame import MAX_BLOCK_BYTES, RoomExhausted, expand_lz4_into

__all__ = ["DEFAULT_MAX_DECOMPRESSED_BYTES", "RoomExhausted", "TooLarge", "expand", "expand_into", "largest_room"]

DEFAULT_MAX_DECOMPRESSED_BYTES = 128 << 20  # a batch; brokers take 1 MiB compressed ones unless told otherwise

FIRST_ROOM_BYTES = 1 << 16  # a batch of the producer's default size, a block of lz4's default size

XERIAL_MAGIC = b"\x82SNAPPY\0"
XERIAL_HEADER_BYTES = 16
SNAPPY_MAX_RATIO = 32  # an element of 3 bytes yields at most 64: a claim above this cannot come true
SNAPPY_MAX_CHUNK_BYTES = 512 << 20  # SnappyInputStream.MAX_CHUNK_SIZE

GZIP_TRAILER = struct.Struct("<II")  # CRC-32, size modulo 2**32
GZIP_HEADER_CRC, GZIP_EXTRA, GZIP_NAME, GZIP_COMMENT = 2, 4, 8, 16


class TooLarge(Exception):
    """A payload decompresses to more than max_decompressed_bytes. The batch catches it and adds its position."""


def largest_room(limit: int) -> int:
    """Return the buffer size for any payload of up to `limit` bytes: lz4 needs room for one more block."""
    return limit + MAX_BLOCK_BYTES


def expand(codec: int, magic: int, source: memoryview, limit: int) -> memoryview:
    """Decompress a payload into new memory: first 64 KiB or eight times its size, which few payloads exceed.

    limit: maximum bytes of output, the option max_decompressed_bytes.
    Raises Malformed where Kafka's reader fails, TooLarge above the limit.
    """
    size = min(max(8 * len(source), FIRST_ROOM_BYTES), largest_room(limit))
    while True:
        room = memoryview(bytearray(size))
        try:
            written = expand_into(codec, magic, source, room)
        except RoomExhausted as short:
            if size >= largest_room(limit):
                raise TooLarge from None
            size = min(max(4 * size, short.needed), largest_room(limit))
            continue
        if written > limit:
            raise TooLarge
        return room[:written]


def expand_into(codec: int, magic: int, source: memoryview, room: memoryview) -> int:
    """Decompress a payload to the start of `room`; returns the number of bytes written.

    magic: of the batch (lz4's header checksum is wrong in magic 0, and ignored).
    Raises Malformed where Kafka's reader fails, RoomExhausted when room is too small.
    """
    if codec == Compression.LZ4:
        return expand_lz4_into(source, room, check_header=magic > 0)
    if codec == Compression.ZSTD:
        return expand_zstd_into(source, room)
    if codec == Compression.SNAPPY:
        return expand_snappy_into(source, room)
    if codec == Compression.GZIP:
        return expand_gzip_into(source, room)
    raise UnsupportedVersion(f"no decompressor for codec {codec}")


def expand_zstd_into(source: memoryview, room: memoryview) -> int:
    """Decompress all zstd frames; bytes outside of frames are an error."""
    try:
        return int(cramjam.zstd.decompress_into(source, room))
    except cramjam.DecompressionError as error:
        if "write whole buffer" in str(error):
            raise RoomExhausted from None
        raise Malformed(f"zstd: {error}", 0) from None


def expand_snappy_into(source: memoryview, room: memoryview) -> int:
    """Decompress xerial chunks, or one raw block if the stream does not start with xerial's header."""
    if not source:
        raise Malformed("snappy: empty payload", 0)
    if len(source) < XERIAL_HEADER_BYTES or source[:8] != XERIAL_MAGIC:
        return expand_snappy_block(source, room, 0)
    check_xerial_version(source, 0)
    pos, written = XERIAL_HEADER_BYTES, 0
    while pos + 4 <= len(source):
        length = int.from_bytes(source[pos : pos + 4], "big")
        if source[pos : pos + 4] == XERIAL_MAGIC[:4]:  # another stream follows
            if pos + XERIAL_HEADER_BYTES > len(source):
                raise Malformed("snappy: repeated header ends early", pos)
            if source[pos : pos + 8] != XERIAL_MAGIC:
                break
            check_xerial_version(source, pos)
            pos += XERIAL_HEADER_BYTES
            continue
        if length > SNAPPY_MAX_CHUNK_BYTES:
            raise Malformed(f"snappy: chunk of {length} bytes is too big or negative", pos)
        pos += 4
        if length > len(source) - pos:
            raise Malformed(f"snappy: chunk of {length} bytes, {len(source) - pos} left", pos)
        written += expand_snappy_block(source[pos : pos + length], room[written:], pos)
        pos += length
    return written  # fewer than four bytes left: SnappyInputStream ends there too


def check_xerial_version(source: memoryview, pos: int) -> None:
    """Refuse version 0, which never existed; later versions are read as version 1."""
    version = int.from_bytes(source[pos + 8 : pos + 12], "big", signed=True)
    if version < 1:
        raise Malformed(f"snappy: unsupported xerial version {version}", pos + 8)


def expand_snappy_block(block: memoryview, room: memoryview, pos: int) -> int:
    """Decompress one raw snappy block, which starts with the size of its output."""
    try:
        size = int(cramjam.snappy.decompress_raw_len(block))
        if size > SNAPPY_MAX_RATIO * len(block):
            raise Malformed(f"snappy: block of {len(block)} bytes claims to hold {size}", pos)
        if size > len(room):
            raise RoomExhausted(size)
        return int(cramjam.snappy.decompress_raw_into(block, room))
    except cramjam.DecompressionError as error:
        raise Malformed(str(error), pos) from None


def expand_gzip_into(source: memoryview, room: memoryview) -> int:
    """Decompress gzip members until something else follows. Checks the CRC and size of each member.

    As in GZIPInputStream, an invalid header after the first member ends the stream without an error, and so do 18 bytes
    or fewer.
    """
    pos = gzip_payload_start(source, 0)
    if pos < 0:
        raise Malformed("gzip: no header", 0)
    written = 0
    while True:
        if written >= len(room):
            raise RoomExhausted
        inflater = isal_zlib.decompressobj(-15)
        try:
            output = inflater.decompress(source[pos:], len(room) - written)
        except isal_zlib.IsalError as error:  # type: ignore[misc]  # its stubs call the class an instance
            raise Malformed(f"gzip: {error}", pos) from None
        if not inflater.eof:
            if written + len(output) >= len(room):
                raise RoomExhausted
            raise Malformed("gzip: deflate stream ends early", pos)
        room[written : written + len(output)] = output
        written += len(output)
        pos = len(source) - len(inflater.unused_data)
        if pos + GZIP_TRAILER.size > len(source):
            raise Malformed("gzip: trailer ends early", pos)
        if GZIP_TRAILER.unpack_from(source, pos) != (isal_zlib.crc32(output), len(output) & 0xFFFF_FFFF):
            raise Malformed("gzip: wrong CRC or size in the trailer", pos)
        pos += GZIP_TRAILER.size
        if len(source) - pos <= 18:
            return written
        pos = gzip_payload_start(source, pos)
        if pos < 0:
            return written


def gzip_payload_start(source: memoryview, pos: int) -> int:
    """Return the position after the gzip header at pos, -1 if there is none. Source: GZIPInputStream.readHeader."""
    start, end = pos, len(source)
    if end - pos < 10 or bytes(source[pos : pos + 3]) != b"\x1f\x8b\x08":
        return -1
    flags = source[pos + 3]
    pos += 10
    if flags & GZIP_EXTRA:
        if end - pos < 2:
            return -1
        pos += 2 + int.from_bytes(source[pos : pos + 2], "little")
    for flag in (GZIP_NAME, GZIP_COMMENT):
        if flags & flag:
            while pos < end and source[pos]:
                pos += 1
            pos += 1
    if flags & GZIP_HEADER_CRC:
        if (
            pos + 2 > end
            or int.from_bytes(source[pos : pos + 2], "little") != isal_zlib.crc32(source[start:pos]) & 0xFFFF
        ):
            return -1
        pos += 2
    return pos if pos <= end else -1
