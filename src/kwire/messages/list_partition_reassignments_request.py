"""Generated from ListPartitionReassignmentsRequest.json, Kafka 2.4.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListPartitionReassignmentsRequest", "ListPartitionReassignmentsTopics"]


class ListPartitionReassignmentsTopics(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partition_indexes: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListPartitionReassignmentsRequest(base.Message, kw_only=True):
    """Request, api key 46; versions 0; flexible 0+; listeners broker, controller, zkBroker."""

    timeout_ms: int = 60000
    """int32; versions 0+; default 60000."""
    topics: list[ListPartitionReassignmentsTopics] | None = None
    """[]ListPartitionReassignmentsTopics; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ListPartitionReassignmentsTopics: ClassVar[type[ListPartitionReassignmentsTopics]] = (
        ListPartitionReassignmentsTopics
    )
    API_KEY: ClassVar[int | None] = 46
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ListPartitionReassignmentsRequest", "apiKey": 46,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "TimeoutMs", "type": "int32", "versions": "0+", "default": "60000"},
    {"name": "Topics", "type": "[]ListPartitionReassignmentsTopics", "versions": "0+", "nullableVersions": "0+", "default": "null", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "PartitionIndexes", "type": "[]int32", "versions": "0+"}
    ]}
  ]
}
"""
