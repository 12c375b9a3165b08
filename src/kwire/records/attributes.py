"""The attributes field of a batch, and the values that mean "none".

    bit    magic 0   magic 1          magic 2
    0-2    codec     codec            codec
    3                timestamp type   timestamp type
    4                                 transactional
    5                                 control batch
    6                                 base timestamp is a delete horizon

Magic 0 and 1 have one byte, magic 2 two, of which the high one is unused; unknown bits are kept and ignored.
Source: KIP-32, KIP-98, KIP-534; org.apache.kafka.common.record.DefaultRecordBatch, LegacyRecord, CompressionType.
"""

from __future__ import annotations

import enum

__all__ = [
    "CODEC_MASK",
    "CONTROL_FLAG",
    "DELETE_HORIZON_FLAG",
    "HIGHEST_CODEC",
    "LOG_APPEND_TIME_FLAG",
    "NO_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "TRANSACTIONAL_FLAG",
    "Compression",
    "TimestampType",
]

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1


class Compression(enum.IntEnum):
    """Compression codec of a batch, by its number in the attributes. 5 to 7 are not assigned."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def text(self) -> str:
        """The name in Kafka's configs: none, gzip, snappy, lz4, zstd."""
        return self.name.lower()


HIGHEST_CODEC = int(max(Compression))


class TimestampType(enum.IntEnum):
    """Meaning of a record's timestamp. The numbers are Kafka's ids, as in Spark's timestampType column."""

    NO_TIMESTAMP_TYPE = -1  # magic 0 has no timestamps
    CREATE_TIME = 0  # set by the producer
    LOG_APPEND_TIME = 1  # set by the broker, one for the whole batch

    @property
    def text(self) -> str:
        """The name Kafka's tools print: NoTimestampType, CreateTime, LogAppendTime."""
        return "".join(part.capitalize() for part in self.name.split("_"))
