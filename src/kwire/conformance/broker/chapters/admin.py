"""Admin calls: what validate_only leaves as it is, partitions, configs."""

from __future__ import annotations

from typing import Any

from kwire.conformance.broker.bench import Bench
from kwire.conformance.broker.checks import Chapter
from kwire.conformance.broker.requests import error_name

__all__ = ["chapter"]

chapter = Chapter("Admin calls and configs")
SOURCE = "ReplicationControlManager; ConfigurationControlManager"
CONFIGS = {"CreateTopics": -1, "DescribeConfigs": 1, "IncrementalAlterConfigs": 0}
TOPIC = 2


def _config(bench: Bench, topic: str, name: str) -> list[Any]:
    resource = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": [name]}
    found = bench.ask("DescribeConfigs", resources=[resource]).results[0]
    return [error_name(found.error_code), *([each.name, each.value, each.config_source] for each in found.configs)]


def _alter(bench: Bench, topic: str, name: str, value: str | None, operation: int = 0, **fields: Any) -> str:
    change = {"name": name, "config_operation": operation, "value": value}
    resources = [{"resource_type": TOPIC, "resource_name": topic, "configs": [change]}]
    body = bench.ask("IncrementalAlterConfigs", at=bench.controller(), resources=resources, **fields)
    return error_name(body.responses[0].error_code)


@chapter.check("ADMIN-001", "CreateTopicsRequest", uses={"CreateTopics": -1, "Metadata": 4})
def create_validated_only(bench: Bench) -> Any:
    """CreateTopics with validate_only creates nothing.

    Send CreateTopics with validate_only, then Metadata for the topic.
    There is no error, and no topic.
    """
    name = bench.created(bench.name("topic"))
    topics = [{"name": name, "num_partitions": 2, "replication_factor": 1}]
    body = bench.ask("CreateTopics", at=bench.controller(), topics=topics, timeout_ms=5000, validate_only=True)
    found = bench.ask("Metadata", 4, topics=[{"name": name}], allow_auto_topic_creation=False)
    return {"create": error_name(body.topics[0].error_code), "metadata": error_name(found.topics[0].error_code)}


@chapter.check("ADMIN-002", SOURCE, uses={"CreateTopics": -1})
def create_twice(bench: Bench) -> Any:
    """A topic that exists cannot be created again.

    Create a topic, and create it again.
    The error is TOPIC_ALREADY_EXISTS.
    """
    topics = [{"name": bench.topic().name, "num_partitions": 1, "replication_factor": 1}]
    body = bench.ask("CreateTopics", at=bench.controller(), topics=topics, timeout_ms=5000)
    return {"error": error_name(body.topics[0].error_code)}


@chapter.check("ADMIN-003", SOURCE, uses={"CreateTopics": -1})
def wrong_counts(bench: Bench) -> Any:
    """Topics with 0 partitions, 0 replicas or an unknown config are refused.

    Validate the creation of each.
    The errors are those of the release.
    """
    name = bench.name("topic")
    wrong: list[dict[str, Any]] = [
        {"num_partitions": 0, "replication_factor": 1},
        {"num_partitions": 1, "replication_factor": 0},
        {"num_partitions": 1, "replication_factor": 1, "configs": [{"name": "no.such.config", "value": "1"}]},
        {"num_partitions": 1, "replication_factor": 1, "configs": [{"name": "retention.ms", "value": "x"}]},
    ]
    at, fields = bench.controller(), {"timeout_ms": 5000, "validate_only": True}
    bodies = [bench.ask("CreateTopics", None, at, topics=[{"name": name, **each}], **fields) for each in wrong]
    return {"errors": [error_name(each.topics[0].error_code) for each in bodies]}


@chapter.check("ADMIN-004", "KIP-195", uses={"CreateTopics": -1, "CreatePartitions": 0, "Metadata": 4})
def more_partitions(bench: Bench) -> Any:
    """CreatePartitions adds partitions, never removes any, and changes nothing with validate_only.

    Validate 5 partitions for a topic with 2, then ask for 1 and for 2, then Metadata.
    The first has no error, the others INVALID_PARTITIONS, and there are still 2 partitions.
    """
    topic = bench.topic("two", partitions=2)
    errors = []
    for count, validate_only in ((5, True), (1, False), (2, False)):
        asked = [{"name": topic.name, "count": count, "assignments": None}]
        fields: dict[str, Any] = {"topics": asked, "timeout_ms": 5000, "validate_only": validate_only}
        body = bench.ask("CreatePartitions", at=bench.controller(), **fields)
        errors.append(error_name(body.results[0].error_code))
    found = bench.ask("Metadata", 4, topics=[{"name": topic.name}])
    return {"errors": errors, "partitions": len(found.topics[0].partitions)}


@chapter.check("ADMIN-005", "KIP-226", uses=CONFIGS)
def described(bench: Bench) -> Any:
    """A config of a topic has its value and where it comes from.

    Create a topic with retention.ms=1234567, and describe this config and cleanup.policy.
    The first is of the topic, the second a default.
    """
    name = bench.topic("own", retention_ms="1234567").name
    return {"set": _config(bench, name, "retention.ms"), "default": _config(bench, name, "cleanup.policy")}


@chapter.check("ADMIN-006", "KIP-339", uses=CONFIGS)
def altered(bench: Bench) -> Any:
    """IncrementalAlterConfigs validates only, if asked to.

    Validate an alteration of retention.ms, and describe it.
    There is no error, and the value is the former one.
    """
    name = bench.topic("own", retention_ms="1234567").name
    error = _alter(bench, name, "retention.ms", "7654321", validate_only=True)
    return {"alter": error, "after": _config(bench, name, "retention.ms")}


@chapter.check("ADMIN-007", "KIP-339", uses=CONFIGS)
def wrong_alterations(bench: Bench) -> Any:
    """Alterations that make no sense are refused.

    Validate a value that is not a number, an unknown config, and APPEND to a number.
    The errors are those of the release.
    """
    name, only = bench.topic().name, {"validate_only": True}
    wrong = (("retention.ms", "x", 0), ("no.such.config", "1", 0), ("retention.ms", "1", 2))
    return {"errors": [_alter(bench, name, config, value, operation, **only) for config, value, operation in wrong]}
