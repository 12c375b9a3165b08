"""Generated from DescribeGroupsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeGroupsResponse", "DescribedGroup", "DescribedGroupMember"]


class DescribedGroupMember(base.Struct, kw_only=True):
    """Versions 0+."""

    member_id: str = ""
    """string; versions 0+."""
    group_instance_id: str | None = None
    """string; versions 4+; nullable; default null; ignorable."""
    client_id: str = ""
    """string; versions 0+."""
    client_host: str = ""
    """string; versions 0+."""
    member_metadata: bytes = b""
    """bytes; versions 0+."""
    member_assignment: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribedGroup(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 6+; nullable; default null."""
    group_id: str = ""
    """string; versions 0+; groupId."""
    group_state: str = ""
    """string; versions 0+."""
    protocol_type: str = ""
    """string; versions 0+."""
    protocol_data: str = ""
    """string; versions 0+."""
    members: list[DescribedGroupMember] = []
    """[]DescribedGroupMember; versions 0+."""
    authorized_operations: int = -2147483648
    """int32; versions 3+; default -2147483648."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeGroupsResponse(base.Message, kw_only=True):
    """Response, api key 15; versions 0-6; flexible 5+."""

    throttle_time_ms: int = 0
    """int32; versions 1+; ignorable."""
    groups: list[DescribedGroup] = []
    """[]DescribedGroup; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribedGroupMember: ClassVar[type[DescribedGroupMember]] = DescribedGroupMember
    DescribedGroup: ClassVar[type[DescribedGroup]] = DescribedGroup
    API_KEY: ClassVar[int | None] = 15
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 6)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(5, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeGroupsResponse", "apiKey": 15,
  "validVersions": "0-6", "flexibleVersions": "5+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": true},
    {"name": "Groups", "type": "[]DescribedGroup", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "6+", "nullableVersions": "6+", "default": "null"},
      {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
      {"name": "GroupState", "type": "string", "versions": "0+"},
      {"name": "ProtocolType", "type": "string", "versions": "0+"},
      {"name": "ProtocolData", "type": "string", "versions": "0+"},
      {"name": "Members", "type": "[]DescribedGroupMember", "versions": "0+", "fields": [
        {"name": "MemberId", "type": "string", "versions": "0+"},
        {"name": "GroupInstanceId", "type": "string", "versions": "4+", "nullableVersions": "4+", "default": "null", "ignorable": true},
        {"name": "ClientId", "type": "string", "versions": "0+"},
        {"name": "ClientHost", "type": "string", "versions": "0+"},
        {"name": "MemberMetadata", "type": "bytes", "versions": "0+"},
        {"name": "MemberAssignment", "type": "bytes", "versions": "0+"}
      ]},
      {"name": "AuthorizedOperations", "type": "int32", "versions": "3+", "default": "-2147483648"}
    ]}
  ]
}
"""
