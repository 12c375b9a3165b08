"""KafkaContainer in place of testcontainers' class."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kwire.client import Client
from kwire.errors import ConnectionFailed, OptionError
from kwire.testing import KafkaContainer

TESTCONTAINERS_EXAMPLE = """
with KafkaContainer() as kafka:
    connection = kafka.get_bootstrap_server()

# Using KRaft protocol
with KafkaContainer().with_kraft() as kafka:
    connection = kafka.get_bootstrap_server()
"""


def test_the_example_of_testcontainers_runs() -> None:
    names: dict[str, object] = {"KafkaContainer": KafkaContainer}
    exec(TESTCONTAINERS_EXAMPLE, names)
    assert str(names["connection"]).startswith("127.0.0.1:")


def test_a_client_writes_and_reads_as_in_the_tests_of_testcontainers() -> None:
    assert not KafkaContainer().kraft_enabled
    with KafkaContainer("confluentinc/cp-kafka:7.6.0").with_kraft() as container:
        assert container.kraft_enabled
        bootstrap_server = container.get_bootstrap_server()
        assert bootstrap_server == f"{container.get_container_host_ip()}:{container.get_exposed_port(9093)}"
        producer = Producer({"bootstrap.servers": bootstrap_server})
        producer.produce("test-topic", b"verification message")
        assert producer.flush(60) == 0
        consumer = Consumer({"bootstrap.servers": bootstrap_server, "group.id": "test"})
        try:
            consumer.assign([TopicPartition("test-topic", 0, 0)])
            message = consumer.poll(60)
            assert message is not None
            assert message.value() == b"verification message"
        finally:
            consumer.close()


def test_variables_are_configs_by_the_rule_of_confluents_images() -> None:
    container = KafkaContainer(env={"KAFKA_NUM_PARTITIONS": "3"}).with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
    with container.with_envs(KAFKA_LOG_RETENTION_MS="60000") as kafka:
        settings = kafka.broker.call(lambda node: node.settings)
        assert settings.num_partitions == 3
        assert settings.auto_create_topics_enable is False
        assert settings.log_retention_ms == 60_000
    with pytest.raises(OptionError, match=r"unknown broker config 'num\.partition'"):
        KafkaContainer().with_env("KAFKA_NUM_PARTITION", "3").start()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: KafkaContainer(security_protocol="SASL_SSL"), "only PLAINTEXT"),
        (lambda: KafkaContainer(volumes=[("a", "b", "rw")]), "volumes: not supported"),
        (lambda: KafkaContainer(port_to_expose=9092), "port_to_expose: not supported"),
        (lambda: KafkaContainer().with_kwargs(mem_limit="1g"), "mem_limit: not supported"),
        (lambda: KafkaContainer().with_exposed_ports(9092), "9092: the broker has 9093 only"),
        (lambda: KafkaContainer().with_env("KAFKA_LISTENERS", "X://:1").start(), "sets its listener"),
        (lambda: KafkaContainer().with_env("KAFKA_PORT", "1").start(), "sets its listener"),
        (lambda: KafkaContainer().with_env("KAFKA_OPTS", "-Dx=y").start(), "no JVM"),
        (lambda: KafkaContainer().get_bootstrap_server(), "not running"),
    ],
)
def test_what_cannot_be_obeyed_is_refused(make: object, reason: str) -> None:
    assert callable(make)
    with pytest.raises(OptionError, match=reason):
        make()


def test_methods_that_need_a_container_say_so() -> None:
    with pytest.raises(AttributeError, match=r"KafkaContainer\.exec: not supported, there is no container"):
        KafkaContainer().exec("ls")
    with pytest.raises(AttributeError, match="has no attribute 'wrong'"):
        KafkaContainer().wrong  # noqa: B018
    assert not hasattr(KafkaContainer(), "get_logs")


def test_what_has_no_effect_is_named_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    container = (
        KafkaContainer("apache/kafka:4.0.0", name="k").with_env("KAFKA_HEAP_OPTS", "-Xmx1g").with_env("TZ", "UTC")
    )
    with caplog.at_level(logging.WARNING, "kwire.testing"), container:
        pass
    (record,) = caplog.records
    assert record.getMessage() == (
        "KafkaContainer runs kwire's broker, without effect are: image apache/kafka:4.0.0, name k, "
        "variable KAFKA_HEAP_OPTS, variable TZ"
    )
    caplog.clear()
    with caplog.at_level(logging.WARNING, "kwire.testing"), KafkaContainer():
        pass
    assert not caplog.records


def test_start_and_stop_without_a_with_block_and_again_with_an_empty_broker() -> None:
    container = KafkaContainer(port=19092, listener_name="OUTSIDE")
    assert container.start() is container
    with pytest.raises(OptionError, match="already running"):
        container.start()
    container.broker.create_topic("orders")
    address = container.get_bootstrap_server()
    container.stop()
    container.stop()
    with Client(address, default_api_timeout_ms=200) as client, pytest.raises(ConnectionFailed):
        client.metadata()
    with container, Client(container.get_bootstrap_server()) as client:
        assert client.metadata().topics == {}


def test_a_bound_port_is_the_one_of_clients() -> None:
    with KafkaContainer() as other:
        free = other.get_exposed_port(9093)
    with KafkaContainer().with_bind_ports("9093/tcp", free) as kafka:
        assert kafka.get_bootstrap_server() == f"127.0.0.1:{free}"
