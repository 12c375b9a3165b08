"""Generated from ConfigRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ConfigRecord"]


class ConfigRecord(base.Message, kw_only=True):
    """Metadata, record type 4; versions 0; flexible 0+."""

    resource_type: int = 0
    """int8; versions 0+."""
    resource_name: str = ""
    """string; versions 0+."""
    name: str = ""
    """string; versions 0+."""
    value: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 4
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "ConfigRecord", "apiKey": 4,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ResourceType", "type": "int8", "versions": "0+"},
    {"name": "ResourceName", "type": "string", "versions": "0+"},
    {"name": "Name", "type": "string", "versions": "0+"},
    {"name": "Value", "type": "string", "versions": "0+", "nullableVersions": "0+"}
  ]
}
"""
