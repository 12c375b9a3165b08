"""What one partition gives to a fetch: where its records are, up to where they may be read, in which format.

Nothing is read here but batch headers; records are positions in files until they are sent. The exception is an old
client whose version of Fetch cannot carry the topic's format: where a stored batch has that format, the records are
read and converted in memory, by another thread (KIP-31, KIP-283). Batches from before the topic's format was raised go
out unconverted.
Source: kafka.server.ReplicaManager.readFromLog, KafkaApis.handleFetchRequest.maybeConvertFetchedData 3.9.1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.broker.topics import Partition
from kwire.errors import BrokerError, CorruptBatch, KwireError
from kwire.messages import FetchResponse
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records.fetch_conversion import FetchConversion
from kwire.records.request_magic import fetch_magic

if TYPE_CHECKING:
    from kwire.broker.responses import Piece
    from kwire.log.log_reads import Fetched

__all__ = ["READ_COMMITTED", "Found", "check_leader_epoch", "error_code", "failure", "fetch_partition"]

READ_COMMITTED = 1
ZSTD_VERSION = 10

PartitionData = FetchResponse.PartitionData


@dataclass(slots=True, kw_only=True)
class Found:
    """One partition's part of the answer. data: its fields without records; payload: the records, in pieces.

    conversion: how the records get another format, which is nearly never needed. It reads them; what it returns does
    the rest in any thread.
    """

    data: Any
    payload: Sequence[Piece] = field(default_factory=tuple)
    size_bytes: int = 0
    conversion: Callable[[], Callable[[], Found]] | None = None


def fetch_partition(
    partition: Partition, asked: Any, version: int, isolation_level: int, max_bytes: int, *, at_least_one: bool
) -> Found:
    """Read one partition for a client. asked: FetchPartition; max_bytes: what is left for it in the answer.

    at_least_one: the first batch is given even if it is larger.
    """
    try:
        return _fetch(partition, asked, version, isolation_level, max_bytes, at_least_one)
    except KwireError as error:
        return failure(asked.partition, error_code(error))


def error_code(error: KwireError) -> ErrorCode:
    """The error code for a client."""
    if isinstance(error, BrokerError):
        return ErrorCode(error.code)
    return ErrorCode.CORRUPT_MESSAGE if isinstance(error, CorruptBatch) else ErrorCode.KAFKA_STORAGE_ERROR


def failure(index: int, code: ErrorCode) -> Found:
    """The answer about a partition that gives nothing."""
    return Found(data=PartitionData(partition_index=index, error_code=code, high_watermark=-1, records=b""))


def check_leader_epoch(partition: Partition, asked_epoch: int) -> None:
    """Raises BrokerError when a client's leader epoch is older or newer than the partition's."""
    if asked_epoch >= 0 and asked_epoch != partition.leader_epoch:
        older = asked_epoch < partition.leader_epoch
        raise refusal(
            ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"{partition.name} has leader epoch {partition.leader_epoch}, not {asked_epoch}",
        )


def _fetch(
    partition: Partition, asked: Any, version: int, isolation_level: int, max_bytes: int, at_least_one: bool
) -> Found:
    check_leader_epoch(partition, asked.current_leader_epoch)
    log = partition.opened
    high_watermark, last_stable_offset = log.high_watermark, log.last_stable_offset
    data = PartitionData(
        partition_index=asked.partition,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=None,
        records=b"",
    )
    if asked.last_fetched_epoch >= 0:
        diverging = diverging_epoch(partition, asked)
        if diverging is not None:
            data.diverging_epoch = diverging
            return Found(data=data)
    offset = asked.fetch_offset
    if not log.log_start_offset <= offset <= log.log_end_offset:
        raise refusal(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {partition.name}: there are {log.log_start_offset} to {log.log_end_offset}",
        )
    committed = isolation_level == READ_COMMITTED
    up_to = min(high_watermark, last_stable_offset) if committed else high_watermark
    limit = max(0, min(max_bytes, asked.partition_max_bytes))
    fetched = log.fetch(offset, limit, up_to=up_to, at_least_one=at_least_one)
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
    return Found(data=data, payload=fetched.parts, size_bytes=fetched.size_bytes, conversion=conversion)


def start_conversion(data: Any, fetched: Fetched, to_magic: int, offset: int) -> Callable[[], Found]:
    """Read records that need another format, and return what converts them. Raises LogError."""
    return functools.partial(convert, data, fetched.read(), to_magic, offset)


def convert(data: Any, source: bytes, to_magic: int, offset: int) -> Found:
    """Convert the records of one partition. Raises RejectedRecords, CorruptBatch."""
    conversion = FetchConversion(source, to_magic, offset)
    return Found(data=data, payload=list(conversion.chunks()), size_bytes=conversion.size_bytes)


def diverging_epoch(partition: Partition, asked: Any) -> Any:
    """Where the reader's log and this one part, None where they do not (KIP-595)."""
    epoch, end_offset = partition.opened.end_offset_for(asked.last_fetched_epoch)
    if end_offset < 0 or epoch < 0:
        raise refusal(ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition.name} knows no epoch {asked.last_fetched_epoch}")
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None
