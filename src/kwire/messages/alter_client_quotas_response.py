"""Generated from AlterClientQuotasResponse.json, Kafka 2.6.3 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterClientQuotasResponse", "EntityData", "EntryData"]


class EntityData(base.Struct, kw_only=True):
    """Versions 0+."""

    entity_type: str = ""
    """string; versions 0+."""
    entity_name: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class EntryData(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    entity: list[EntityData] = []
    """[]EntityData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterClientQuotasResponse(base.Message, kw_only=True):
    """Response, api key 49; versions 0-1; flexible 1+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    entries: list[EntryData] = []
    """[]EntryData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    EntityData: ClassVar[type[EntityData]] = EntityData
    EntryData: ClassVar[type[EntryData]] = EntryData
    API_KEY: ClassVar[int | None] = 49
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "AlterClientQuotasResponse", "apiKey": 49,
  "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Entries", "type": "[]EntryData", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
      {"name": "Entity", "type": "[]EntityData", "versions": "0+", "fields": [
        {"name": "EntityType", "type": "string", "versions": "0+"},
        {"name": "EntityName", "type": "string", "versions": "0+", "nullableVersions": "0+"}
      ]}
    ]}
  ]
}
"""
