"""Configs of groups: described as Kafka 4.4.0 does, obeyed by KIP-848 groups, kept by the metadata log.

tests/broker/test_config_changes.py compares their validation with Kafka's responses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire import messages
from kwire.broker import Broker
from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.metadata_records import metadata_record
from kwire.messages.error_codes import ErrorCode
from tests.broker.groups.harness import Bench
from tests.broker.test_config_changes import DELETE, SET, alter, describe
from tests.broker.wire import RawClient

GROUP = ConfigResource.GROUP
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
DESCRIBED = {
    SESSION: ("45000", "group.consumer.session.timeout.ms"),
    "consumer.assignment.interval.ms": ("1000", "group.consumer.assignment.interval.ms"),
    "errors.deadletterqueue.copy.record.enable": ("false", "errors.deadletterqueue.copy.record.enable"),
    "errors.deadletterqueue.topic.name": ("", "errors.deadletterqueue.topic.name"),
    "share.auto.offset.reset": ("latest", "share.auto.offset.reset"),
    "share.isolation.level": ("read_uncommitted", "share.isolation.level"),
    "share.delivery.count.limit": ("5", "group.share.delivery.count.limit"),
    "streams.assignor.name": ("sticky", "group.streams.assignors"),
    "streams.rack.aware.assignment.tags": ("", "group.streams.rack.aware.assignment.tags"),
    "streams.initial.rebalance.delay.ms": ("3000", "group.streams.initial.rebalance.delay.ms"),
}
"""Values of Kafka 4.4.0, and the names of their only synonyms."""


def test_a_group_without_configs_has_those_of_the_broker(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, RawClient(broker) as client:
        entries = describe(client, GROUP, "g")
        assert len(entries) == 21
        for name, (value, synonym) in DESCRIBED.items():
            entry = entries[name]
            assert (entry.value, entry.config_source, entry.read_only, entry.is_sensitive) == (value, 5, False, False)
            assert [(each.name, each.value, each.source) for each in entry.synonyms] == [(synonym, value, 5)]


def test_configs_of_a_group_are_set_replaced_deleted_and_listed(tmp_path: Path) -> None:
    def listed() -> list[str]:
        found = client.ask(messages.ListConfigResourcesRequest(resource_types=[GROUP]), 1)
        return [each.resource_name for each in found.config_resources]

    with Broker(tmp_path) as broker, RawClient(broker) as client:
        assert alter(client, GROUP, "g", [[SESSION, SET, "50000"]], validate_only=True) == (0, None)
        assert listed() == []
        assert alter(client, GROUP, "g", [[SESSION, SET, "50000"]]) == (0, None)
        assert alter(client, GROUP, "other", [[HEARTBEAT, SET, "7000"]]) == (0, None)
    with Broker(tmp_path) as broker, RawClient(broker) as client:  # from the metadata log
        entry = describe(client, GROUP, "g")[SESSION]
        assert (entry.value, entry.config_source, entry.config_type) == ("50000", 8, 3)
        assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
            (SESSION, "50000", 8),
            ("group.consumer.session.timeout.ms", "45000", 5),
        ]
        assert listed() == ["g", "other"]
        cls = messages.AlterConfigsRequest
        config = cls.AlterableConfig(name=HEARTBEAT, value="6000")
        resource = cls.AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=[config])
        assert client.ask(cls(resources=[resource]), 2).responses[0].error_code == 0
        entries = describe(client, GROUP, "g", [SESSION, HEARTBEAT])
        assert {name: each.value for name, each in entries.items()} == {SESSION: "45000", HEARTBEAT: "6000"}
        assert alter(client, GROUP, "g", [[HEARTBEAT, DELETE, None]]) == (0, None)
        assert listed() == ["other"]
        broker.reset()
        assert listed() == []


def test_values_are_described_as_kafka_prints_them() -> None:
    tags, renews = "streams.rack.aware.assignment.tags", "share.renew.acknowledge.enable"
    given = [[SESSION, SET, " 50000 "], [renews, SET, "TRUE"], [tags, SET, " a , b "]]
    with Broker() as broker, RawClient(broker) as client:
        assert alter(client, GROUP, "g", given) == (0, None)
        entries = describe(client, GROUP, "g", [SESSION, renews, tags])
        assert {name: each.value for name, each in entries.items()} == {SESSION: "50000", renews: "true", tags: "a,b"}


def test_the_empty_name_is_no_group() -> None:
    with Broker() as broker, RawClient(broker) as client:
        refused = (ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        assert alter(client, GROUP, "", [[SESSION, SET, "50000"]]) == refused
        cls = messages.DescribeConfigsRequest
        resource = cls.DescribeConfigsResource(resource_type=GROUP, resource_name="", configuration_keys=None)
        result = client.ask(cls(resources=[resource]), 4).results[0]
        assert (result.error_code, result.error_message) == (
            ErrorCode.INVALID_REQUEST,
            "Group name must not be empty",
        )


def test_a_session_must_be_longer_than_a_heartbeat() -> None:
    limits: dict[str, Any] = {
        "group.consumer.min.session.timeout.ms": "5000",
        "group.consumer.max.heartbeat.interval.ms": "15000",
    }
    with Broker(**limits) as broker, RawClient(broker) as client:
        refused = (ErrorCode.INVALID_CONFIG, f"{SESSION} must be greater than {HEARTBEAT}")
        assert alter(client, GROUP, "g", [[SESSION, SET, "9000"], [HEARTBEAT, SET, "9000"]]) == refused
        assert alter(client, GROUP, "g", [[SESSION, SET, "9001"], [HEARTBEAT, SET, "9000"]]) == (0, None)
        assert alter(client, GROUP, "g", [[HEARTBEAT, SET, "9001"]]) == refused


def set_config(bench: Bench, group_id: str, name: str, value: str | None) -> None:
    record = messages.ConfigRecord(resource_type=GROUP, resource_name=group_id, name=name, value=value)
    bench.cluster.apply(metadata_record(record, 0))


def heartbeat(bench: Bench, group_id: str, epoch: int = 0) -> messages.ConsumerGroupHeartbeatResponse:
    request = messages.ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=f"{group_id}-1", member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.subscribed_topic_names, request.topic_partitions = 60_000, ["t"], []
    return bench.coordinator.consumer_heartbeat(bench.context(1), request)


def members(bench: Bench, group_id: str) -> int:
    group = bench.coordinator.store.find(group_id)
    return 0 if group is None else len(group.members)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_session_lasts_as_long_as_the_group_says(restarted: bool) -> None:
    bench = Bench()
    bench.topic("t", 1)
    set_config(bench, "long", SESSION, "55000")
    for group_id in ("long", "short"):
        heartbeat(bench, group_id)
    if restarted:
        bench.restart()
    bench.clock.advance(44_999)
    assert (members(bench, "short"), members(bench, "long")) == (1, 1)
    bench.clock.advance(1)
    assert (members(bench, "short"), members(bench, "long")) == (0, 1)
    bench.clock.advance(9_999)
    assert members(bench, "long") == 1
    bench.clock.advance(1)
    assert members(bench, "long") == 0


def test_a_changed_config_counts_from_the_next_heartbeat() -> None:
    bench = Bench()
    bench.topic("t", 1)
    first = heartbeat(bench, "g")
    assert first.heartbeat_interval_ms == 5000
    set_config(bench, "g", SESSION, "60000")
    set_config(bench, "g", HEARTBEAT, "15000")
    second = heartbeat(bench, "g", first.member_epoch)
    assert second.heartbeat_interval_ms == 15_000
    bench.clock.advance(59_999)
    assert members(bench, "g") == 1
    set_config(bench, "g", HEARTBEAT, None)
    assert heartbeat(bench, "g", first.member_epoch).heartbeat_interval_ms == 5000


def test_a_config_outside_of_changed_limits_is_the_nearest_limit() -> None:
    bench = Bench(group_consumer_max_heartbeat_interval_ms=9000, group_consumer_min_heartbeat_interval_ms=4000)
    bench.topic("t", 1)
    set_config(bench, "high", HEARTBEAT, "9001")
    set_config(bench, "low", HEARTBEAT, "3999")
    set_config(bench, "within", HEARTBEAT, "9000")
    assert [heartbeat(bench, each).heartbeat_interval_ms for each in ("high", "low", "within")] == [9000, 4000, 9000]
