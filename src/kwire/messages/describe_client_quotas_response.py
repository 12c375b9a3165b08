"""Generated from DescribeClientQuotasResponse.json, Kafka 2.6.3 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeClientQuotasResponse", "EntityData", "EntryData", "ValueData"]


class EntityData(base.Struct, kw_only=True):
    """Versions 0+."""

    entity_type: str = ""
    """string; versions 0+."""
    entity_name: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ValueData(base.Struct, kw_only=True):
    """Versions 0+."""

    key: str = ""
    """string; versions 0+."""
    value: float = 0.0
    """float64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class EntryData(base.Struct, kw_only=True):
    """Versions 0+."""

    entity: list[EntityData] = []
    """[]EntityData; versions 0+."""
    values: list[ValueData] = []
    """[]ValueData; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeClientQuotasResponse(base.Message, kw_only=True):
    """Response, api key 48; versions 0-1; flexible 1+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    entries: list[EntryData] | None = []
    """[]EntryData; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    EntityData: ClassVar[type[EntityData]] = EntityData
    ValueData: ClassVar[type[ValueData]] = ValueData
    EntryData: ClassVar[type[EntryData]] = EntryData
    API_KEY: ClassVar[int | None] = 48
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeClientQuotasResponse", "apiKey": 48,
  "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Entries", "type": "[]EntryData", "versions": "0+", "nullableVersions": "0+", "fields": [
      {"name": "Entity", "type": "[]EntityData", "versions": "0+", "fields": [
        {"name": "EntityType", "type": "string", "versions": "0+"},
        {"name": "EntityName", "type": "string", "versions": "0+", "nullableVersions": "0+"}
      ]},
      {"name": "Values", "type": "[]ValueData", "versions": "0+", "fields": [
        {"name": "Key", "type": "string", "versions": "0+"},
        {"name": "Value", "type": "float64", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
