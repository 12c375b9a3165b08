"""Generated from ListConfigResourcesResponse.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ConfigResource", "ListConfigResourcesResponse"]


class ConfigResource(base.Struct, kw_only=True):
    """Versions 0+."""

    resource_name: str = ""
    """string; versions 0+."""
    resource_type: int = 16
    """int8; versions 1+; default 16; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListConfigResourcesResponse(base.Message, kw_only=True):
    """Response, api key 74; versions 0-1; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    config_resources: list[ConfigResource] = []
    """[]ConfigResource; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ConfigResource: ClassVar[type[ConfigResource]] = ConfigResource
    API_KEY: ClassVar[int | None] = 74
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ListConfigResourcesResponse", "apiKey": 74,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ConfigResources", "type": "[]ConfigResource", "versions": "0+", "fields": [
      {"name": "ResourceName", "type": "string", "versions": "0+"},
      {"name": "ResourceType", "type": "int8", "versions": "1+", "default": "16", "ignorable": true}
    ]}
  ]
}
"""
