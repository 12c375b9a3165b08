"""Generated from AccessControlRecord.json, Kafka 2.8.2 to 3.4.1, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AccessControlRecord"]


class AccessControlRecord(base.Message, kw_only=True):
    """Metadata, record type 6; versions 0; flexible 0+."""

    resource_type: int = 0
    """int8; versions 0+."""
    resource_name: str | None = ""
    """string; versions 0+; nullable."""
    pattern_type: int = 0
    """int8; versions 0+."""
    principal: str = ""
    """string; versions 0+."""
    host: str = ""
    """string; versions 0+."""
    operation: int = 0
    """int8; versions 0+."""
    permission_type: int = 0
    """int8; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 6
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "AccessControlRecord", "apiKey": 6,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ResourceType", "type": "int8", "versions": "0+"},
    {"name": "ResourceName", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "PatternType", "type": "int8", "versions": "0+"},
    {"name": "Principal", "type": "string", "versions": "0+"},
    {"name": "Host", "type": "string", "versions": "0+"},
    {"name": "Operation", "type": "int8", "versions": "0+"},
    {"name": "PermissionType", "type": "int8", "versions": "0+"}
  ]
}
"""
