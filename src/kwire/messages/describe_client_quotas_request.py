"""Generated from DescribeClientQuotasRequest.json, Kafka 2.6.3 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ComponentData", "DescribeClientQuotasRequest"]


class ComponentData(base.Struct, kw_only=True):
    """Versions 0+."""

    entity_type: str = ""
    """string; versions 0+."""
    match_type: int = 0
    """int8; versions 0+."""
    match: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeClientQuotasRequest(base.Message, kw_only=True):
    """Request, api key 48; versions 0-1; flexible 1+; listeners broker, zkBroker."""

    components: list[ComponentData] = []
    """[]ComponentData; versions 0+."""
    strict: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ComponentData: ClassVar[type[ComponentData]] = ComponentData
    API_KEY: ClassVar[int | None] = 48
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(1, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeClientQuotasRequest", "apiKey": 48,
  "validVersions": "0-1", "flexibleVersions": "1+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "Components", "type": "[]ComponentData", "versions": "0+", "fields": [
      {"name": "EntityType", "type": "string", "versions": "0+"},
      {"name": "MatchType", "type": "int8", "versions": "0+"},
      {"name": "Match", "type": "string", "versions": "0+", "nullableVersions": "0+"}
    ]},
    {"name": "Strict", "type": "bool", "versions": "0+"}
  ]
}
"""
