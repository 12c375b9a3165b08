"""Generated from DescribeTopicPartitionsResponse.json, Kafka 3.8.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = [
    "Cursor",
    "DescribeTopicPartitionsResponse",
    "DescribeTopicPartitionsResponsePartition",
    "DescribeTopicPartitionsResponseTopic",
]


class DescribeTopicPartitionsResponsePartition(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    partition_index: int = 0
    """int32; versions 0+."""
    leader_id: int = 0
    """int32; versions 0+; brokerId."""
    leader_epoch: int = -1
    """int32; versions 0+; default -1; ignorable."""
    replica_nodes: list[int] = []
    """[]int32; versions 0+; brokerId."""
    isr_nodes: list[int] = []
    """[]int32; versions 0+; brokerId."""
    eligible_leader_replicas: list[int] | None = None
    """[]int32; versions 0+; nullable; default null; brokerId."""
    last_known_elr: list[int] | None = None
    """[]int32; versions 0+; nullable; default null; brokerId."""
    offline_replicas: list[int] = []
    """[]int32; versions 0+; ignorable; brokerId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeTopicPartitionsResponseTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    error_code: int = 0
    """int16; versions 0+."""
    name: str | None = ""
    """string; versions 0+; nullable; map key; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+; ignorable."""
    is_internal: bool = False
    """bool; versions 0+; ignorable."""
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    """[]DescribeTopicPartitionsResponsePartition; versions 0+."""
    topic_authorized_operations: int = -2147483648
    """int32; versions 0+; default -2147483648."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Cursor(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_name: str = ""
    """string; versions 0+; topicName."""
    partition_index: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class DescribeTopicPartitionsResponse(base.Message, kw_only=True):
    """Response, api key 75; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+; ignorable."""
    topics: base.Keyed[DescribeTopicPartitionsResponseTopic] = base.keyed()
    """[]DescribeTopicPartitionsResponseTopic; versions 0+."""
    next_cursor: Cursor | None = None
    """Cursor; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribeTopicPartitionsResponsePartition: ClassVar[type[DescribeTopicPartitionsResponsePartition]] = (
        DescribeTopicPartitionsResponsePartition
    )
    DescribeTopicPartitionsResponseTopic: ClassVar[type[DescribeTopicPartitionsResponseTopic]] = (
        DescribeTopicPartitionsResponseTopic
    )
    Cursor: ClassVar[type[Cursor]] = Cursor
    API_KEY: ClassVar[int | None] = 75
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeTopicPartitionsResponse", "apiKey": 75,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+", "ignorable": true},
    {"name": "Topics", "type": "[]DescribeTopicPartitionsResponseTopic", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "Name", "type": "string", "versions": "0+", "nullableVersions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "0+", "ignorable": true},
      {"name": "IsInternal", "type": "bool", "versions": "0+", "ignorable": true},
      {"name": "Partitions", "type": "[]DescribeTopicPartitionsResponsePartition", "versions": "0+", "fields": [
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "LeaderId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "LeaderEpoch", "type": "int32", "versions": "0+", "default": "-1", "ignorable": true},
        {"name": "ReplicaNodes", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "IsrNodes", "type": "[]int32", "versions": "0+", "entityType": "brokerId"},
        {"name": "EligibleLeaderReplicas", "type": "[]int32", "versions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "brokerId"},
        {"name": "LastKnownElr", "type": "[]int32", "versions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "brokerId"},
        {"name": "OfflineReplicas", "type": "[]int32", "versions": "0+", "ignorable": true, "entityType": "brokerId"}
      ]},
      {"name": "TopicAuthorizedOperations", "type": "int32", "versions": "0+", "default": "-2147483648"}
    ]},
    {"name": "NextCursor", "type": "Cursor", "versions": "0+", "nullableVersions": "0+", "default": "null", "fields": [
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "PartitionIndex", "type": "int32", "versions": "0+"}
    ]}
  ]
}
"""
