"""Generated from CreatePartitionsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["CreatePartitionsAssignment", "CreatePartitionsRequest", "CreatePartitionsTopic"]


class CreatePartitionsAssignment(base.Struct, kw_only=True):
    """Versions 0+."""

    broker_ids: list[int] = []
    """[]int32; versions 0+; brokerId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class CreatePartitionsTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key; topicName."""
    count: int = 0
    """int32; versions 0+."""
    assignments: list[CreatePartitionsAssignment] | None = []
    """[]CreatePartitionsAssignment; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class CreatePartitionsRequest(base.Message, kw_only=True):
    """Request, api key 37; versions 0-3; flexible 2+; listeners broker, controller, zkBroker."""

    topics: base.Keyed[CreatePartitionsTopic] = base.keyed()
    """[]CreatePartitionsTopic; versions 0+."""
    timeout_ms: int = 0
    """int32; versions 0+."""
    validate_only: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    CreatePartitionsAssignment: ClassVar[type[CreatePartitionsAssignment]] = CreatePartitionsAssignment
    CreatePartitionsTopic: ClassVar[type[CreatePartitionsTopic]] = CreatePartitionsTopic
    API_KEY: ClassVar[int | None] = 37
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "CreatePartitionsRequest", "apiKey": 37,
  "validVersions": "0-3", "flexibleVersions": "2+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Topics", "type": "[]CreatePartitionsTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Count", "type": "int32", "versions": "0+"},
      {"name": "Assignments", "type": "[]CreatePartitionsAssignment", "versions": "0+", "nullableVersions": "0+", "fields": [
        {"name": "BrokerIds", "type": "[]int32", "versions": "0+", "entityType": "brokerId"}
      ]}
    ]},
    {"name": "TimeoutMs", "type": "int32", "versions": "0+"},
    {"name": "ValidateOnly", "type": "bool", "versions": "0+"}
  ]
}
"""
