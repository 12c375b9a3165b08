"""Down-conversion of batches for brokers that do not support their format.

    Produce   brokers               format
    0, 1      before Kafka 0.10     magic 0: no timestamps
    2         0.10                  magic 1: no headers
    3 to 6    0.11 to 2.0           magic 2 without zstd
    7 on      2.1 and later         magic 2

Batches are down-converted as in Kafka's own producer. Record headers are refused; timestamps are dropped for magic 0,
which has none. Brokers before 0.11 do not support producer ids, so neither idempotence nor transactions.
Source: KIP-31, KIP-98, KIP-110; org.apache.kafka.common.requests.ProduceRequest.validateRecords.
"""

from __future__ import annotations

from kwire.client.broker_connection import BrokerConnection
from kwire.errors import BrokerError, OptionError, UnsupportedVersion
from kwire.protocol.error_codes import ErrorCode
from kwire.records import Compression, down_convert, read_batches
from kwire.records.append.request_magic import PRODUCE_ZSTD_VERSION, produce_magic

__all__ = ["data_for", "require_producer_ids"]

INIT_PRODUCER_ID = 22


def data_for(data: bytes | memoryview, version: int, where: str) -> bytes | memoryview:
    """Return a magic 2 batch in the format of a version of Produce. where: partition and broker, for errors.

    Raises BrokerError: UNSUPPORTED_COMPRESSION_TYPE for zstd, UNSUPPORTED_FOR_MESSAGE_FORMAT for record headers.
    """
    if version >= PRODUCE_ZSTD_VERSION:
        return data
    if any(batch.compression == Compression.ZSTD for batch in read_batches(data)):
        what = f"{where}: zstd requires a broker of Kafka 2.1 or later; set another compression.type"
        raise BrokerError(what, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    magic = produce_magic(version)
    if magic == 2:
        return data
    converted = down_convert(data, magic)
    if converted.lost.records_with_headers:
        what = f"{where}: brokers before Kafka 0.11 do not support record headers; write the records without headers"
        raise BrokerError(what, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    return converted


def require_producer_ids(connection: BrokerConnection, *, transactions: bool) -> None:
    """Raise OptionError if the broker does not support producer ids (before Kafka 0.11)."""
    try:
        connection.version_for(INIT_PRODUCER_ID)
    except UnsupportedVersion:
        feature = "transactions" if transactions else "idempotent producers"
        remedy = "remove transactional.id and set" if transactions else "set"
        what = (
            f"{connection.address}: brokers before Kafka 0.11 do not support {feature}; "
            f"{remedy} enable.idempotence to false"
        )
        raise OptionError(what) from None
