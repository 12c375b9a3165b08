"""Generated from LeaveGroupResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["LeaveGroupResponse", "MemberResponse"]


class MemberResponse(base.Struct, kw_only=True):
    """Versions 3+."""

    member_id: str = ""
    """string; versions 3+."""
    group_instance_id: str | None = ""
    """string; versions 3+; nullable."""
    error_code: int = 0
    """int16; versions 3+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class LeaveGroupResponse(base.Message, kw_only=True):
    """Response, api key 13; versions 0-5; flexible 4+."""

    throttle_time_ms: int = 0
    """int32; versions 1+; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    members: list[MemberResponse] = []
    """[]MemberResponse; versions 3+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    MemberResponse: ClassVar[type[MemberResponse]] = MemberResponse
    API_KEY: ClassVar[int | None] = 13
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "LeaveGroupResponse", "apiKey": 13,
  "validVersions": "0-5", "flexibleVersions": "4+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "Members", "type": "[]MemberResponse", "versions": "3+", "fields": [
      {"name": "MemberId", "type": "string", "versions": "3+"},
      {"name": "GroupInstanceId", "type": "string", "versions": "3+", "nullableVersions": "3+"},
      {"name": "ErrorCode", "type": "int16", "versions": "3+"}
    ]}
  ]
}
"""
