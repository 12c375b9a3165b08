"""Generated from ElectPreferredLeadersRequest.json, Kafka 2.2.2 to 2.3.1, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ElectPreferredLeadersRequest", "TopicPartitions"]


class TopicPartitions(base.Struct, kw_only=True):
    """Versions 0+."""

    topic: str = ""
    """string; versions 0+; topicName."""
    partition_id: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ElectPreferredLeadersRequest(base.Message, kw_only=True):
    """Request, api key 43; versions 0; flexible none."""

    topic_partitions: list[TopicPartitions] | None = []
    """[]TopicPartitions; versions 0+; nullable."""
    timeout_ms: int = 60000
    """int32; versions 0+; default 60000."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicPartitions: ClassVar[type[TopicPartitions]] = TopicPartitions
    API_KEY: ClassVar[int | None] = 43
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ElectPreferredLeadersRequest", "apiKey": 43,
  "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    {"name": "TopicPartitions", "type": "[]TopicPartitions", "versions": "0+", "nullableVersions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "PartitionId", "type": "[]int32", "versions": "0+"}
    ]},
    {"name": "TimeoutMs", "type": "int32", "versions": "0+", "default": "60000"}
  ]
}
"""
