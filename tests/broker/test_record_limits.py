"""max.decompressed.message.bytes, as Kafka 4.4.0 counts it: each record of a compressed batch, without its length."""

from __future__ import annotations

import pytest

from kwire import messages, records
from kwire.broker import Broker
from kwire.protocol.error_codes import ErrorCode
from tests.broker.test_fetch import TIME, create
from tests.broker.wire import RawClient

LIMIT = 1000
OVERHEAD = 7
"""Bytes of a record beside its value: attributes, deltas, no key, length of the value, no headers."""


def send(client: RawClient, codec: str, sizes: list[int]) -> int:
    builder = records.BatchBuilder(compression=codec)
    for size in sizes:
        builder.append(None, bytes(size), timestamp=TIME)
    cls = messages.ProduceRequest
    data = cls.PartitionProduceData(index=0, records=builder.build())
    request = cls(acks=-1, timeout_ms=1000, topic_data=[cls.TopicProduceData(name="t", partition_data=[data])])
    return int(client.ask(request, 9).responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_records_of_compressed_batches_are_limited(codec: str) -> None:
    with Broker() as broker, RawClient(broker) as client:
        create(client, "t", max_decompressed_message_bytes=str(LIMIT))
        for sizes in ([1], [LIMIT - OVERHEAD], [500] * 10, [LIMIT - OVERHEAD] * 3):
            assert send(client, codec, sizes) == 0
            assert send(client, "none", sizes) == 0
        for sizes in ([LIMIT - OVERHEAD + 1], [100_000], [1, 1, LIMIT - OVERHEAD + 1, 1]):
            assert send(client, codec, sizes) == ErrorCode.INVALID_RECORD
            assert send(client, "none", sizes) == 0


def test_the_limit_of_the_broker_is_the_default_of_topics() -> None:
    with Broker(max_decompressed_message_bytes=LIMIT) as broker, RawClient(broker) as client:
        create(client, "t")
        assert send(client, "zstd", [100_000]) == ErrorCode.INVALID_RECORD
