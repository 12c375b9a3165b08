"""Generated from OffsetFetchResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = [
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartition",
    "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic",
    "OffsetFetchResponseTopics",
]


class OffsetFetchResponsePartition(base.Struct, kw_only=True):
    """Versions 0-7."""

    partition_index: int = 0
    """int32; versions 0-7."""
    committed_offset: int = 0
    """int64; versions 0-7."""
    committed_leader_epoch: int = -1
    """int32; versions 5-7; default -1; ignorable."""
    metadata: str | None = ""
    """string; versions 0-7; nullable."""
    error_code: int = 0
    """int16; versions 0-7."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetFetchResponseTopic(base.Struct, kw_only=True):
    """Versions 0-7."""

    name: str = ""
    """string; versions 0-7; topicName."""
    partitions: list[OffsetFetchResponsePartition] = []
    """[]OffsetFetchResponsePartition; versions 0-7."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetFetchResponsePartitions(base.Struct, kw_only=True):
    """Versions 8+."""

    partition_index: int = 0
    """int32; versions 8+."""
    committed_offset: int = 0
    """int64; versions 8+."""
    committed_leader_epoch: int = -1
    """int32; versions 8+; default -1; ignorable."""
    metadata: str | None = ""
    """string; versions 8+; nullable."""
    error_code: int = 0
    """int16; versions 8+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetFetchResponseTopics(base.Struct, kw_only=True):
    """Versions 8+."""

    name: str = ""
    """string; versions 8-9; ignorable; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 10+; ignorable."""
    partitions: list[OffsetFetchResponsePartitions] = []
    """[]OffsetFetchResponsePartitions; versions 8+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetFetchResponseGroup(base.Struct, kw_only=True):
    """Versions 8+."""

    group_id: str = ""
    """string; versions 8+; groupId."""
    topics: list[OffsetFetchResponseTopics] = []
    """[]OffsetFetchResponseTopics; versions 8+."""
    error_code: int = 0
    """int16; versions 8+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetFetchResponse(base.Message, kw_only=True):
    """Response, api key 9; versions 0-10; flexible 6+."""

    throttle_time_ms: int = 0
    """int32; versions 3+; ignorable."""
    topics: list[OffsetFetchResponseTopic] = []
    """[]OffsetFetchResponseTopic; versions 0-7."""
    error_code: int = 0
    """int16; versions 2-7; ignorable."""
    groups: list[OffsetFetchResponseGroup] = []
    """[]OffsetFetchResponseGroup; versions 8+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    OffsetFetchResponsePartition: ClassVar[type[OffsetFetchResponsePartition]] = OffsetFetchResponsePartition
    OffsetFetchResponseTopic: ClassVar[type[OffsetFetchResponseTopic]] = OffsetFetchResponseTopic
    OffsetFetchResponsePartitions: ClassVar[type[OffsetFetchResponsePartitions]] = OffsetFetchResponsePartitions
    OffsetFetchResponseTopics: ClassVar[type[OffsetFetchResponseTopics]] = OffsetFetchResponseTopics
    OffsetFetchResponseGroup: ClassVar[type[OffsetFetchResponseGroup]] = OffsetFetchResponseGroup
    API_KEY: ClassVar[int | None] = 9
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 10)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(6, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "OffsetFetchResponse", "apiKey": 9,
  "validVersions": "0-10", "flexibleVersions": "6+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "3+", "ignorable": true},
    {"name": "Topics", "type": "[]OffsetFetchResponseTopic", "versions": "0-7", "fields": [
      {"name": "Name", "type": "string", "versions": "0-7", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]OffsetFetchResponsePartition", "versions": "0-7", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0-7"},
        {"name": "CommittedOffset", "type": "int64", "versions": "0-7"},
        {"name": "CommittedLeaderEpoch", "type": "int32", "versions": "5-7", "default": "-1", "ignorable": true},
        {"name": "Metadata", "type": "string", "versions": "0-7", "nullableVersions": "0-7"},
        {"name": "ErrorCode", "type": "int16", "versions": "0-7"}
      ]}
    ]},
    {"name": "ErrorCode", "type": "int16", "versions": "2-7", "ignorable": true},
    {"name": "Groups", "type": "[]OffsetFetchResponseGroup", "versions": "8+", "fields": [
      {"name": "GroupId", "type": "string", "versions": "8+", "entityType": "groupId"},
      {"name": "Topics", "type": "[]OffsetFetchResponseTopics", "versions": "8+", "fields": [
        {"name": "Name", "type": "string", "versions": "8-9", "ignorable": true, "entityType": "topicName"},
        {"name": "TopicId", "type": "uuid", "versions": "10+", "ignorable": true},
        {"name": "Partitions", "type": "[]OffsetFetchResponsePartitions", "versions": "8+", "fields": [
          {"name": "PartitionIndex", "type": "int32", "versions": "8+"},
          {"name": "CommittedOffset", "type": "int64", "versions": "8+"},
          {"name": "CommittedLeaderEpoch", "type": "int32", "versions": "8+", "default": "-1", "ignorable": true},
          {"name": "Metadata", "type": "string", "versions": "8+", "nullableVersions": "8+"},
          {"name": "ErrorCode", "type": "int16", "versions": "8+"}
        ]}
      ]},
      {"name": "ErrorCode", "type": "int16", "versions": "8+"}
    ]}
  ]
}
"""
