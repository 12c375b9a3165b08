"""Generated from ConsumerGroupHeartbeatRequest.json, Kafka 3.5.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["ConsumerGroupHeartbeatRequest", "TopicPartitions"]


class TopicPartitions(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ConsumerGroupHeartbeatRequest(base.Message, kw_only=True):
    """Request, api key 68; versions 0-1; flexible 0+; listeners broker, zkBroker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    member_id: str = ""
    """string; versions 0+."""
    member_epoch: int = 0
    """int32; versions 0+."""
    instance_id: str | None = None
    """string; versions 0+; nullable; default null."""
    rack_id: str | None = None
    """string; versions 0+; nullable; default null."""
    rebalance_timeout_ms: int = -1
    """int32; versions 0+; default -1."""
    subscribed_topic_names: list[str] | None = None
    """[]string; versions 0+; nullable; default null; topicName."""
    subscribed_topic_regex: str | None = None
    """string; versions 1+; nullable; default null."""
    server_assignor: str | None = None
    """string; versions 0+; nullable; default null."""
    topic_partitions: list[TopicPartitions] | None = None
    """[]TopicPartitions; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicPartitions: ClassVar[type[TopicPartitions]] = TopicPartitions
    API_KEY: ClassVar[int | None] = 68
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ConsumerGroupHeartbeatRequest", "apiKey": 68,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "MemberId", "type": "string", "versions": "0+"},
    {"name": "MemberEpoch", "type": "int32", "versions": "0+"},
    {"name": "InstanceId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "RebalanceTimeoutMs", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "SubscribedTopicNames", "type": "[]string", "versions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "topicName"},
    {"name": "SubscribedTopicRegex", "type": "string", "versions": "1+", "nullableVersions": "1+", "default": "null"},
    {"name": "ServerAssignor", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "TopicPartitions", "type": "[]TopicPartitions", "versions": "0+", "nullableVersions": "0+", "default": "null", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]}
  ]
}
"""
