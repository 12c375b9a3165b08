"""Generated from AlterPartitionReassignmentsRequest.json, Kafka 2.4.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterPartitionReassignmentsRequest", "ReassignablePartition", "ReassignableTopic"]


class ReassignablePartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    replicas: list[int] | None = None
    """[]int32; versions 0+; nullable; default null; brokerId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ReassignableTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[ReassignablePartition] = []
    """[]ReassignablePartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterPartitionReassignmentsRequest(base.Message, kw_only=True):
    """Request, api key 45; versions 0-1; flexible 0+; listeners broker, controller, zkBroker."""

    timeout_ms: int = 60000
    """int32; versions 0+; default 60000."""
    allow_replication_factor_change: bool = True
    """bool; versions 1+; default true."""
    topics: list[ReassignableTopic] = []
    """[]ReassignableTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ReassignablePartition: ClassVar[type[ReassignablePartition]] = ReassignablePartition
    ReassignableTopic: ClassVar[type[ReassignableTopic]] = ReassignableTopic
    API_KEY: ClassVar[int | None] = 45
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AlterPartitionReassignmentsRequest", "apiKey": 45,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "TimeoutMs", "type": "int32", "versions": "0+", "default": "60000"},
    {"name": "AllowReplicationFactorChange", "type": "bool", "versions": "1+", "default": "true"},
    {"name": "Topics", "type": "[]ReassignableTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]ReassignablePartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "Replicas", "type": "[]int32", "versions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "brokerId"}
      ]}
    ]}
  ]
}
"""
