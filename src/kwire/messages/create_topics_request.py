"""Generated from CreateTopicsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["CreatableReplicaAssignment", "CreatableTopic", "CreatableTopicConfig", "CreateTopicsRequest"]


class CreatableReplicaAssignment(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("partition_index",)

    partition_index: int = 0
    """int32; versions 0+; map key."""
    broker_ids: list[int] = []
    """[]int32; versions 0+; brokerId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class CreatableTopicConfig(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key."""
    value: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("assignments", "configs")
class CreatableTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key; topicName."""
    num_partitions: int = 0
    """int32; versions 0+."""
    replication_factor: int = 0
    """int16; versions 0+."""
    assignments: base.Keyed[CreatableReplicaAssignment] = base.keyed()
    """[]CreatableReplicaAssignment; versions 0+."""
    configs: base.Keyed[CreatableTopicConfig] = base.keyed()
    """[]CreatableTopicConfig; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class CreateTopicsRequest(base.Message, kw_only=True):
    """Request, api key 19; versions 0-7; flexible 5+; deprecated 0-1; listeners broker, controller, zkBroker."""

    topics: base.Keyed[CreatableTopic] = base.keyed()
    """[]CreatableTopic; versions 0+."""
    timeout_ms: int = 60000
    """int32; versions 0+; default 60000."""
    validate_only: bool = False
    """bool; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    CreatableReplicaAssignment: ClassVar[type[CreatableReplicaAssignment]] = CreatableReplicaAssignment
    CreatableTopicConfig: ClassVar[type[CreatableTopicConfig]] = CreatableTopicConfig
    CreatableTopic: ClassVar[type[CreatableTopic]] = CreatableTopic
    API_KEY: ClassVar[int | None] = 19
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 7)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(5, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "CreateTopicsRequest", "apiKey": 19,
  "validVersions": "0-7", "deprecatedVersions": "0-1", "flexibleVersions": "5+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Topics", "type": "[]CreatableTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "NumPartitions", "type": "int32", "versions": "0+"},
      {"name": "ReplicationFactor", "type": "int16", "versions": "0+"},
      {"name": "Assignments", "type": "[]CreatableReplicaAssignment", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+", "mapKey": true},
        {"name": "BrokerIds", "type": "[]int32", "versions": "0+", "entityType": "brokerId"}
      ]},
      {"name": "Configs", "type": "[]CreatableTopicConfig", "versions": "0+", "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
        {"name": "Value", "type": "string", "versions": "0+", "nullableVersions": "0+"}
      ]}
    ]},
    {"name": "timeoutMs", "type": "int32", "versions": "0+", "default": "60000"},
    {"name": "validateOnly", "type": "bool", "versions": "1+"}
  ]
}
"""
