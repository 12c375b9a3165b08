"""Our client against the oldest brokers of Kafka: 0.10.0 speaks Produce 0 to 2, 0.9 has no ApiVersions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.waiting import until
from tools import kafka

from kwire.client import Client, Producer
from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.records import Compression, Record, TimestampType, read_batches, write_batch

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

PLAIN = {"enable.idempotence": "false"}
RECORDS = [
    Record(
        offset=i,
        timestamp=1_760_000_000_000 + i,
        timestamp_type=TimestampType.CREATE_TIME,
        key=None if i == 2 else b"key",
        value=None if i == 1 else b"value %d" % i * 50,
        headers=[],
    )
    for i in range(5)
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.KafkaBroker]:
    with kafka.KafkaBroker(tmp_path_factory.mktemp("kafka"), version="0.10.0.1", heap="256m") as found:
        yield found


@pytest.mark.parametrize("compression", ["NONE", "GZIP", "SNAPPY", "LZ4"])
def test_kafka_0_10_accepts_down_converted_batches(broker: kafka.KafkaBroker, compression: str) -> None:
    topic = f"orders-{compression}"
    data = bytes(write_batch(RECORDS, magic=2, compression=Compression[compression]))
    with Client(broker.bootstrap_servers, **PLAIN) as client:
        until(lambda: client.metadata([topic]).topics[topic].partitions)  # such a broker makes it when it is asked
        producer = Producer(client)
        assert [producer.send(topic, 0, data, 5).base_offset for _ in range(2)] == [0, 5]
        assert client.list_offsets({(topic, 0): -1})[topic, 0].offset == 10
        batches = [batch for fetched in client.read(topic, 0, 0, 10) for batch in read_batches(fetched.records)]
    assert {batch.magic for batch in batches} == {1}
    read = [record for batch in batches for record in batch.records()]
    expected = [(n + r.offset, r.timestamp, r.key, r.value) for n in (0, 5) for r in RECORDS]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in read] == expected


def test_records_that_kafka_0_10_cannot_store_are_rejected(broker: kafka.KafkaBroker) -> None:
    with (
        Client(broker.bootstrap_servers) as client,
        pytest.raises(OptionError, match="not support idempotent producers"),
    ):
        Producer(client)
    with Client(broker.bootstrap_servers, **PLAIN) as client:
        until(lambda: client.metadata(["refused"]).topics["refused"].partitions)
        for more, codec, what in (
            ([("h", b"1")], "NONE", "do not support record headers"),
            ([], "ZSTD", "zstd requires a broker"),
        ):
            records = [msgspec.structs.replace(record, headers=more) for record in RECORDS]
            data = bytes(write_batch(records, magic=2, compression=Compression[codec]))
            with pytest.raises(BrokerError, match=what):
                Producer(client).send("refused", 0, data, 5)


def test_kafka_0_9_is_rejected_with_a_clear_error(tmp_path: Path) -> None:
    """It does not support ApiVersions."""
    settings = {"default.api.timeout.ms": "1", "socket.connection.setup.timeout.ms": "2000"}
    with (
        kafka.KafkaBroker(tmp_path, version="0.9.0.1", heap="256m") as old,
        Client(old.bootstrap_servers, **settings) as client,
        pytest.raises(
            ConnectionFailed, match=r"in response to ApiVersions, which brokers before Kafka 0\.10 do not support"
        ),
    ):
        client.metadata([])
