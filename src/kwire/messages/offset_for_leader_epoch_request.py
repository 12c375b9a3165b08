"""Generated from OffsetForLeaderEpochRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["OffsetForLeaderEpochRequest", "OffsetForLeaderPartition", "OffsetForLeaderTopic"]


class OffsetForLeaderPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("partitionIndex", "partition", 0, 3),)

    partition: int = 0
    """int32; versions 0+."""
    current_leader_epoch: int = -1
    """int32; versions 2+; default -1; ignorable."""
    leader_epoch: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetForLeaderTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("topic",)

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("name", "topic", 0, 3),)

    topic: str = ""
    """string; versions 0+; map key; topicName."""
    partitions: list[OffsetForLeaderPartition] = []
    """[]OffsetForLeaderPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class OffsetForLeaderEpochRequest(base.Message, kw_only=True):
    """Request, api key 23; versions 0-4; flexible 4+; deprecated 0-1; listeners broker, zkBroker."""

    replica_id: int = -2
    """int32; versions 3+; default -2; ignorable; brokerId."""
    topics: base.Keyed[OffsetForLeaderTopic] = base.keyed()
    """[]OffsetForLeaderTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    OffsetForLeaderPartition: ClassVar[type[OffsetForLeaderPartition]] = OffsetForLeaderPartition
    OffsetForLeaderTopic: ClassVar[type[OffsetForLeaderTopic]] = OffsetForLeaderTopic
    API_KEY: ClassVar[int | None] = 23
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "OffsetForLeaderEpochRequest", "apiKey": 23,
  "validVersions": "0-4", "deprecatedVersions": "0-1", "flexibleVersions": "4+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "ReplicaId", "type": "int32", "versions": "3+", "default": "-2", "ignorable": true, "entityType": "brokerId"},
    {"name": "Topics", "type": "[]OffsetForLeaderTopic", "versions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "Partitions", "type": "[]OffsetForLeaderPartition", "versions": "0+", "fields": [
        {"name": "Partition", "type": "int32", "versions": "0+"},
        {"name": "CurrentLeaderEpoch", "type": "int32", "versions": "2+", "default": "-1", "ignorable": true},
        {"name": "LeaderEpoch", "type": "int32", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
