"""Generated from AlterClientQuotasRequest.json, Kafka 2.6.3 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterClientQuotasRequest", "EntityData", "EntryData", "OpData"]


class EntityData(base.Struct, kw_only=True):
    """Versions 0+."""

    entity_type: str = ""
    """string; versions 0+."""
    entity_name: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class OpData(base.Struct, kw_only=True):
    """Versions 0+."""

    key: str = ""
    """string; versions 0+."""
    value: float = 0.0
    """float64; versions 0+."""
    remove: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class EntryData(base.Struct, kw_only=True):
    """Versions 0+."""

    entity: list[EntityData] = []
    """[]EntityData; versions 0+."""
    ops: list[OpData] = []
    """[]OpData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterClientQuotasRequest(base.Message, kw_only=True):
    """Request, api key 49; versions 0-1; flexible 1+; listeners broker, controller, zkBroker."""

    entries: list[EntryData] = []
    """[]EntryData; versions 0+."""
    validate_only: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    EntityData: ClassVar[type[EntityData]] = EntityData
    OpData: ClassVar[type[OpData]] = OpData
    EntryData: ClassVar[type[EntryData]] = EntryData
    API_KEY: ClassVar[int | None] = 49
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AlterClientQuotasRequest", "apiKey": 49,
  "validVersions": "0-1", "flexibleVersions": "1+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Entries", "type": "[]EntryData", "versions": "0+", "fields": [
      {"name": "Entity", "type": "[]EntityData", "versions": "0+", "fields": [
        {"name": "EntityType", "type": "string", "versions": "0+"},
        {"name": "EntityName", "type": "string", "versions": "0+", "nullableVersions": "0+"}
      ]},
      {"name": "Ops", "type": "[]OpData", "versions": "0+", "fields": [
        {"name": "Key", "type": "string", "versions": "0+"},
        {"name": "Value", "type": "float64", "versions": "0+"},
        {"name": "Remove", "type": "bool", "versions": "0+"}
      ]}
    ]},
    {"name": "ValidateOnly", "type": "bool", "versions": "0+"}
  ]
}
"""
