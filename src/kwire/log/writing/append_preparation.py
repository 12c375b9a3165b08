"""Check produced records and assign their offsets, before anything is written.

Preparation reads a topic's configs and the log's end only, so any thread may do it while other records are appended. A
small batch may decompress to 100 MB or contain millions of records: `is_quick` estimates the work from its header.
Source: kafka.log.UnifiedLog.append; rules A-01 to A-26.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kwire import native
from kwire.log.writing.log_config import MAX_ARRAY_BYTES, LogConfig
from kwire.records import (
    AppendOrigin,
    Compression,
    TimestampType,
    ValidatedRecords,
    validate_and_assign_offsets,
)
from kwire.records.append.checks import analyze_append
from kwire.records.append.request_magic import PRODUCE_ZSTD_VERSION, check_produced
from kwire.records.append.settings import AppendOptions
from kwire.records.append.whole_batch import WholeBatch, WholeBatchConfig, take_whole_batch
from kwire.records.attributes import CODEC_MASK
from kwire.records.compression.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.format.append_error import AppendErrorCode, TooMuchWork
from kwire.records.format.batch_header import DEFAULT_HEADER, MAGIC_POSITION

__all__ = ["AppendPreparation", "Data", "Prepared", "is_quick", "quick_bytes"]

Data = bytes | bytearray | memoryview

FAST_PATH_ORIGINS = (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR)
VERSIONS_WITHOUT_ZSTD = range(3, PRODUCE_ZSTD_VERSION)
"""Versions of Produce whose batches are checked for their codec as well."""
TIMESTAMP_TYPES = {kind.text: kind for kind in (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)}
QUICK_COMPRESSED_BYTES = 16 * 1024
"""Maximum size of a compressed batch that is processed in the event loop."""
QUICK_REBUILT_BYTES, QUICK_REBUILT_RECORDS = 4096, 50
"""Maximum size of a batch that is rebuilt in the event loop: 20 us per record, and gzip 30 us per kilobyte."""
QUICK_RECORDS, QUICK_RECORDS_COMPILED = 1000, 100_000
QUICK_BYTES, QUICK_BYTES_COMPILED = 64 * 1024, 1024 * 1024
"""Maximum decompressed size of a batch that is validated in the event loop."""


@dataclass(slots=True, kw_only=True)
class Prepared:
    """Produced records, checked and with offsets from first_offset on, but not written yet.

    whole, checked: the result of the fast or the general path; both None if there is nothing to append. The other
    fields are the arguments of PartitionWriter.prepare.
    """

    data: Data
    first_offset: int
    now_ms: int
    leader_epoch: int
    origin: AppendOrigin
    produce_version: int | None
    whole: WholeBatch | None = None
    checked: ValidatedRecords | None = None

    def moved_to(self, first_offset: int) -> Prepared | None:
        """Return the records with offsets from first_offset on; None if they have to be prepared again."""
        shift = first_offset - self.first_offset
        whole = None if self.whole is None else self.whole.moved(shift)
        checked = None if self.checked is None else self.checked.moved(shift)
        if whole is None and checked is None:
            return None
        return replace(self, first_offset=first_offset, whole=whole, checked=checked)


class AppendPreparation:
    """Prepares records for one partition under one set of configs."""

    def __init__(self, topic_partition: str, config: LogConfig) -> None:
        self._name, self._config = topic_partition, config
        self._codec = None if config.codec == "producer" else Compression[config.codec.upper()]
        timestamp_type = TIMESTAMP_TYPES[config.message_timestamp_type]
        most = config.max_decompressed_message_bytes
        record_limit = None if most == MAX_ARRAY_BYTES else most
        self._acceptance = (
            WholeBatchConfig(
                codec=self._codec,
                max_message_bytes=config.max_message_bytes,
                message_timestamp_before_max_ms=config.message_timestamp_before_max_ms,
                message_timestamp_after_max_ms=config.message_timestamp_after_max_ms,
                compacted=config.is_compacted,
            )
            if config.magic == 2 and timestamp_type == TimestampType.CREATE_TIME and record_limit is None
            else None  # no fast path
        )
        self._options = AppendOptions(
            now_ms=0,
            to_magic=config.magic,
            compression_type=config.codec,
            compression_level=config.compression_level,
            message_timestamp_type=timestamp_type,
            message_timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            message_timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            compacted=config.is_compacted,
            max_message_bytes=config.max_message_bytes,
            topic_partition=topic_partition,
            max_decompressed_message_bytes=record_limit,
            check_crc=False,
        )

    def prepare(
        self,
        data: Data,
        first_offset: int,
        *,
        now_ms: int,
        leader_epoch: int,
        origin: AppendOrigin,
        produce_version: int | None,
        quick: bool,
    ) -> Prepared:
        """Check records and assign offsets from first_offset on; arguments as for PartitionWriter.prepare.

        Raises RejectedRecords; TooMuchWork with quick.
        """
        if quick and not is_quick(data, magic=self._config.magic, codec=self._codec):
            raise TooMuchWork("records take too long to validate", AppendErrorCode.INVALID_RECORD)
        max_decompressed_bytes = quick_bytes() if quick else DEFAULT_MAX_DECOMPRESSED_BYTES
        prepared = Prepared(
            data=data,
            first_offset=first_offset,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
            origin=origin,
            produce_version=produce_version,
        )
        topic = self._acceptance
        if topic is not None and origin in FAST_PATH_ORIGINS and produce_version not in VERSIONS_WITHOUT_ZSTD:
            prepared.whole = take_whole_batch(
                data,
                first_offset,
                now_ms=now_ms,
                leader_epoch=leader_epoch,
                topic=topic,
                max_decompressed_bytes=max_decompressed_bytes,
            )
            if prepared.whole is not None:
                return prepared
        if produce_version is not None:
            check_produced(data, produce_version)
        info = analyze_append(
            data,
            origin=origin,
            leader_epoch=leader_epoch,
            max_message_bytes=self._config.max_message_bytes,
            topic_partition=self._name,
        )
        if info.valid_bytes > 0:
            options = self._options.copy()
            options["now_ms"], options["leader_epoch"], options["origin"] = now_ms, leader_epoch, origin
            options["max_decompressed_bytes"] = max_decompressed_bytes
            prepared.checked = validate_and_assign_offsets(data, first_offset, **options)
        return prepared


def quick_bytes() -> int:
    """Return the number of bytes that records may decompress to in the event loop."""
    return QUICK_BYTES_COMPILED if native.LEVEL is not None else QUICK_BYTES


def is_quick(data: bytes | bytearray | memoryview, *, magic: int, codec: Compression | None) -> bool:
    """Return whether records can be checked in about a millisecond, unless they decompress to more than quick_bytes().

    magic, codec: the topic's format, and its codec if it has one.
    """
    if len(data) < DEFAULT_HEADER.size:
        return True
    if data[MAGIC_POSITION] != 2 or magic != 2:
        return len(data) <= QUICK_REBUILT_BYTES
    fields = DEFAULT_HEADER.unpack_from(data)
    batch_codec, count = fields[5] & CODEC_MASK, fields[-1]
    if codec is not None and codec != batch_codec:
        return len(data) <= QUICK_REBUILT_BYTES and count <= QUICK_REBUILT_RECORDS
    if batch_codec and len(data) > QUICK_COMPRESSED_BYTES:
        return False
    compiled = native.LEVEL is not None
    if not batch_codec and not compiled and count > 1 and len(data) > QUICK_BYTES:
        return False
    return bool(count <= (QUICK_RECORDS_COMPILED if compiled else QUICK_RECORDS))
