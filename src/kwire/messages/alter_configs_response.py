"""Generated from AlterConfigsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterConfigsResourceResponse", "AlterConfigsResponse"]


class AlterConfigsResourceResponse(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    resource_type: int = 0
    """int8; versions 0+."""
    resource_name: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterConfigsResponse(base.Message, kw_only=True):
    """Response, api key 33; versions 0-2; flexible 2+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    responses: list[AlterConfigsResourceResponse] = []
    """[]AlterConfigsResourceResponse; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AlterConfigsResourceResponse: ClassVar[type[AlterConfigsResourceResponse]] = AlterConfigsResourceResponse
    API_KEY: ClassVar[int | None] = 33
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("resources", "responses", 0, 1),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "AlterConfigsResponse", "apiKey": 33,
  "validVersions": "0-2", "flexibleVersions": "2+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Responses", "type": "[]AlterConfigsResourceResponse", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
      {"name": "ResourceType", "type": "int8", "versions": "0+"},
      {"name": "ResourceName", "type": "string", "versions": "0+"}
    ]}
  ]
}
"""
