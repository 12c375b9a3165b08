"""Generated from ListGroupsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListGroupsResponse", "ListedGroup"]


class ListedGroup(base.Struct, kw_only=True):
    """Versions 0+."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    protocol_type: str = ""
    """string; versions 0+."""
    group_state: str = ""
    """string; versions 4+; ignorable."""
    group_type: str = ""
    """string; versions 5+; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListGroupsResponse(base.Message, kw_only=True):
    """Response, api key 16; versions 0-5; flexible 3+."""

    throttle_time_ms: int = 0
    """int32; versions 1+; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    groups: list[ListedGroup] = []
    """[]ListedGroup; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ListedGroup: ClassVar[type[ListedGroup]] = ListedGroup
    API_KEY: ClassVar[int | None] = 16
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ListGroupsResponse", "apiKey": 16,
  "validVersions": "0-5", "flexibleVersions": "3+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "Groups", "type": "[]ListedGroup", "versions": "0+", "fields": [
      {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
      {"name": "ProtocolType", "type": "string", "versions": "0+"},
      {"name": "GroupState", "type": "string", "versions": "4+", "ignorable": true},
      {"name": "GroupType", "type": "string", "versions": "5+", "ignorable": true}
    ]}
  ]
}
"""
