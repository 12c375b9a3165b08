"""Generated from ElectLeadersRequest.json, Kafka 2.4.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ElectLeadersRequest", "TopicPartitions"]


class TopicPartitions(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic",)

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitionId", "partitions", 0, 2),)

    topic: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topic_partitions")
class ElectLeadersRequest(base.Message, kw_only=True):
    """Request, api key 43; versions 0-2; flexible 2+; listeners broker, controller, zkBroker."""

    election_type: int = 0
    """int8; versions 1+."""
    topic_partitions: base.NullableKeyed[TopicPartitions] = base.keyed()
    """[]TopicPartitions; versions 0+; nullable."""
    timeout_ms: int = 60000
    """int32; versions 0+; default 60000."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicPartitions: ClassVar[type[TopicPartitions]] = TopicPartitions
    API_KEY: ClassVar[int | None] = 43
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ElectLeadersRequest", "apiKey": 43,
  "validVersions": "0-2", "flexibleVersions": "2+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "ElectionType", "type": "int8", "versions": "1+"},
    {"name": "TopicPartitions", "type": "[]TopicPartitions", "versions": "0+", "nullableVersions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]},
    {"name": "TimeoutMs", "type": "int32", "versions": "0+", "default": "60000"}
  ]
}
"""
