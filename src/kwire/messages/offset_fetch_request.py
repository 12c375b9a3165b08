"""Generated from OffsetFetchRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["OffsetFetchRequest", "OffsetFetchRequestGroup", "OffsetFetchRequestTopic", "OffsetFetchRequestTopics"]


class OffsetFetchRequestTopic(base.Struct, kw_only=True):
    """Versions 0-7."""

    name: str = ""
    """string; versions 0-7; topicName."""
    partition_indexes: list[int] = []
    """[]int32; versions 0-7."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetFetchRequestTopics(base.Struct, kw_only=True):
    """Versions 8+."""

    name: str = ""
    """string; versions 8-9; ignorable; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 10+; ignorable."""
    partition_indexes: list[int] = []
    """[]int32; versions 8+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetFetchRequestGroup(base.Struct, kw_only=True):
    """Versions 8+."""

    group_id: str = ""
    """string; versions 8+; groupId."""
    member_id: str | None = None
    """string; versions 9+; nullable; default null; ignorable."""
    member_epoch: int = -1
    """int32; versions 9+; default -1; ignorable."""
    topics: list[OffsetFetchRequestTopics] | None = []
    """[]OffsetFetchRequestTopics; versions 8+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OffsetFetchRequest(base.Message, kw_only=True):
    """Request, api key 9; versions 0-10; flexible 6+; deprecated 0; listeners broker, zkBroker."""

    group_id: str = ""
    """string; versions 0-7; groupId."""
    topics: list[OffsetFetchRequestTopic] | None = []
    """[]OffsetFetchRequestTopic; versions 0-7; nullable in 2-7."""
    groups: list[OffsetFetchRequestGroup] = []
    """[]OffsetFetchRequestGroup; versions 8+."""
    require_stable: bool = False
    """bool; versions 7+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    OffsetFetchRequestTopic: ClassVar[type[OffsetFetchRequestTopic]] = OffsetFetchRequestTopic
    OffsetFetchRequestTopics: ClassVar[type[OffsetFetchRequestTopics]] = OffsetFetchRequestTopics
    OffsetFetchRequestGroup: ClassVar[type[OffsetFetchRequestGroup]] = OffsetFetchRequestGroup
    API_KEY: ClassVar[int | None] = 9
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 10)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(6, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "OffsetFetchRequest", "apiKey": 9,
  "validVersions": "0-10", "deprecatedVersions": "0", "flexibleVersions": "6+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0-7", "entityType": "groupId"},
    {"name": "Topics", "type": "[]OffsetFetchRequestTopic", "versions": "0-7", "nullableVersions": "2-7", "fields": [
      {"name": "Name", "type": "string", "versions": "0-7", "entityType": "topicName"},
      {"name": "PartitionIndexes", "type": "[]int32", "versions": "0-7"}
    ]},
    {"name": "Groups", "type": "[]OffsetFetchRequestGroup", "versions": "8+", "fields": [
      {"name": "GroupId", "type": "string", "versions": "8+", "entityType": "groupId"},
      {"name": "MemberId", "type": "string", "versions": "9+", "nullableVersions": "9+", "default": "null", "ignorable": true},
      {"name": "MemberEpoch", "type": "int32", "versions": "9+", "default": "-1", "ignorable": true},
      {"name": "Topics", "type": "[]OffsetFetchRequestTopics", "versions": "8+", "nullableVersions": "8+", "fields": [
        {"name": "Name", "type": "string", "versions": "8-9", "ignorable": true, "entityType": "topicName"},
        {"name": "TopicId", "type": "uuid", "versions": "10+", "ignorable": true},
        {"name": "PartitionIndexes", "type": "[]int32", "versions": "8+"}
      ]}
    ]},
    {"name": "RequireStable", "type": "bool", "versions": "7+"}
  ]
}
"""
