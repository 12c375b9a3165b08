"""Generated from AlterConfigsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterConfigsRequest", "AlterConfigsResource", "AlterableConfig"]


class AlterableConfig(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key."""
    value: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("configs")
class AlterConfigsResource(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("resource_type", "resource_name")

    resource_type: int = 0
    """int8; versions 0+; map key."""
    resource_name: str = ""
    """string; versions 0+; map key."""
    configs: base.Keyed[AlterableConfig] = base.keyed()
    """[]AlterableConfig; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("resources")
class AlterConfigsRequest(base.Message, kw_only=True):
    """Request, api key 33; versions 0-2; flexible 2+; listeners broker, controller, zkBroker."""

    resources: base.Keyed[AlterConfigsResource] = base.keyed()
    """[]AlterConfigsResource; versions 0+."""
    validate_only: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AlterableConfig: ClassVar[type[AlterableConfig]] = AlterableConfig
    AlterConfigsResource: ClassVar[type[AlterConfigsResource]] = AlterConfigsResource
    API_KEY: ClassVar[int | None] = 33
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AlterConfigsRequest", "apiKey": 33,
  "validVersions": "0-2", "flexibleVersions": "2+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Resources", "type": "[]AlterConfigsResource", "versions": "0+", "fields": [
      {"name": "ResourceType", "type": "int8", "versions": "0+", "mapKey": true},
      {"name": "ResourceName", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "Configs", "type": "[]AlterableConfig", "versions": "0+", "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "mapKey": true},
        {"name": "Value", "type": "string", "versions": "0+", "nullableVersions": "0+"}
      ]}
    ]},
    {"name": "ValidateOnly", "type": "bool", "versions": "0+"}
  ]
}
"""
