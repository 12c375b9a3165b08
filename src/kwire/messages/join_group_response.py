"""Generated from JoinGroupResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["JoinGroupResponse", "JoinGroupResponseMember"]


class JoinGroupResponseMember(base.Struct, kw_only=True):
    """Versions 0+."""

    member_id: str = ""
    """string; versions 0+."""
    group_instance_id: str | None = None
    """string; versions 5+; nullable; default null; ignorable."""
    metadata: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class JoinGroupResponse(base.Message, kw_only=True):
    """Response, api key 11; versions 0-9; flexible 6+."""

    throttle_time_ms: int = 0
    """int32; versions 2+; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    generation_id: int = -1
    """int32; versions 0+; default -1."""
    protocol_type: str | None = None
    """string; versions 7+; nullable; default null; ignorable."""
    protocol_name: str | None = ""
    """string; versions 0+; nullable in 7+."""
    leader: str = ""
    """string; versions 0+."""
    skip_assignment: bool = False
    """bool; versions 9+."""
    member_id: str = ""
    """string; versions 0+."""
    members: list[JoinGroupResponseMember] = []
    """[]JoinGroupResponseMember; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    JoinGroupResponseMember: ClassVar[type[JoinGroupResponseMember]] = JoinGroupResponseMember
    API_KEY: ClassVar[int | None] = 11
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 9)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(6, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "JoinGroupResponse", "apiKey": 11,
  "validVersions": "0-9", "flexibleVersions": "6+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "2+", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "GenerationId", "type": "int32", "versions": "0+", "default": "-1"},
    {"name": "ProtocolType", "type": "string", "versions": "7+", "nullableVersions": "7+", "default": "null", "ignorable": true},
    {"name": "ProtocolName", "type": "string", "versions": "0+", "nullableVersions": "7+"},
    {"name": "Leader", "type": "string", "versions": "0+"},
    {"name": "SkipAssignment", "type": "bool", "versions": "9+"},
    {"name": "MemberId", "type": "string", "versions": "0+"},
    {"name": "Members", "type": "[]JoinGroupResponseMember", "versions": "0+", "fields": [
      {"name": "MemberId", "type": "string", "versions": "0+"},
      {"name": "GroupInstanceId", "type": "string", "versions": "5+", "nullableVersions": "5+", "default": "null", "ignorable": true},
      {"name": "Metadata", "type": "bytes", "versions": "0+"}
    ]}
  ]
}
"""
