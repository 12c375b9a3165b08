"""Configs of topics, brokers, client metrics and groups: validated as in Kafka 4.4.0, stored and described.

tests/data/config-changes-4.4.0.jsonl.gz holds the responses of Kafka 4.4.0 to IncrementalAlterConfigs requests with
validate_only: every topic, broker and group config, at the limits of its range and beyond.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire import messages
from kwire.broker import Broker
from kwire.broker.configs.definitions import definitions
from kwire.messages.error_codes import ErrorCode
from tests.broker.wire import RawClient

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE = 0, 1
RECORDED = Path(__file__).parents[1] / "data" / "config-changes-4.4.0.jsonl.gz"
DIFFERENT = {
    "cannot be altered while ELR is enabled": "eligible leader replicas are of metadata.version 4.1, this has 3.9's",
    "Error creating broker listeners": "the addresses of a running broker stay; Kafka's text is about its controller",
    "controller.listener.names must": "the same",
    "Configuration 'listeners' must not be empty": "the same",
    "Error parsing configuration property": "Kafka's text is that of a Java exception",
    "/ by zero": "the same",
}
"""Parts of error messages that differ here; the error codes of all but the first are the same."""
OLD_NAMES = ("message.format.version", "message.downconversion.enable", "message.timestamp.difference.max.ms")
"""Configs that Kafka 4 removed and magic 0 and 1 need."""


@pytest.fixture(scope="module")
def client() -> Iterator[RawClient]:
    heartbeats: dict[str, Any] = {
        "group_consumer_heartbeat_interval_ms": 5000,
        "group_consumer_min_heartbeat_interval_ms": 5000,
    }
    with Broker(**heartbeats) as broker, RawClient(broker) as client:
        broker.call(lambda node: node.controller.create_topic("t", 1))
        yield client


def alter(client: RawClient, kind: int, name: str, ops: list[list[Any]], *, validate_only: bool = False) -> Any:
    cls = messages.IncrementalAlterConfigsRequest
    configs = [cls.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in ops]
    resource = cls.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    response = client.ask(cls(resources=[resource], validate_only=validate_only), 1).responses[0]
    return response.error_code, response.error_message


def describe(
    client: RawClient, kind: int, name: str, keys: list[str] | None = None, *, with_documentation: bool = False
) -> dict[str, Any]:
    cls = messages.DescribeConfigsRequest
    resource = cls.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = cls(resources=[resource], include_synonyms=True, include_documentation=with_documentation)
    result = client.ask(request, 4).results[0]
    assert result.error_code == 0, result.error_message
    return {entry.name: entry for entry in result.configs}


def in_order(message: str | None) -> str | None:
    """Sort the names in a message; Kafka lists them in any order."""
    before, bracket, names = (message or "").partition("dynamically: [")
    return before + bracket + ", ".join(sorted(names.removesuffix("]").split(", "))) if bracket else message


def test_changes_are_validated_as_in_kafka(client: RawClient) -> None:
    differences = []
    for line in gzip.decompress(RECORDED.read_bytes()).splitlines():
        case = json.loads(line)
        names = [name for name, _, _ in case["ops"]]
        if any(name in OLD_NAMES for name in names) or any(op > 3 for _, op, _ in case["ops"]):
            continue
        code, message = alter(client, case["kind"], case["name"], case["ops"], validate_only=True)
        expected = case["message"]
        reason = next((part for part in DIFFERENT if part in (expected or "")), None)
        if reason is not None:
            if code != case["code"] and "ELR" not in reason:
                differences.append((case, code, message))
        elif (code, in_order(message)) != (case["code"], in_order(expected)):
            differences.append((case, code, message))
    assert differences == []


@pytest.mark.parametrize("name", OLD_NAMES)
def test_topic_configs_of_kafka_3_are_still_accepted(client: RawClient, name: str) -> None:
    value = {"message.format.version": "0.10.2", "message.downconversion.enable": "false"}.get(name, "5")
    assert alter(client, TOPIC, "t", [[name, SET, value]], validate_only=True) == (0, None)
    code, message = alter(client, TOPIC, "t", [[name, SET, "-x"]], validate_only=True)
    assert code == ErrorCode.INVALID_CONFIG
    assert message.startswith(f"Invalid value -x for configuration {name}: ")


def test_small_segments_need_internal_segment_bytes(client: RawClient) -> None:
    cls = messages.CreateTopicsRequest

    def create(name: str, key: str) -> Any:
        config = cls.CreatableTopicConfig(name=key, value="20000")
        topic = cls.CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=[config])
        return client.ask(cls(topics=[topic]), 7).topics[0]

    refused = create("small", "segment.bytes")
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert refused.error_message == (
        "Invalid value 20000 for configuration segment.bytes: Value must be at least 1048576"
    )
    assert create("small", "internal.segment.bytes").error_code == 0
    entries = describe(client, TOPIC, "small")
    assert entries["internal.segment.bytes"].value == "20000"
    assert entries["segment.bytes"].value == "1073741824"
    assert "internal.segment.bytes" not in describe(client, TOPIC, "t")


@pytest.mark.parametrize(
    ("resource", "name", "value"),
    [
        ("1", "num.io.threads", "9"),
        ("", "log.cleaner.threads", "2"),
        ("1", "follower.replication.throttled.rate", "77"),
        ("", "background.threads", "12"),
    ],
)
def test_configs_without_an_effect_are_stored_and_described(resource: str, name: str, value: str) -> None:
    with Broker() as broker, RawClient(broker) as client:
        before = describe(client, BROKER, "1").get(name)
        assert alter(client, BROKER, resource, [[name, SET, value]]) == (0, None)
        entry = describe(client, BROKER, "1")[name]
        source = 2 if resource else 3
        assert (entry.value, entry.config_source, entry.read_only, entry.is_sensitive) == (value, source, False, False)
        assert (name in describe(client, BROKER, "")) == (resource == "")
        assert alter(client, BROKER, resource, [[name, DELETE, None]]) == (0, None)
        after = describe(client, BROKER, "1").get(name)
        assert after == before


def test_an_unknown_config_is_stored_and_its_value_is_not_described(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, RawClient(broker) as client:
        assert alter(client, BROKER, "", [["some.custom.name", SET, "a secret?"]]) == (0, None)
    with Broker(tmp_path) as broker, RawClient(broker) as client:
        entry = describe(client, BROKER, "1")["some.custom.name"]
        assert (entry.value, entry.is_sensitive, entry.read_only, entry.config_type) == (None, True, True, 0)
        assert [(each.value, each.source) for each in entry.synonyms] == [(None, 3)]
        stored = broker.call(lambda node: node.cluster.configs["broker", ""])
        assert stored == {"some.custom.name": "a secret?"}


def test_a_node_id_from_the_directory_brings_its_dynamic_configs(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", node_id=5) as broker, RawClient(broker) as client:
        assert alter(client, BROKER, "5", [["log.retention.ms", SET, "12345"]]) == (0, None)
        broker.call(lambda node: node.controller.create_topic("t", 1))
    with Broker(tmp_path / "data") as broker:
        assert broker.call(lambda node: (node.node_id, node.settings.log_retention_ms)) == (5, 12345)
        assert broker.call(lambda node: node.topics.partition("t", 0).opened.config.retention_ms) == 12345


def test_a_broker_describes_all_configs_of_kafka() -> None:
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    given = {"listeners": listeners, "users": {"alice": "secret"}, "num_partitions": 3, "queued.max.requests": "7"}
    with Broker(**given) as broker, RawClient(broker) as client:
        entries = describe(client, BROKER, "1")
        assert len(entries) > 350
        endpoints = broker.call(lambda node: node.endpoints)
        address = ",".join(f"{name}://{host}:{port}" for name, (host, port) in endpoints.items())
        assert (entries["queued.max.requests"].value, entries["queued.max.requests"].config_source) == ("7", 4)
        assert (entries["advertised.listeners"].value, entries["advertised.listeners"].config_source) == (address, 4)
        assert entries["broker.id"].value == entries["node.id"].value == "1"
        assert (entries["num.partitions"].value, entries["num.partitions"].config_source) == ("3", 4)
        assert (entries["num.io.threads"].value, entries["num.io.threads"].config_source) == ("8", 5)
        assert entries["num.io.threads"].config_type == 3
        assert entries["delegation.token.secret.key"].is_sensitive
        assert (entries["users"].value, entries["users"].is_sensitive) == (None, True)
        assert all("secret" not in (entry.value or "") for entry in entries.values())
        assert set(describe(client, BROKER, "1", ["num.io.threads", "nope"])) == {"num.io.threads"}
        assert describe(client, BROKER, "") == {}


def test_one_invalid_change_rejects_the_others(client: RawClient) -> None:
    code, message = alter(client, BROKER, "1", [["num.io.threads", SET, "9"], ["broker.id", SET, "5"]])
    assert (code, message) == (ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: [broker.id]")
    assert describe(client, BROKER, "1")["num.io.threads"].value == "8"


def test_a_client_metrics_subscription_lasts_until_its_last_config_is_deleted(client: RawClient) -> None:
    assert alter(client, CLIENT_METRICS, "sub", [["interval.ms", SET, "1000"], ["match", SET, "client_id=x.*"]])[0] == 0
    entries = describe(client, CLIENT_METRICS, "sub")
    assert (entries["interval.ms"].value, entries["interval.ms"].config_source) == ("1000", 7)
    assert (entries["metrics"].value, entries["metrics"].config_source) == ("", 5)
    assert alter(client, CLIENT_METRICS, "sub", [["interval.ms", DELETE, None], ["match", DELETE, None]])[0] == 0
    assert describe(client, CLIENT_METRICS, "sub")["interval.ms"].value == "300000"


@pytest.mark.parametrize("kind", [0, 77, 127])
def test_configs_of_an_unknown_resource_type_cannot_be_altered(client: RawClient, kind: int) -> None:
    assert alter(client, kind, "t", [["a", SET, "b"]]) == (
        ErrorCode.INVALID_REQUEST,
        f"Unknown resource type {kind}",
    )
    cls = messages.AlterConfigsRequest
    resource = cls.AlterConfigsResource(resource_type=kind, resource_name="t", configs=[])
    assert client.ask(cls(resources=[resource]), 2).responses[0].error_code == ErrorCode.INVALID_REQUEST


def test_a_cleanup_policy_can_be_empty(client: RawClient) -> None:
    assert alter(client, TOPIC, "t", [["cleanup.policy", SET, ""]]) == (0, None)
    assert describe(client, TOPIC, "t")["cleanup.policy"].value == ""
    assert alter(client, TOPIC, "t", [["cleanup.policy", DELETE, None]]) == (0, None)


def documentation(client: RawClient, kind: int, name: str) -> dict[str, str | None]:
    """Return the documentation of all configs of a resource."""
    return {key: entry.documentation for key, entry in describe(client, kind, name, with_documentation=True).items()}


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "t"), (BROKER, "1"), (CLIENT_METRICS, "sub"), (GROUP, "g")])
def test_configs_are_documented_as_in_kafka(client: RawClient, kind: int, name: str) -> None:
    resource = {TOPIC: "topic", BROKER: "broker", CLIENT_METRICS: "client-metrics", GROUP: "group"}[kind]
    found = documentation(client, kind, name)
    known = {key for key in definitions(resource) if key in found and key not in OLD_NAMES}
    assert known
    assert {key for key, text in found.items() if text} == known
    assert all(entry.documentation is None for entry in describe(client, kind, name).values())


def test_documentation_keeps_its_characters(client: RawClient) -> None:
    assert documentation(client, CLIENT_METRICS, "sub")["interval.ms"] == "Metrics push interval in milliseconds"
    found = documentation(client, BROKER, "1")
    assert "\n" in (found["listeners"] or "")
    rules = "A list of rules for mapping from principal names to short names (typically operating system usernames). "
    assert (found["sasl.kerberos.principal.to.local.rules"] or "").startswith(rules)


def test_a_config_of_a_listener_has_no_documentation() -> None:
    with Broker() as broker, RawClient(broker) as client:
        name = "listener.name.plaintext.max.connections"
        assert alter(client, BROKER, "1", [[name, SET, "7"]])[0] == 0
        found = documentation(client, BROKER, "1")
        assert found[name] is None
        assert found["max.connections"] is not None
