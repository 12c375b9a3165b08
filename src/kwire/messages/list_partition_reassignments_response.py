"""Generated from ListPartitionReassignmentsResponse.json, Kafka 2.4.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListPartitionReassignmentsResponse", "OngoingPartitionReassignment", "OngoingTopicReassignment"]


class OngoingPartitionReassignment(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    replicas: list[int] = []
    """[]int32; versions 0+; brokerId."""
    adding_replicas: list[int] = []
    """[]int32; versions 0+; brokerId."""
    removing_replicas: list[int] = []
    """[]int32; versions 0+; brokerId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OngoingTopicReassignment(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[OngoingPartitionReassignment] = []
    """[]OngoingPartitionReassignment; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListPartitionReassignmentsResponse(base.Message, kw_only=True):
    """Response, api key 46; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    topics: list[OngoingTopicReassignment] = []
    """[]OngoingTopicReassignment; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    OngoingPartitionReassignment: ClassVar[type[OngoingPartitionReassignment]] = OngoingPartitionReassignment
    OngoingTopicReassignment: ClassVar[type[OngoingTopicReassignment]] = OngoingTopicReassignment
    API_KEY: ClassVar[int | None] = 46
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ListPartitionReassignmentsResponse", "apiKey": 46,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Topics", "type": "[]OngoingTopicReassignment", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]OngoingPartitionReassignment", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "Replicas", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "AddingReplicas", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "RemovingReplicas", "type": "[]int32", "versions": "0+", "entityType": "brokerId"}
      ]}
    ]}
  ]
}
"""
