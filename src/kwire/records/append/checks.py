"""Checks before a broker assigns offsets: headers, sizes, checksums, order. Records are not decoded.

Source: kafka.log.UnifiedLog.analyzeAndValidateRecords, append 3.9.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kwire.errors import CorruptBatch
from kwire.records.append.settings import AppendOrigin
from kwire.records.attributes import NO_TIMESTAMP, Compression
from kwire.records.format.append_error import AppendErrorCode, RejectedRecords
from kwire.records.format.batch import Batch
from kwire.records.format.legacy_entries import known_codec
from kwire.records.format.record_set import read_batches

__all__ = ["AppendInfo", "analyze_append", "check_given_offsets"]


class AppendInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of the headers of records to append.

    first_offset: of the first batch in magic 2; of a wrapper of magic 0 or 1 only its last offset is in the header.
    last_offset, last_leader_epoch: of the last batch, -1 without one.
    max_timestamp, offset_of_max_timestamp: largest timestamp, and the last offset of the earliest batch that has it.
    source_codec: of the last compressed batch.
    valid_bytes: of whole batches; bytes after them are cut off (A-06).
    offsets_monotonic: whether each batch's last offset is above the one before.
    batch_count: whole batches.
    """

    first_offset: int
    last_offset: int
    last_leader_epoch: int
    max_timestamp: int
    offset_of_max_timestamp: int
    source_codec: Compression
    valid_bytes: int
    offsets_monotonic: bool
    batch_count: int


def analyze_append(
    buf: bytes | bytearray | memoryview,
    *,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    leader_epoch: int = -1,
    max_message_bytes: int | None = None,
    segment_bytes: int | None = None,
    topic_partition: str | None = None,
) -> AppendInfo:
    """Check headers and checksums of the batches of buf (A-01 to A-07).

    leader_epoch: the current one, required in batches of a raft leader. max_message_bytes: maximum of a batch, ignored
    for replication. segment_bytes: maximum of all batches. None: no limit.
    Raises RejectedRecords with Kafka's error code.
    """
    where = f" in topic partition {topic_partition}" if topic_partition else ""
    batches: list[Batch] = []
    try:
        for batch in read_batches(buf):
            check_batch(batch, origin, leader_epoch, max_message_bytes, where)
            batches.append(batch)
    except CorruptBatch as error:
        raise RejectedRecords(error.what, AppendErrorCode.CORRUPT_MESSAGE) from None
    valid_bytes = sum(batch.size_bytes for batch in batches)
    if segment_bytes is not None and valid_bytes > segment_bytes:
        raise RejectedRecords(
            f"Message batch size is {valid_bytes} bytes{where}, above the segment size of {segment_bytes}",
            AppendErrorCode.RECORD_LIST_TOO_LARGE,
        )
    return summary(batches, valid_bytes)


def check_batch(
    batch: Batch, origin: AppendOrigin, leader_epoch: int, max_message_bytes: int | None, where: str
) -> None:
    """Check A-01 to A-04 for one batch."""
    if origin == AppendOrigin.RAFT_LEADER and batch.partition_leader_epoch != leader_epoch:
        raise RejectedRecords(
            f"Raft leader's batch has leader epoch {batch.partition_leader_epoch}, {leader_epoch} is current{where}",
            AppendErrorCode.INVALID_RECORD,
        )
    if origin == AppendOrigin.CLIENT and batch.magic == 2 and batch.base_offset != 0:
        raise RejectedRecords(
            f"The baseOffset of the record batch in the append{where} should be 0, but it is {batch.base_offset}",
            AppendErrorCode.INVALID_RECORD,
        )
    if origin != AppendOrigin.REPLICATION and max_message_bytes is not None and batch.size_bytes > max_message_bytes:
        raise RejectedRecords(
            f"The record batch size{where} is {batch.size_bytes} bytes which exceeds the maximum configured value of "
            f"{max_message_bytes}.",
            AppendErrorCode.MESSAGE_TOO_LARGE,
        )
    if not batch.is_valid:
        raise RejectedRecords(
            f"Record is corrupt (stored crc = {batch.crc}, computed crc = {batch.computed_crc()}){where}",
            AppendErrorCode.CORRUPT_MESSAGE,
        )


def summary(batches: Sequence[Batch], valid_bytes: int) -> AppendInfo:
    """Summarize the headers."""
    last_offset, monotonic = -1, True
    largest, offset_of_max = NO_TIMESTAMP, -1
    codec = Compression.NONE
    for batch in batches:
        monotonic &= batch.last_offset > last_offset
        last_offset = batch.last_offset
        if batch.max_timestamp > largest:
            largest, offset_of_max = batch.max_timestamp, batch.last_offset
        codec = known_codec(batch) or codec
    first = batches[0] if batches else None
    return AppendInfo(
        first_offset=-1 if first is None else first.base_offset if first.magic == 2 else first.last_offset,
        last_offset=last_offset,
        last_leader_epoch=batches[-1].partition_leader_epoch if batches else -1,
        max_timestamp=largest,
        offset_of_max_timestamp=offset_of_max,
        source_codec=codec,
        valid_bytes=valid_bytes,
        offsets_monotonic=monotonic,
        batch_count=len(batches),
    )


def check_given_offsets(info: AppendInfo, log_end_offset: int) -> None:
    """Check records that already have offsets, as followers receive them (A-05).

    Raises RejectedRecords if offsets do not ascend, or begin below the end of the log.
    """
    if not info.offsets_monotonic:
        raise RejectedRecords("Out of order offsets found in append", AppendErrorCode.UNKNOWN_SERVER_ERROR)
    if info.batch_count and info.first_offset < log_end_offset:
        raise RejectedRecords(
            f"Unexpected offset in append. First offset {info.first_offset} is less than the next offset "
            f"{log_end_offset}.",
            AppendErrorCode.UNKNOWN_SERVER_ERROR,
        )
