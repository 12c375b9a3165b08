"""A broker from start to stop, as a program uses it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from kwire import messages
from kwire.broker import Broker
from kwire.errors import LogError, OptionError
from kwire.log import LogDirectory
from tests.broker.wire import RawClient
from tests.waiting import HANG_S

QUIET = {"log_level": 0}


def produce(broker: Broker, topic: str, values: list[bytes], **settings: Any) -> None:
    """Produce and wait for all acknowledgements."""
    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET, **settings})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda e, _: errors.append(e) if e else None)
    assert producer.flush(HANG_S) == 0
    assert errors == []


def consume(broker: Broker, topic: str, count: int, **settings: Any) -> list[bytes]:
    """Return the first records of partition 0."""
    given = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", **QUIET, **settings}
    consumer = Consumer(given)
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    try:
        while len(found) < count:
            message = consumer.poll(HANG_S)
            assert message is not None, f"{len(found)} of {count} records came"
            assert message.error() is None
            found.append(message.value())
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_produced_records_are_consumed(broker: Broker, codec: str) -> None:
    values = [b"%d" % i * 10 for i in range(500)]
    produce(broker, f"codec-{codec}", values, **{"compression.type": codec, "enable.idempotence": codec == "gzip"})
    assert consume(broker, f"codec-{codec}", 500) == values


def test_data_survives_in_its_directory(tmp_path: Path) -> None:
    for run in range(2):
        with Broker(tmp_path / "data") as broker:
            produce(broker, "kept", [b"%d-%d" % (run, i) for i in range(10)])
            assert consume(broker, "kept", 10 * (run + 1))[-1] == b"%d-9" % run
            first = broker.call(lambda node: (node.cluster_id, node.topics.get("kept").topic_id))
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    log = LogDirectory(str(tmp_path / "data"))["kept", 0]
    assert [record.value for record in log.read()][:2] == [b"0-0", b"0-1"]
    assert log.log_end_offset == 20
    with Broker(tmp_path / "data") as broker:
        assert broker.call(lambda node: (node.cluster_id, node.topics.get("kept").topic_id)) == first
        epochs = broker.call(lambda node: [p.leader_epoch for p in node.topics.get("kept").partitions.values()])
    assert epochs == [4]  # a stop and a start raise it by one each


def test_a_temporary_directory_is_removed_with_its_broker() -> None:
    with Broker() as broker:
        path = Path(broker.call(lambda node: node.log_manager.path))
        assert path.is_dir()
    assert not path.exists()


def test_two_brokers_do_not_share_a_directory(tmp_path: Path) -> None:
    with Broker(tmp_path), pytest.raises(LogError, match=r"lock|in use|held"), Broker(tmp_path):
        pass


def test_an_address_in_use_is_reported(broker: Broker) -> None:
    with pytest.raises(OptionError, match=f"cannot listen on 127.0.0.1:{broker.port}"):
        Broker(port=broker.port).start()


def test_an_unknown_config_suggests_close_names() -> None:
    with pytest.raises(OptionError, match="num_partitions"):
        Broker(num_partition=3)
    with pytest.raises(OptionError, match="expected an integer"):
        Broker(num_partitions="many")


def test_a_broker_starts_inside_an_event_loop() -> None:
    async def run() -> int:
        async with Broker() as broker:
            assert broker.port > 0
            return broker.call(lambda node: node.node_id)

    assert asyncio.run(run()) == 1


def test_a_stopped_broker_raises_a_clear_error() -> None:
    broker = Broker()
    with pytest.raises(OptionError, match="not running"):
        broker.bootstrap_servers  # noqa: B018  # the property raises
    broker.stop()


def test_topics_are_created_changed_and_deleted(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    admin.create_topics([NewTopic("managed", 2, 1, config={"retention.ms": "5000"})])["managed"].result(HANG_S)
    admin.create_partitions([NewPartitions("managed", 4)])["managed"].result(HANG_S)
    assert len(admin.list_topics("managed", HANG_S).topics["managed"].partitions) == 4
    resource = ConfigResource("topic", "managed")
    (described,) = admin.describe_configs([resource]).values()
    own = {name: entry.value for name, entry in described.result(HANG_S).items() if not entry.is_default}
    assert own == {"retention.ms": "5000"}
    sizes = broker.call(
        lambda node: [p.log.config.retention_ms for p in node.topics.get("managed").partitions.values()]
    )
    assert sizes == [5000] * 4
    admin.delete_topics(["managed"])["managed"].result(HANG_S)
    assert "managed" not in admin.list_topics(timeout=HANG_S).topics


def test_broker_configs_apply_to_topics_immediately(broker: Broker) -> None:
    request = messages.IncrementalAlterConfigsRequest
    with RawClient(broker) as client:
        for operation, value, expected in ((0, "2000", 2000), (1, None, 1_048_588)):
            config = request.AlterableConfig(name="message.max.bytes", config_operation=operation, value=value)
            resource = request.AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
            answer = client.ask(request(resources=[resource]), 1)
            assert answer.responses[0].error_code == 0
            produce(broker, "defaults", [b"x"])
            limit = broker.call(lambda node: node.topics.partition("defaults", 0).log.config.max_message_bytes)
            assert limit == expected


def test_a_failing_handler_returns_an_error_and_the_next_request_is_served(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from kwire.broker.apis import describe_cluster

    def fail(*_: object) -> None:
        raise ZeroDivisionError("made to fail")

    with RawClient(broker) as client, caplog.at_level(logging.ERROR, "kwire.broker"):
        with monkeypatch.context() as patch:
            patch.setattr(describe_cluster, "handle", fail)
            response = client.ask(messages.DescribeClusterRequest(), 1)
            assert response.error_code == -1
            assert "made to fail" not in response.error_message  # an exception may name files or data
        assert client.ask(messages.DescribeClusterRequest(), 1).error_code == 0
    assert "made to fail" in caplog.text
