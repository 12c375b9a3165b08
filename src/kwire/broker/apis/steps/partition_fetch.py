"""Fetch from one partition: locate the records to return, up to the high watermark or last stable offset.

Only batch headers are read; records stay in their files until the response is sent. The exception is a version of Fetch
that does not support the topic's record format: records in that format are read and down-converted in memory by a
worker thread (KIP-31, KIP-283). Batches written before the topic's format was raised need no conversion.

Source: kafka.server.ReplicaManager.readFromLog, KafkaApis.handleFetchRequest.maybeConvertFetchedData 3.9.1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.broker.topics import Partition
from kwire.errors import BrokerError, CorruptBatch, KwireError
from kwire.messages import FetchResponse
from kwire.messages.fetch_response import EpochEndOffset, PartitionData
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records.append.request_magic import fetch_magic
from kwire.records.convert.fetch_conversion import FetchConversion

if TYPE_CHECKING:
    from kwire.broker.responses import Piece
    from kwire.log.writing.log_reads import Fetched
    from kwire.log.writing.partition_writer import PartitionWriter
    from kwire.messages.fetch_request import FetchPartition

__all__ = ["READ_COMMITTED", "WHOLE_BATCH_VERSION", "FetchedPartition", "error_code", "failure", "fetch_partition"]

READ_COMMITTED = 1
WHOLE_BATCH_VERSION = 3
"""From this version on, the first batch of a response is whole, and that of another partition is whole or absent."""
ZSTD_VERSION = 10


@dataclass(slots=True, kw_only=True)
class FetchedPartition:
    """The result of one partition. data: its response without records; payload: the records, in pieces.

    conversion: reads the records on the broker's thread and returns a function that down-converts them on any thread;
    None if no conversion is needed.
    """

    data: PartitionData
    payload: Sequence[Piece] = field(default_factory=tuple)
    size_bytes: int = 0
    conversion: Callable[[], Callable[[], FetchedPartition]] | None = None


def fetch_partition(
    partition: Partition,
    log: PartitionWriter,
    request: FetchPartition,
    version: int,
    isolation_level: int,
    max_bytes: int,
    *,
    at_least_one: bool,
) -> FetchedPartition:
    """Fetch from one partition, whose open log is given. max_bytes: remaining size of the response.

    at_least_one: return the first batch even if it exceeds the limits. Raises BrokerError, LogError, CorruptBatch.
    """
    high_watermark, last_stable_offset = log.high_watermark, log.last_stable_offset
    data = PartitionData(
        partition_index=request.partition,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=None,
        records=b"",
    )
    if request.last_fetched_epoch >= 0:
        diverging = diverging_epoch(partition, request)
        if diverging is not None:
            data.diverging_epoch = diverging
            return FetchedPartition(data=data)
    offset = request.fetch_offset
    if not log.log_start_offset <= offset <= log.log_end_offset:
        raise refusal(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {partition.name} is not in [{log.log_start_offset}, {log.log_end_offset}]",
        )
    committed = isolation_level == READ_COMMITTED
    up_to = min(high_watermark, last_stable_offset) if committed else high_watermark
    limit = max(0, min(max_bytes, request.partition_max_bytes))
    may_cut_first = version < WHOLE_BATCH_VERSION
    fetched = log.fetch(offset, limit, up_to=up_to, at_least_one=at_least_one, may_cut_first=may_cut_first)
    if committed:
        data.aborted_transactions = [
            FetchResponse.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
            for each in log.aborted_transactions(offset, fetched.next_offset_bound)
        ]
    config = log.config
    if config.compression_type == "zstd" and version < ZSTD_VERSION:
        raise refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"{partition.name} is compressed with zstd")
    magic, conversion = fetch_magic(version), None
    if config.magic > magic and not fetched.has_compatible_magic(magic):
        if not config.message_downconversion_enable:
            raise refusal(ErrorCode.UNSUPPORTED_VERSION, "message.downconversion.enable is false")
        conversion = functools.partial(start_conversion, data, fetched, magic, offset)
    return FetchedPartition(data=data, payload=fetched.parts, size_bytes=fetched.size_bytes, conversion=conversion)


def error_code(error: KwireError) -> ErrorCode:
    """Return the error code for a failed fetch."""
    if isinstance(error, BrokerError):
        return ErrorCode(error.code)
    return ErrorCode.CORRUPT_MESSAGE if isinstance(error, CorruptBatch) else ErrorCode.KAFKA_STORAGE_ERROR


def failure(index: int, code: ErrorCode) -> FetchedPartition:
    """Build the result of a partition with an error."""
    return FetchedPartition(data=PartitionData(partition_index=index, error_code=code, high_watermark=-1, records=b""))


def start_conversion(
    data: PartitionData, fetched: Fetched, to_magic: int, offset: int
) -> Callable[[], FetchedPartition]:
    """Read the records and return a function that down-converts them. Raises LogError."""
    return functools.partial(convert, data, fetched.read(), to_magic, offset)


def convert(data: PartitionData, source: bytes, to_magic: int, offset: int) -> FetchedPartition:
    """Down-convert the records of one partition. Raises RejectedRecords, CorruptBatch."""
    conversion = FetchConversion(source, to_magic, offset)
    return FetchedPartition(data=data, payload=list(conversion.chunks()), size_bytes=conversion.size_bytes)


def diverging_epoch(partition: Partition, request: FetchPartition) -> EpochEndOffset | None:
    """Return where the log of a follower diverges from this one, None if it does not (KIP-595)."""
    epoch, end_offset = partition.opened.end_offset_for(request.last_fetched_epoch)
    if end_offset < 0 or epoch < 0:
        raise refusal(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition.name} has no leader epoch {request.last_fetched_epoch}"
        )
    if epoch < request.last_fetched_epoch or end_offset < request.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None
