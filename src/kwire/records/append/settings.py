"""Context of an append: the origin of the records and the topic's configs, by Kafka's names.

Source: org.apache.kafka.storage.internals.log.AppendOrigin, LogValidator, TopicConfig.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Required, TypedDict

from kwire.errors import OptionError
from kwire.records.attributes import Compression, TimestampType
from kwire.records.compression.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.compression.compressor import check_level, parse_compression
from kwire.records.format.default_writer import MAX_INT64

__all__ = ["UNLIMITED_MS", "AppendOrigin", "AppendSettings"]

UNLIMITED_MS = MAX_INT64
TIMESTAMP_TYPES = (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)


class AppendOrigin(enum.Enum):
    """Sender of records: only records of clients get all checks."""

    CLIENT = "CLIENT"
    REPLICATION = "REPLICATION"
    COORDINATOR = "COORDINATOR"
    RAFT_LEADER = "RAFT_LEADER"


class AppendOptions(TypedDict, total=False):
    """Keyword arguments of validate_and_assign_offsets."""

    now_ms: Required[int]
    to_magic: int
    compression_type: str | Compression
    compression_level: int | None
    message_timestamp_type: TimestampType | str
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    compacted: bool
    leader_epoch: int
    origin: AppendOrigin
    max_message_bytes: int | None
    zstd_allowed: bool
    topic_partition: str | None
    max_decompressed_bytes: int
    max_decompressed_message_bytes: int | None
    check_crc: bool


@dataclass(slots=True, kw_only=True)  # frozen, it would take twice as long to create: once for each batch
class AppendSettings:
    """The keyword arguments of validate_and_assign_offsets, checked. Raises OptionError.

    timestamp_type: message_timestamp_type, which is also accepted as its config value: CreateTime or LogAppendTime.
    """

    now_ms: int
    to_magic: int = 2
    compression_type: str | Compression = "producer"
    compression_level: int | None = None
    message_timestamp_type: TimestampType | str = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = UNLIMITED_MS
    message_timestamp_after_max_ms: int = UNLIMITED_MS
    compacted: bool = False
    leader_epoch: int = -1
    origin: AppendOrigin = AppendOrigin.CLIENT
    max_message_bytes: int | None = None
    zstd_allowed: bool = True
    topic_partition: str | None = None
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    max_decompressed_message_bytes: int | None = None
    check_crc: bool = True
    timestamp_type: TimestampType = field(init=False)

    def __post_init__(self) -> None:
        if self.to_magic not in (0, 1, 2):
            raise OptionError(f"unsupported to_magic {self.to_magic}; expected 0, 1 or 2")
        if not 0 <= self.now_ms <= MAX_INT64:
            raise OptionError(f"now_ms {self.now_ms} is out of range: milliseconds since 1970")
        if not -1 <= self.leader_epoch < 1 << 31:
            raise OptionError(f"leader_epoch {self.leader_epoch} is out of range: an int32 from 0, or -1")
        if self.compression_type != "producer":
            check_level(parse_compression(self.compression_type), self.compression_level)
        self.timestamp_type = parse_timestamp_type(self.message_timestamp_type)

    @property
    def where(self) -> str:
        """The end of Kafka's error messages, with the topic and partition."""
        return f" in topic partition {self.topic_partition}" if self.topic_partition else ""

    def target_codec(self, source: Compression) -> Compression:
        """Codec to store with: the topic's, or the one the producer used."""
        return source if self.compression_type == "producer" else parse_compression(self.compression_type)


def parse_timestamp_type(given: TimestampType | str) -> TimestampType:
    """Return the timestamp type of a topic, given as itself or as a config value. Raises OptionError."""
    for kind in TIMESTAMP_TYPES:
        if given is kind or given == kind.text:
            return kind
    raise OptionError(f"unknown message_timestamp_type {given!r}; expected CreateTime or LogAppendTime")
