"""Batches for brokers that are older than their format.

    Produce   brokers               take
    0, 1      before Kafka 0.10     magic 0: no timestamps
    2         0.10                  magic 1: no headers
    3 to 6    0.11 to 2.0           magic 2 without zstd
    7 on      2.1 and later         magic 2

A batch is converted down, as Kafka's own producer does. Headers are refused; timestamps, which brokers of magic 0 do
not have, are left out. Brokers before 0.11 have no producer ids either: nothing idempotent, no transactions.
Source: KIP-31, KIP-98, KIP-110; org.apache.kafka.common.requests.ProduceRequest.validateRecords.
"""

from __future__ import annotations

from kwire.client.broker_connection import BrokerConnection
from kwire.errors import BrokerError, OptionError, UnsupportedVersion
from kwire.protocol.error_codes import ErrorCode
from kwire.records import Compression, down_convert, read_batches
from kwire.records.request_magic import PRODUCE_ZSTD_VERSION, produce_magic

__all__ = ["data_for", "require_producer_ids"]

INIT_PRODUCER_ID = 22


def data_for(data: bytes | memoryview, version: int, where: str) -> bytes | memoryview:
    """One batch of magic 2 as that version of Produce may carry it. where: partition and broker, for errors.

    Raises BrokerError, which does not pass: UNSUPPORTED_COMPRESSION_TYPE for zstd, UNSUPPORTED_FOR_MESSAGE_FORMAT for
    headers.
    """
    if version >= PRODUCE_ZSTD_VERSION:
        return data
    if any(batch.compression == Compression.ZSTD for batch in read_batches(data)):
        what = f"{where}: zstd needs a broker of Kafka 2.1 or later; use another compression.type"
        raise BrokerError(what, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    magic = produce_magic(version)
    if magic == 2:
        return data
    converted = down_convert(data, magic)
    if converted.lost.records_with_headers:
        what = f"{where}: a broker before Kafka 0.11 takes no record headers; write the records without"
        raise BrokerError(what, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    return converted


def require_producer_ids(connection: BrokerConnection, *, transactions: bool) -> None:
    """Raise OptionError if the broker is older than producer ids (Kafka 0.11)."""
    try:
        connection.version_for(INIT_PRODUCER_ID)
    except UnsupportedVersion:
        lacking = "transactions: leave transactional.id out and" if transactions else "idempotent producers:"
        what = f"{connection.address} is a broker before Kafka 0.11 without {lacking} set enable.idempotence to false"
        raise OptionError(what) from None
