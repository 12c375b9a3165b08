"""Rules for single records on append (A-14 to A-18), with Kafka's error messages.

Source: KIP-467; org.apache.kafka.storage.internals.log.LogValidator.validateRecord, processRecordErrors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kwire.records.append.settings import UNLIMITED_MS, AppendSettings
from kwire.records.attributes import CODEC_MASK, NO_TIMESTAMP, TimestampType
from kwire.records.format.append_error import AppendErrorCode, RejectedRecords
from kwire.records.format.batch import Batch
from kwire.records.format.legacy_entries import LegacyEntry
from kwire.records.format.wrapping import to_int64

__all__ = ["RecordToCheck", "check_records", "timestamps_may_be_wrong"]

ERRORS_SHOWN = 3  # in the text; all of them are in record_errors


class RecordToCheck(NamedTuple):
    """A record of any magic. shown: its form in Kafka's messages, by str()."""

    offset: int
    timestamp: int
    key: bytes | memoryview | None
    value: bytes | memoryview | None
    headers: list[tuple[str, bytes | None]]
    magic: int
    shown: LegacyEntry | str


class RecordError(NamedTuple):
    """The error of one record."""

    batch_index: int
    message: str
    is_timestamp: bool


def timestamps_may_be_wrong(batch: Batch, smallest: int, largest: int, given: AppendSettings) -> bool:
    """Whether a record may break A-16 or A-17, judging by the smallest and largest timestamp of a batch."""
    if given.timestamp_type == TimestampType.CREATE_TIME:
        before, after = given.message_timestamp_before_max_ms, given.message_timestamp_after_max_ms
        limited = before < UNLIMITED_MS or after < UNLIMITED_MS
        if limited and (given.now_ms - smallest > before or largest - given.now_ms > after):
            return True
    return batch.timestamp_type == TimestampType.LOG_APPEND_TIME


def check_records(batch: Batch, records: Sequence[RecordToCheck], given: AppendSettings) -> None:
    """Raise RejectedRecords with every record that breaks a rule; stops at the first wrong inner checksum."""
    errors = []
    for index, record in enumerate(records):
        error = check_record(batch, record, index, given)
        if error is not None:
            errors.append(error)
    if not errors:
        return
    named = [(error.batch_index, error.message) for error in errors]
    if any(error.is_timestamp for error in errors):
        raise RejectedRecords(
            "One or more records have been rejected due to invalid timestamp", AppendErrorCode.INVALID_TIMESTAMP, named
        )
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in named[:ERRORS_SHOWN])
    raise RejectedRecords(
        f"One or more records have been rejected due to {len(named)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]",
        AppendErrorCode.INVALID_RECORD,
        named,
    )


def check_record(batch: Batch, record: RecordToCheck, index: int, given: AppendSettings) -> RecordError | None:
    """Return the error for the first rule that a record breaks, or None."""
    if record.magic != batch.magic:
        return RecordError(
            index, f"Record {record.shown}'s magic does not match outer magic {batch.magic}{given.where}", False
        )
    if isinstance(record.shown, LegacyEntry) and batch.attributes & CODEC_MASK:
        stored, computed = record.shown.crc, record.shown.computed_crc
        if stored != computed:
            raise RejectedRecords(
                f"Record is corrupt (stored crc = {stored}, computed crc = {computed})", AppendErrorCode.CORRUPT_MESSAGE
            )
    if given.compacted and record.key is None:
        return RecordError(index, f"Compacted topic cannot accept message without key{given.where}", False)
    return check_timestamp(batch, record, index, given)


def check_timestamp(batch: Batch, record: RecordToCheck, index: int, given: AppendSettings) -> RecordError | None:
    """Check the rules for timestamps, A-16 and A-17."""
    if given.timestamp_type == TimestampType.CREATE_TIME and record.timestamp != NO_TIMESTAMP:
        before, after = given.message_timestamp_before_max_ms, given.message_timestamp_after_max_ms
        age = to_int64(given.now_ms - record.timestamp)
        if age > before or to_int64(-age) > after:
            return RecordError(
                index,
                f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. The timestamp "
                f"should be within [{to_int64(given.now_ms - before)}, {to_int64(given.now_ms + after)}]",
                True,
            )
    elif batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        return RecordError(
            index,
            f"Invalid timestamp type in message {record.shown}. "
            "Producer should not set timestamp type to LogAppendTime.",
            True,
        )
    return None
