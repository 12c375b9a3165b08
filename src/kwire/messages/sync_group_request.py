"""Generated from SyncGroupRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["SyncGroupRequest", "SyncGroupRequestAssignment"]


class SyncGroupRequestAssignment(base.Struct, kw_only=True):
    """Versions 0+."""

    member_id: str = ""
    """string; versions 0+."""
    assignment: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class SyncGroupRequest(base.Message, kw_only=True):
    """Request, api key 14; versions 0-5; flexible 4+; listeners broker, zkBroker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    generation_id: int = 0
    """int32; versions 0+."""
    member_id: str = ""
    """string; versions 0+."""
    group_instance_id: str | None = None
    """string; versions 3+; nullable; default null."""
    protocol_type: str | None = None
    """string; versions 5+; nullable; default null; ignorable."""
    protocol_name: str | None = None
    """string; versions 5+; nullable; default null; ignorable."""
    assignments: list[SyncGroupRequestAssignment] = []
    """[]SyncGroupRequestAssignment; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    SyncGroupRequestAssignment: ClassVar[type[SyncGroupRequestAssignment]] = SyncGroupRequestAssignment
    API_KEY: ClassVar[int | None] = 14
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "SyncGroupRequest", "apiKey": 14,
  "validVersions": "0-5", "flexibleVersions": "4+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "GenerationId", "type": "int32", "versions": "0+"},
    {"name": "MemberId", "type": "string", "versions": "0+"},
    {"name": "GroupInstanceId", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null"},
    {"name": "ProtocolType", "type": "string", "versions": "5+", "nullableVersions": "5+", "default": "null", "ignorable": true},
    {"name": "ProtocolName", "type": "string", "versions": "5+", "nullableVersions": "5+", "default": "null", "ignorable": true},
    {"name": "Assignments", "type": "[]SyncGroupRequestAssignment", "versions": "0+", "fields": [
      {"name": "MemberId", "type": "string", "versions": "0+"},
      {"name": "Assignment", "type": "bytes", "versions": "0+"}
    ]}
  ]
}
"""
