"""Options of kafka-live, compared with Spark's own source."""

from __future__ import annotations

import pytest

from kwire.broker import Broker
from kwire.errors import OptionError
from kwire.spark.live.options import parse_options
from kwire.spark.live.source import LiveReader
from kwire.spark.live.write_options import parse_write_options
from kwire.spark.offsets import LATEST, GlobalOffset, GlobalTimestamp, Query, SpecificOffsets
from kwire.spark.options.query import RateLimits, Subscribe, select

BASE = {"kafka.bootstrap.servers": "a:1", "subscribe": "t"}


def test_defaults_equal_sparks() -> None:
    batch, stream = parse_options(BASE, "batch"), parse_options(BASE, "stream")
    assert (batch.start, batch.end) == (None, None)
    assert stream.start == GlobalOffset(LATEST)
    assert batch.selection == Subscribe(frozenset({"t"}))
    assert (batch.fail_on_data_loss, batch.include_headers, batch.isolation) == (True, False, "read_uncommitted")
    assert batch.limits == RateLimits()


def test_a_timestamp_takes_precedence_over_offsets() -> None:
    found = parse_options({**BASE, "startingTimestamp": "7", "startingOffsets": "latest"}, "stream")
    assert found.start == GlobalTimestamp(7)
    offsets = parse_options({**BASE, "startingOffsets": '{"t":{"0":-1,"1":-2,"2":5}}'}, "stream").start
    assert offsets == SpecificOffsets({("t", 0): -1, ("t", 1): -2, ("t", 2): 5})


def test_a_pattern_matches_part_of_a_name_as_in_sparks_source() -> None:
    def chosen(pattern: str) -> list[str]:
        found = parse_options({"kafka.bootstrap.servers": "a:1", "subscribePattern": pattern}, "batch").selection
        there = [(name, 0) for name in ("__consumer_offsets", "my-orders", "orders", "orders.eu")]
        return [topic for topic, _ in select(found, there)[0]]

    assert chosen("orders") == ["my-orders", "orders", "orders.eu"]
    assert chosen("^orders") == ["orders", "orders.eu"]
    assert chosen("^orders$") == ["orders"]


def test_kafka_configs_are_passed_to_the_client() -> None:
    found = parse_options(
        {
            **BASE,
            "kafka.isolation.level": "read_committed",
            "kafka.group.id": "g",
            "kafkaConsumer.pollTimeoutMs": "5000",
        },
        "batch",
    )
    assert found.isolation == "read_committed"
    assert found.kafka["default.api.timeout.ms"] == "5000"


def test_names_of_configs_may_have_underscores() -> None:
    """As in Client; kafka.transactional_id was passed to the client and made no transactions."""
    given = {"kafka.bootstrap_servers": "a:1", "subscribe": "t", "kafka.isolation_level": "read_committed"}
    assert parse_options(given, "batch").isolation == "read_committed"
    with pytest.raises(OptionError, match=r"'kafka\.auto\.offset\.reset' is not supported"):
        parse_options({**given, "kafka.auto_offset_reset": "latest"}, "batch")
    with pytest.raises(OptionError, match=r"'kafka\.client\.id': set to different values, with dots and underscores"):
        parse_options({**given, "kafka.client_id": "a", "kafka.client.id": "b"}, "batch")
    written = {"kafka.bootstrap_servers": "a:1", "topic": "t", "kafka.batch_size": "5"}
    options = parse_write_options({**written, "kafka.transactional_id": "copies"})
    assert (options.transactional_prefix, options.batch_bytes) == ("copies", 5)


def test_limits_of_micro_batches_are_named_and_ignored_in_batch_queries(caplog: pytest.LogCaptureFixture) -> None:
    """As in Spark's source (KafkaSourceProvider.validateBatchOptions); only maxOffsetsPerTrigger was named."""
    limits = {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "1", "maxTriggerDelay": "1s"}
    with Broker() as broker:
        broker.create_topic("t")
        given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "t", **limits}
        assert LiveReader(parse_options(given, "batch"), ("value",)).partitions() == []
    assert [each for each in caplog.messages if "ignored" in each] == [
        f"{name} option ignored in batch queries" for name in limits
    ]


def test_the_isolation_level_is_case_insensitive() -> None:
    assert parse_options({**BASE, "kafka.isolation.level": "READ_COMMITTED"}, "batch").isolation == "read_committed"


def test_reprs_hide_passwords() -> None:
    jaas = 'x required username="alice" password="wonderland";'
    secret = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config": jaas}
    assert "wonderland" not in repr(parse_options({**BASE, **secret}, "batch"))


@pytest.mark.parametrize(
    ("query", "more", "message"),
    [
        ("batch", {"startingOffsets": "latest"}, "starting offset can't be latest for batch queries"),
        ("batch", {"endingOffsets": "earliest"}, "ending offset can't be earliest"),
        ("stream", {"endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
        ("batch", {"assign": '{"t":[0]}'}, "Only one of the following options can be specified"),
        ("batch", {"kafka.auto.offset.reset": "latest"}, "'kafka.auto.offset.reset' is not supported"),
        ("batch", {"kafka.enable.auto.commit": "true"}, "'kafka.enable.auto.commit' is not supported"),
        ("batch", {"kafka.sasl.mechanisn": "PLAIN"}, r"unknown config 'sasl.mechanisn' \(did you mean"),
        ("batch", {"subscribPattern": "x"}, r"Unknown option 'subscribpattern' \(did you mean"),
        ("stream", {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "is above maxOffsetsPerTrigger"),
        ("batch", {"path": "/x"}, "use kafka-log"),
    ],
)
def test_invalid_options_are_rejected_with_a_remedy(query: Query, more: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_options({**BASE, **more}, query)


def test_bootstrap_servers_and_a_topic_selection_are_required() -> None:
    with pytest.raises(OptionError, match=r"'kafka\.bootstrap\.servers' must be specified"):
        parse_options({"subscribe": "t"}, "batch")
    with pytest.raises(OptionError, match="One of the following options must be specified"):
        parse_options({"kafka.bootstrap.servers": "a:1"}, "batch")
