"""Generated from UpdateMetadataResponse.json, Kafka 2.0.1 to 3.9.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["UpdateMetadataResponse"]


class UpdateMetadataResponse(base.Message, kw_only=True):
    """Response, api key 6; versions 0-8; flexible 6+."""

    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 6
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 8)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(6, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "UpdateMetadataResponse", "apiKey": 6,
  "validVersions": "0-8", "flexibleVersions": "6+",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"}
  ]
}
"""
