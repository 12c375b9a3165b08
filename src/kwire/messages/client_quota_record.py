"""Generated from ClientQuotaRecord.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ClientQuotaRecord", "EntityData"]


class EntityData(base.Struct, kw_only=True):
    """Versions 0+."""

    entity_type: str = ""
    """string; versions 0+."""
    entity_name: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ClientQuotaRecord(base.Message, kw_only=True):
    """Metadata, record type 14; versions 0; flexible 0+."""

    entity: list[EntityData] = []
    """[]EntityData; versions 0+."""
    key: str = ""
    """string; versions 0+."""
    value: float = 0.0
    """float64; versions 0+."""
    remove: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    EntityData: ClassVar[type[EntityData]] = EntityData
    API_KEY: ClassVar[int | None] = 14
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "ClientQuotaRecord", "apiKey": 14,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Entity", "type": "[]EntityData", "versions": "0+", "fields": [
      {"name": "EntityType", "type": "string", "versions": "0+"},
      {"name": "EntityName", "type": "string", "versions": "0+", "nullableVersions": "0+"}
    ]},
    {"name": "Key", "type": "string", "versions": "0+"},
    {"name": "Value", "type": "float64", "versions": "0+"},
    {"name": "Remove", "type": "bool", "versions": "0+"}
  ]
}
"""
