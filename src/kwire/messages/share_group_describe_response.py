"""Generated from ShareGroupDescribeResponse.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

import msgspec

from kwire.messages import base

__all__ = ["Assignment", "DescribedGroup", "Member", "ShareGroupDescribeResponse", "TopicPartitions"]


class TopicPartitions(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    topic_name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Assignment(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    topic_partitions: list[TopicPartitions] = []
    """[]TopicPartitions; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Member(base.Struct, kw_only=True):
    """Versions 0+."""

    member_id: str = ""
    """string; versions 0+."""
    rack_id: str | None = None
    """string; versions 0+; nullable; default null."""
    member_epoch: int = 0
    """int32; versions 0+."""
    client_id: str = ""
    """string; versions 0+."""
    client_host: str = ""
    """string; versions 0+."""
    subscribed_topic_names: list[str] = []
    """[]string; versions 0+; topicName."""
    assignment: Assignment = msgspec.field(default_factory=Assignment)
    """Assignment; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribedGroup(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    group_id: str = ""
    """string; versions 0+; groupId."""
    group_state: str = ""
    """string; versions 0+."""
    group_epoch: int = 0
    """int32; versions 0+."""
    assignment_epoch: int = 0
    """int32; versions 0+."""
    assignor_name: str = ""
    """string; versions 0+."""
    members: list[Member] = []
    """[]Member; versions 0+."""
    authorized_operations: int = -2147483648
    """int32; versions 0+; default -2147483648."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ShareGroupDescribeResponse(base.Message, kw_only=True):
    """Response, api key 77; versions 0-1; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    groups: list[DescribedGroup] = []
    """[]DescribedGroup; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicPartitions: ClassVar[type[TopicPartitions]] = TopicPartitions
    Assignment: ClassVar[type[Assignment]] = Assignment
    Member: ClassVar[type[Member]] = Member
    DescribedGroup: ClassVar[type[DescribedGroup]] = DescribedGroup
    API_KEY: ClassVar[int | None] = 77
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ShareGroupDescribeResponse", "apiKey": 77,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "TopicPartitions", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "TopicName", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]},
    {"name": "Assignment", "versions": "0+", "fields": [
      {"name": "TopicPartitions", "type": "[]TopicPartitions", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Groups", "type": "[]DescribedGroup", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
      {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
      {"name": "GroupState", "type": "string", "versions": "0+"},
      {"name": "GroupEpoch", "type": "int32", "versions": "0+"},
      {"name": "AssignmentEpoch", "type": "int32", "versions": "0+"},
      {"name": "AssignorName", "type": "string", "versions": "0+"},
      {"name": "Members", "type": "[]Member", "versions": "0+", "fields": [
        {"name": "MemberId", "type": "string", "versions": "0+"},
        {"name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
        {"name": "MemberEpoch", "type": "int32", "versions": "0+"},
        {"name": "ClientId", "type": "string", "versions": "0+"},
        {"name": "ClientHost", "type": "string", "versions": "0+"},
        {"name": "SubscribedTopicNames", "type": "[]string", "versions": "0+", "entityType": "topicName"},
        {"name": "Assignment", "type": "Assignment", "versions": "0+"}
      ]},
      {"name": "AuthorizedOperations", "type": "int32", "versions": "0+", "default": "-2147483648"}
    ]}
  ]
}
"""
