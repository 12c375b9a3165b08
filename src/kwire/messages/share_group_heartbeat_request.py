"""Generated from ShareGroupHeartbeatRequest.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ShareGroupHeartbeatRequest"]


class ShareGroupHeartbeatRequest(base.Message, kw_only=True):
    """Request, api key 76; versions 0-1; flexible 0+; listeners broker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    member_id: str = ""
    """string; versions 0+."""
    member_epoch: int = 0
    """int32; versions 0+."""
    rack_id: str | None = None
    """string; versions 0+; nullable; default null."""
    subscribed_topic_names: list[str] | None = None
    """[]string; versions 0+; nullable; default null; topicName."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 76
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ShareGroupHeartbeatRequest", "apiKey": 76,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "MemberId", "type": "string", "versions": "0+"},
    {"name": "MemberEpoch", "type": "int32", "versions": "0+"},
    {"name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "SubscribedTopicNames", "type": "[]string", "versions": "0+", "nullableVersions": "0+", "default": "null", "entityType": "topicName"}
  ]
}
"""
