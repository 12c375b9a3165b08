"""Generated from JoinGroupRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["JoinGroupRequest", "JoinGroupRequestProtocol"]


class JoinGroupRequestProtocol(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key."""
    metadata: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("protocols")
class JoinGroupRequest(base.Message, kw_only=True):
    """Request, api key 11; versions 0-9; flexible 6+; listeners broker, zkBroker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    session_timeout_ms: int = 0
    """int32; versions 0+."""
    rebalance_timeout_ms: int = -1
    """int32; versions 1+; default -1; ignorable."""
    member_id: str = ""
    """string; versions 0+."""
    group_instance_id: str | None = None
    """string; versions 5+; nullable; default null."""
    protocol_type: str = ""
    """string; versions 0+."""
    protocols: base.Keyed[JoinGroupRequestProtocol] = base.keyed()
    """[]JoinGroupRequestProtocol; versions 0+."""
    reason: str | None = None
    """string; versions 8+; nullable; default null; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    JoinGroupRequestProtocol: ClassVar[type[JoinGroupRequestProtocol]] = JoinGroupRequestProtocol
    API_KEY: ClassVar[int | None] = 11
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 9)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(6, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "JoinGroupRequest", "apiKey": 11,
  "validVersions": "0-9", "flexibleVersions": "6+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "SessionTimeoutMs", "type": "int32", "versions": "0+"},
    {"name": "RebalanceTimeoutMs", "type": "int32", "versions": "1+", "default": "-1", "ignorable": true},
    {"name": "MemberId", "type": "string", "versions": "0+"},
    {"name": "GroupInstanceId", "type": "string", "versions": "5+", "nullableVersions": "5+", "default": "null"},
    {"name": "ProtocolType", "type": "string", "versions": "0+"},
    {"name": "Protocols", "type": "[]JoinGroupRequestProtocol", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "Metadata", "type": "bytes", "versions": "0+"}
    ]},
    {"name": "Reason", "type": "string", "versions": "8+", "nullableVersions": "8+", "default": "null", "ignorable": true}
  ]
}
"""
