"""A broker from start to stop, as a program uses it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from kwire import messages
from kwire.broker import Broker
from kwire.errors import BrokerError, LogError, OptionError
from kwire.log import LogDirectory
from tests.broker.wire import RawClient
from tests.waiting import HANG_MS, HANG_S, until

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


@pytest.mark.slow
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


@pytest.mark.parametrize("temporary", [True, False])
def test_an_outage_keeps_the_port_and_the_data(tmp_path: Path, temporary: bool) -> None:
    with Broker() if temporary else Broker(tmp_path / "data") as broker:
        address = broker.bootstrap_servers
        produce(broker, "kept", [b"before"])
        broker.stop()
        assert not broker.is_running
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))).close()
        broker.start()
        assert broker.bootstrap_servers == address
        produce(broker, "kept", [b"after"])
        assert consume(broker, "kept", 2) == [b"before", b"after"]
        with pytest.raises(OptionError, match="already running"):
            broker.start()


def test_clients_survive_an_outage(broker_of_clients: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker_of_clients.bootstrap_servers, "retry.backoff.ms": 10, **QUIET})
    producer.produce("o", b"1")
    assert producer.flush(HANG_S) == 0
    broker_of_clients.stop()
    producer.produce("o", b"2")
    broker_of_clients.start()
    assert producer.flush(HANG_S) == 0
    assert [record.value for record in broker_of_clients.records("o")] == [b"1", b"2"]


@pytest.fixture
def broker_of_clients() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("", "the empty string is not allowed"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_invalid_names_of_topics_are_refused_as_by_kafka(name: str, problem: str) -> None:
    with Broker() as broker, pytest.raises(BrokerError) as caught:
        broker.create_topic(name)
    assert str(caught.value).startswith(f"Topic name is invalid: {problem}")


@pytest.mark.parametrize("ahead_ms", [0, 30 * 60_000, 2 * 3_600_000])
def test_records_more_than_an_hour_ahead_are_refused(ahead_ms: int) -> None:
    errors: list[KafkaError | None] = []
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        timestamp = time.time_ns() // 1_000_000 + ahead_ms
        producer.produce("t", b"", timestamp=timestamp, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(HANG_S) == 0
    code = None if errors[0] is None else errors[0].code()
    assert code == (KafkaError.INVALID_TIMESTAMP if ahead_ms > 3_600_000 else None)


def test_the_thread_of_the_broker_does_not_wait_for_itself() -> None:
    with Broker() as broker, RawClient(broker) as client:
        broker.create_topic("t")
        with pytest.raises(OptionError, match="the broker's own thread cannot ask the broker"):
            broker.call(lambda node: broker.records("t"))
        fault = broker.faults.fail("ListGroups", "UNKNOWN_SERVER_ERROR", when=lambda request: bool(broker.records("t")))
        assert client.ask(messages.ListGroupsRequest(), 0).error_code == 0
        with pytest.raises(OptionError, match="the broker's own thread"):
            _ = fault.hits


def test_a_broker_used_again_after_its_block_is_a_new_one() -> None:
    broker = Broker()
    with broker:
        broker.create_topic("gone")
        broker.advance(1_000_000)
    with broker:
        assert broker.call(lambda node: list(node.topics)) == []
        assert abs(broker.call(lambda node: node.clock.now_ms()) - time.time() * 1000) < HANG_MS


def test_a_stopped_broker_without_a_block_removes_its_directory_when_it_is_deleted() -> None:
    broker = Broker()
    broker.start()
    path = Path(broker.call(lambda node: node.log_manager.path))
    broker.stop()
    assert path.is_dir()
    del broker
    gc.collect()
    assert not path.parent.exists()


def test_a_start_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Broker() as broker:
        assert len(list(tmp_path.iterdir())) == 1
        with pytest.raises(OptionError, match="cannot listen"):
            Broker(port=broker.port).start()
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_leaves_the_directory_of_its_parent() -> None:
    code = """if True:
        import os, sys
        from kwire.broker import Broker
        with Broker() as broker:
            broker.create_topic("t")
            if (child := os.fork()) == 0:
                sys.exit()  # with all that is done at the end of a process
            assert os.waitpid(child, 0)[1] == 0
            assert os.path.isdir(broker.call(lambda node: node.log_manager.path) + "/t-0")
            path = broker.call(lambda node: node.log_manager.path)
        assert not os.path.exists(path)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, "")


def test_directories_of_killed_processes_are_removed(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    (tmp_path / "kwire-broker-of-a-user").mkdir()
    waiting = "from kwire.broker import Broker\nwith Broker(): print(flush=True); input()"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", waiting], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    killed, running = processes
    try:
        for each in processes:
            assert each.stdout is not None
            each.stdout.readline()
        killed.terminate()
        killed.wait()
        assert len(list(tmp_path.iterdir())) == 3
        subprocess.run([sys.executable, "-c", "from kwire.broker import Broker\nwith Broker(): pass"], env=environment)
        assert len(list(tmp_path.iterdir())) == 2
        assert running.communicate(b"\n")[0] == b""
        assert [each.name for each in tmp_path.iterdir()] == ["kwire-broker-of-a-user"]
    finally:
        for each in processes:
            each.kill()
            each.communicate()


def test_topics_and_records_without_a_client(broker: Broker) -> None:
    broker.create_topic("three", 3, retention_ms=5000, cleanup_policy="compact")
    broker.create_topic("default")
    configs, counts = broker.call(
        lambda node: (
            dict(node.topics.get("three").configs),
            [len(node.topics.get(name).partitions) for name in ("three", "default")],
        )
    )
    assert configs == {"retention.ms": "5000", "cleanup.policy": "compact"}
    assert counts == [3, 1]
    with pytest.raises(BrokerError, match="already exists"):
        broker.create_topic("three")
    with pytest.raises(BrokerError, match=r"retention\.mss"):
        broker.create_topic("wrong", retention_mss=1)
    assert broker.records("three") == []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    for partition, key in ((2, b"c"), (0, b"a"), (2, b"d")):
        producer.produce("three", b"v", key, partition=partition, headers=[("h", b"1")])
        assert producer.flush(HANG_S) == 0
    assert [(each.key, each.offset, each.headers) for each in broker.records("three")] == [
        (b"a", 0, [("h", b"1")]),
        (b"c", 0, [("h", b"1")]),
        (b"d", 1, [("h", b"1")]),
    ]
    assert [each.key for each in broker.records("three", 2)] == [b"c", b"d"]
    with pytest.raises(OptionError, match="unknown partition 3: topic 'three' has 3 partitions"):
        broker.records("three", 3)
    with pytest.raises(OptionError, match="unknown topic 'thre' \\(did you mean 'three'"):
        broker.records("thre")


def test_records_are_those_that_consumers_can_get(broker: Broker) -> None:
    """Not deleted ones inside a batch, no transaction markers; those of open transactions count."""
    values = [b"%d" % i for i in range(10)]
    produce(broker, "kept-from", values, **{"linger.ms": 500})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    admin.delete_records([TopicPartition("kept-from", 0, 4)])
    until(lambda: len(broker.records("kept-from")) == 6)
    assert [each.value for each in broker.records("kept-from")] == values[4:]
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t", **QUIET})
    producer.init_transactions(HANG_S)
    producer.begin_transaction()
    producer.produce("kept-from", b"open")
    producer.flush(HANG_S)
    assert broker.records("kept-from")[-1].value == b"open"
    producer.commit_transaction(HANG_S)
    assert [each.offset for each in broker.records("kept-from")] == [4, 5, 6, 7, 8, 9, 10]


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
