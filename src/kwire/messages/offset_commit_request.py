"""Generated from OffsetCommitRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["OffsetCommitRequest", "OffsetCommitRequestPartition", "OffsetCommitRequestTopic"]


class OffsetCommitRequestPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    committed_offset: int = 0
    """int64; versions 0+."""
    committed_leader_epoch: int = -1
    """int32; versions 6+; default -1; ignorable."""
    commit_timestamp: int = -1
    """int64; versions 1; default -1."""
    committed_metadata: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetCommitRequestTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0-9; ignorable; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 10+; ignorable."""
    partitions: list[OffsetCommitRequestPartition] = []
    """[]OffsetCommitRequestPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetCommitRequest(base.Message, kw_only=True):
    """Request, api key 8; versions 0-10; flexible 8+; deprecated 0-1; listeners broker, zkBroker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    generation_id_or_member_epoch: int = -1
    """int32; versions 1+; default -1; ignorable."""
    member_id: str = ""
    """string; versions 1+; ignorable."""
    group_instance_id: str | None = None
    """string; versions 7+; nullable; default null."""
    retention_time_ms: int = -1
    """int64; versions 2-4; default -1; ignorable."""
    topics: list[OffsetCommitRequestTopic] = []
    """[]OffsetCommitRequestTopic; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    OffsetCommitRequestPartition: ClassVar[type[OffsetCommitRequestPartition]] = OffsetCommitRequestPartition
    OffsetCommitRequestTopic: ClassVar[type[OffsetCommitRequestTopic]] = OffsetCommitRequestTopic
    API_KEY: ClassVar[int | None] = 8
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 10)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(8, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("generationId", "generation_id_or_member_epoch", 1, 8),
    )
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "OffsetCommitRequest", "apiKey": 8,
  "validVersions": "0-10", "deprecatedVersions": "0-1", "flexibleVersions": "8+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "GenerationIdOrMemberEpoch", "type": "int32", "versions": "1+", "default": "-1", "ignorable": true},
    {"name": "MemberId", "type": "string", "versions": "1+", "ignorable": true},
    {"name": "GroupInstanceId", "type": "string", "versions": "7+", "nullableVersions": "7+", "default": "null"},
    {"name": "RetentionTimeMs", "type": "int64", "versions": "2-4", "default": "-1", "ignorable": true},
    {"name": "Topics", "type": "[]OffsetCommitRequestTopic", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0-9", "ignorable": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "10+", "ignorable": true},
      {"name": "Partitions", "type": "[]OffsetCommitRequestPartition", "versions": "0+", "fields": [
        {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
        {"name": "CommittedOffset", "type": "int64", "versions": "0+"},
        {"name": "CommittedLeaderEpoch", "type": "int32", "versions": "6+", "default": "-1", "ignorable": true},
        {"name": "CommitTimestamp", "type": "int64", "versions": "1", "default": "-1"},
        {"name": "CommittedMetadata", "type": "string", "versions": "0+", "nullableVersions": "0+"}
      ]}
    ]}
  ]
}
"""
