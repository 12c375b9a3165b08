"""The manifest of a segment in tiered storage: `rsm-manifest`, JSON beside the segment's two objects.

    version              "1"
    chunkIndex           type, originalChunkSize, originalFileSize, and the sizes of the chunks in the `.log` object:
        fixed            transformedChunkSize, finalTransformedChunkSize
        variable         transformedChunks: base64 of one zstd frame of the sizes below
    segmentIndexes       offset, timestamp, producerSnapshot, leaderEpoch, transaction: position and size in `.indexes`
    compression          whether each chunk of `.log` is a zstd frame
    encryption           dataKey "key id:base64" (AES key, wrapped with RSA), aad: base64; absent when not encrypted
    remoteLogSegmentMetadata    topic, partition, ids, offsets; not read by the plugin itself

    sizes: int32 count | one value: int32 | more: int32 base, int8 n, (count - 1) * n bytes above base, int32 last

A segment is split into chunks of originalChunkSize, each compressed, then encrypted; the results are concatenated.
Manifests are untrusted input: this module checks their consistency, and the store checks them against object sizes.
Source: Aiven-Open/tiered-storage-for-apache-kafka 1.0.0, SegmentManifestV1, AbstractChunkIndex, ChunkSizesBinaryCodec.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import uuid
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from kwire.errors import LogError, Malformed
from kwire.identifiers import MAX_OFFSET, parse_uuid
from kwire.records.attributes import Compression
from kwire.records.compression.codecs import TooLarge, expand

MAX_INT32 = (1 << 31) - 1
MAX_ENCODED_SIZES = 10 << 20  # the plugin's own limit for the decoded form of transformedChunks
MAX_CHUNKS = 1 << 20  # a segment of 2 GiB in chunks of 2 KiB; the plugin's default is 4 MiB
INDEX_KINDS = {"offset": "index", "timestamp": "timeindex", "transaction": "txnindex", "producerSnapshot": "snapshot"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """The positions of a segment's chunks.

    file_bytes: original size of the segment. chunk_bytes: original size of a chunk; the last may be shorter.
    ends: position after each chunk in the `.log` object.
    """

    file_bytes: int
    chunk_bytes: int
    ends: array[int]

    def at(self, position: int) -> int:
        """Return the number of the chunk that holds a position of the segment."""
        return position // self.chunk_bytes

    def stored(self, chunk: int) -> tuple[int, int]:
        """Return [start, end) of a chunk in the object."""
        return self.ends[chunk - 1] if chunk else 0, self.ends[chunk]

    def original(self, chunk: int) -> tuple[int, int]:
        """Return [start, end) of a chunk in the segment."""
        start = chunk * self.chunk_bytes
        return start, min(start + self.chunk_bytes, self.file_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encryption:
    """The wrapped key of a segment. key_id: the RSA key pair. aad: additional authenticated data of each chunk."""

    key_id: str
    wrapped_key: bytes
    aad: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One segment in tiered storage.

    indexes: kind of file (index, timeindex, txnindex, snapshot, leader-epochs) -> (position, size) in `.indexes`.
    copied_ms: time of the copy, in ms since the epoch.
    """

    topic: str
    partition: int
    topic_id: uuid.UUID
    base_offset: int
    last_offset: int
    copied_ms: int
    chunks: Chunks
    compression: bool
    encryption: Encryption | None
    indexes: Mapping[str, tuple[int, int]]

    @property
    def is_plain(self) -> bool:
        """Whether the `.log` object is identical to the segment."""
        return not self.compression and self.encryption is None


