"""Generated from ShareGroupHeartbeatResponse.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["Assignment", "ShareGroupHeartbeatResponse", "TopicPartitions"]


class TopicPartitions(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Assignment(base.Struct, kw_only=True):
    """Versions 0+."""

    topic_partitions: list[TopicPartitions] = []
    """[]TopicPartitions; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ShareGroupHeartbeatResponse(base.Message, kw_only=True):
    """Response, api key 76; versions 0-1; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    member_id: str | None = None
    """string; versions 0+; nullable; default null."""
    member_epoch: int = 0
    """int32; versions 0+."""
    heartbeat_interval_ms: int = 0
    """int32; versions 0+."""
    assignment: Assignment | None = None
    """Assignment; versions 0+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TopicPartitions: ClassVar[type[TopicPartitions]] = TopicPartitions
    Assignment: ClassVar[type[Assignment]] = Assignment
    API_KEY: ClassVar[int | None] = 76
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ShareGroupHeartbeatResponse", "apiKey": 76,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "TopicPartitions", "versions": "0+", "fields": [
      {"name": "TopicId", "type": "uuid", "versions": "0+"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "MemberId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "MemberEpoch", "type": "int32", "versions": "0+"},
    {"name": "HeartbeatIntervalMs", "type": "int32", "versions": "0+"},
    {"name": "Assignment", "type": "Assignment", "versions": "0+", "nullableVersions": "0+", "default": "null", "fields": [
      {"name": "TopicPartitions", "type": "[]TopicPartitions", "versions": "0+"}
    ]}
  ]
}
"""
