"""Generated from AccessControlEntryRecord.json, Kafka 3.2.3 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["AccessControlEntryRecord"]


class AccessControlEntryRecord(base.Message, kw_only=True):
    """Metadata, record type 18; versions 0; flexible 0+."""

    id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    resource_type: int = 0
    """int8; versions 0+."""
    resource_name: str = ""
    """string; versions 0+."""
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

    API_KEY: ClassVar[int | None] = 18
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "AccessControlEntryRecord", "apiKey": 18,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Id", "type": "uuid", "versions": "0+"},
    {"name": "ResourceType", "type": "int8", "versions": "0+"},
    {"name": "ResourceName", "type": "string", "versions": "0+"},
    {"name": "PatternType", "type": "int8", "versions": "0+"},
    {"name": "Principal", "type": "string", "versions": "0+"},
    {"name": "Host", "type": "string", "versions": "0+"},
    {"name": "Operation", "type": "int8", "versions": "0+"},
    {"name": "PermissionType", "type": "int8", "versions": "0+"}
  ]
}
"""