def parse_manifest(data: bytes, url: str) -> Manifest:
    """Parse and check a manifest. Raises LogError naming url and field."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise LogError(f"not a segment manifest: {error}", url) from None
    fields = Fields(document, url, "the manifest")
    version = fields.get("version")
    if version != "1":
        raise LogError(f"segment manifest has version {version!r}, expected '1'; upgrade kwire", url)
    metadata = fields.object("remoteLogSegmentMetadata")
    topic_id_partition = metadata.object("remoteLogSegmentId").object("topicIdPartition")
    topic_partition = topic_id_partition.object("topicPartition")
    base_offset = metadata.integer("startOffset", MAX_OFFSET)
    return Manifest(
        topic=topic_partition.text("topic"),
        partition=topic_partition.integer("partition", MAX_INT32),
        topic_id=topic_id_partition.uuid("topicId"),
        base_offset=base_offset,
        last_offset=metadata.integer("endOffset", MAX_OFFSET, at_least=base_offset),
        copied_ms=metadata.integer("eventTimestampMs", MAX_OFFSET),
        chunks=parse_chunks(fields.object("chunkIndex")),
        compression=fields.boolean("compression"),
        encryption=parse_encryption(fields),
        indexes=parse_indexes(fields.object("segmentIndexes")),
    )


def parse_chunks(fields: Fields) -> Chunks:
    """Parse `chunkIndex`. Raises LogError."""
    chunk_bytes = fields.integer("originalChunkSize", MAX_INT32, at_least=1)
    file_bytes = fields.integer("originalFileSize", MAX_INT32)
    count = -(-file_bytes // chunk_bytes)
    if count > MAX_CHUNKS:
        fields.refuse(f"{count} chunks, expected at most {MAX_CHUNKS}")
    kind = fields.get("type")
    if kind == "fixed":
        size, last = (fields.integer(name, MAX_INT32) for name in ("transformedChunkSize", "finalTransformedChunkSize"))
        sizes = [size] * (count - 1) + [last] * min(count, 1)
    elif kind == "variable":
        sizes = decode_sizes(fields.base64("transformedChunks"), count, fields)
    else:
        fields.refuse(f"type {str(kind)[:40]!r}, expected 'fixed' or 'variable'")
    return Chunks(file_bytes=file_bytes, chunk_bytes=chunk_bytes, ends=array("q", itertools.accumulate(sizes)))


def decode_sizes(compressed: bytes, count: int, fields: Fields) -> list[int]:
    """Decode `transformedChunks`: the sizes of `count` chunks. Raises LogError."""
    try:
        data = bytes(expand(Compression.ZSTD, 2, memoryview(compressed), MAX_ENCODED_SIZES))
    except (Malformed, TooLarge) as error:
        fields.refuse(f"transformedChunks: {error}")
    said = int.from_bytes(data[:4], "big", signed=True)
    if len(data) < 4 or said != count:
        fields.refuse(f"transformedChunks has {said} sizes, the segment has {count} chunks")
    if count < 2:
        values, expected = [data[4:8]] if count else [], 4 + 4 * count
    else:
        width = data[8] if len(data) > 8 else 0
        if not 1 <= width <= 4:
            fields.refuse(f"transformedChunks: {width} bytes per size, expected 1 to 4")
        expected = 9 + (count - 1) * width + 4
        values = [data[at : at + width] for at in range(9, expected - 4, width)]
        values.append(data[expected - 4 : expected])
    if len(data) != expected:
        fields.refuse(f"transformedChunks has {len(data)} bytes, expected {expected} for {count} sizes")
    base = int.from_bytes(data[4:8], "big")
    sizes = [int.from_bytes(value, "big") + base for value in values[:-1]]
    sizes += [int.from_bytes(value, "big") for value in values[-1:]]
    if any(size > MAX_INT32 for size in sizes):
        fields.refuse("transformedChunks has a size above 2^31-1")
    return sizes


def parse_encryption(fields: Fields) -> Encryption | None:
    """Parse `encryption`; None for a segment that is not encrypted. Raises LogError."""
    if fields.get("encryption") is None:
        return None
    inner = fields.object("encryption")
    key_id, colon, wrapped = inner.text("dataKey").partition(":")
    if not colon or not key_id.strip():
        inner.refuse("dataKey is not 'key id:base64'")
    return Encryption(key_id=key_id, wrapped_key=inner.decode("dataKey", wrapped), aad=inner.base64("aad"))


def parse_indexes(fields: Fields) -> dict[str, tuple[int, int]]:
    """Parse `segmentIndexes`: position and size of each index in the `.indexes` object. Raises LogError."""
    indexes = {}
    for name, kind in {**INDEX_KINDS, "leaderEpoch": "leader-epochs"}.items():
        if name == "transaction" and fields.get(name) is None:
            continue  # the segment has no aborted transactions
        place = fields.object(name)
        indexes[kind] = (place.integer("position", MAX_INT32), place.integer("size", MAX_INT32))
    return indexes


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object with typed access to its fields; a field of another type raises LogError naming it."""

    values: Any
    url: str
    where: str

    def __post_init__(self) -> None:
        if not isinstance(self.values, dict):
            raise LogError(f"{self.where}: expected a JSON object", self.url)

    def refuse(self, what: str) -> NoReturn:
        """Raise LogError with the path of this object."""
        raise LogError(f"{self.where}: {what}", self.url)

    def get(self, name: str) -> Any:
        """Return the raw value of a field, None if it is missing."""
        return self.values.get(name)

    def object(self, name: str) -> Fields:
        """Return a field that is an object."""
        return Fields(self.get(name), self.url, name)

    def integer(self, name: str, largest: int, *, at_least: int = 0) -> int:
        """Return a field that is a number in [at_least, largest]."""
        value = self.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= largest:
            self.refuse(f"{name} is {str(value)[:40]!r}, expected a number from {at_least} to {largest}")
        return int(value)

    def boolean(self, name: str) -> bool:
        """Return a field that is true or false."""
        value = self.get(name)
        if not isinstance(value, bool):
            self.refuse(f"{name} is {str(value)[:40]!r}, expected true or false")
        return bool(value)

    def text(self, name: str) -> str:
        """Return a field that is a string."""
        value = self.get(name)
        if not isinstance(value, str):
            self.refuse(f"{name} is {str(value)[:40]!r}, expected a string")
        return str(value)

    def uuid(self, name: str) -> uuid.UUID:
        """Return a field that is a uuid in Kafka's text form."""
        try:
            return parse_uuid(self.text(name))
        except Malformed as error:
            self.refuse(f"{name}: {error.what}")

    def base64(self, name: str) -> bytes:
        """Return the bytes of a field in base64."""
        return self.decode(name, self.text(name))

    def decode(self, name: str, text: str) -> bytes:
        """Decode base64 text of the field `name`."""
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            self.refuse(f"{name} is not base64: {error}")
