"""Generated from GroupMetadataValue.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["GroupMetadataValue", "MemberMetadata"]


class MemberMetadata(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    member_id: str = ""
    """string; versions 0+."""
    group_instance_id: str | None = None
    """string; versions 3+; nullable; default null; ignorable."""
    client_id: str = ""
    """string; versions 0+."""
    client_host: str = ""
    """string; versions 0+."""
    rebalance_timeout: int = -1
    """int32; versions 1+; default -1; ignorable."""
    session_timeout: int = 0
    """int32; versions 0+."""
    subscription: bytes = b""
    """bytes; versions 0+."""
    assignment: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class GroupMetadataValue(base.Message, kw_only=True):
    """Coordinator-value, record type 2; versions 0-4; flexible 4+."""

    protocol_type: str = ""
    """string; versions 0+."""
    generation: int = 0
    """int32; versions 0+."""
    protocol: str | None = ""
    """string; versions 0+; nullable."""
    leader: str | None = ""
    """string; versions 0+; nullable."""
    current_state_timestamp: int = -1
    """int64; versions 2+; default -1; ignorable."""
    members: list[MemberMetadata] = []
    """[]MemberMetadata; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    MemberMetadata: ClassVar[type[MemberMetadata]] = MemberMetadata
    API_KEY: ClassVar[int | None] = 2
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "GroupMetadataValue", "apiKey": 2,
  "validVersions": "0-4", "flexibleVersions": "4+",
  "commonStructs": [
    {"name": "MemberMetadata", "versions": "0+", "fields": [
      {"name": "memberId", "type": "string", "versions": "0+"},
      {"name": "groupInstanceId", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null", "ignorable": true},
      {"name": "clientId", "type": "string", "versions": "0+"},
      {"name": "clientHost", "type": "string", "versions": "0+"},
      {"name": "rebalanceTimeout", "type": "int32", "versions": "1+", "default": "-1", "ignorable": true},
      {"name": "sessionTimeout", "type": "int32", "versions": "0+"},
      {"name": "subscription", "type": "bytes", "versions": "0+"},
      {"name": "assignment", "type": "bytes", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "protocolType", "type": "string", "versions": "0+"},
    {"name": "generation", "type": "int32", "versions": "0+"},
    {"name": "protocol", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "leader", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "currentStateTimestamp", "type": "int64", "versions": "2+", "default": "-1", "ignorable": true},
    {"name": "members", "type": "[]MemberMetadata", "versions": "0+"}
  ]
}
"""
