"""Generated from HeartbeatRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["HeartbeatRequest"]


class HeartbeatRequest(base.Message, kw_only=True):
    """Request, api key 12; versions 0-4; flexible 4+; listeners broker, zkBroker."""

    group_id: str = ""
    """string; versions 0+; groupId."""
    generation_id: int = 0
    """int32; versions 0+."""
    member_id: str = ""
    """string; versions 0+."""
    group_instance_id: str | None = None
    """string; versions 3+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 12
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("generationid", "generation_id", 0, 2),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "HeartbeatRequest", "apiKey": 12,
  "validVersions": "0-4", "flexibleVersions": "4+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId"},
    {"name": "GenerationId", "type": "int32", "versions": "0+"},
    {"name": "MemberId", "type": "string", "versions": "0+"},
    {"name": "GroupInstanceId", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null"}
  ]
}
"""
