"""Generated from LeaveGroupRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["LeaveGroupRequest", "MemberIdentity"]


class MemberIdentity(base.Struct, kw_only=True):
    """Versions 3+."""

    member_id: str = ""
    """string; versions 3+."""
    group_instance_id: str | None = None
    """string; versions 3+; nullable; default null."""
    reason: str | None = None
    """string; versions 5+; nullable; default null; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class LeaveGroupRequest(base.Message, kw_only=True):
    """Request, api key 13; versions 0-5; flexible 4+; listeners broker, zkBroker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    member_id: str = ""
    """string; versions 0-2."""
    members: list[MemberIdentity] = []
    """[]MemberIdentity; versions 3+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    MemberIdentity: ClassVar[type[MemberIdentity]] = MemberIdentity
    API_KEY: ClassVar[int | None] = 13
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "LeaveGroupRequest", "apiKey": 13,
  "validVersions": "0-5", "flexibleVersions": "4+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "MemberId", "type": "string", "versions": "0-2"},
    {"name": "Members", "type": "[]MemberIdentity", "versions": "3+", "fields": [
      {"name": "MemberId", "type": "string", "versions": "3+"},
      {"name": "GroupInstanceId", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null"},
      {"name": "Reason", "type": "string", "versions": "5+", "nullableVersions": "5+", "default": "null", "ignorable": true}
    ]}
  ]
}
"""
