"""Generated from RequestHeader.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["RequestHeader"]


class RequestHeader(base.Message, kw_only=True):
    """Header; versions 0-2; flexible 2+."""

    request_api_key: int = 0
    """int16; versions 0+."""
    request_api_version: int = 0
    """int16; versions 0+."""
    correlation_id: int = 0
    """int32; versions 0+."""
    client_id: str | None = ""
    """string; versions 1+; nullable; never compact; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "header", "name": "RequestHeader",
  "validVersions": "0-2", "flexibleVersions": "2+",
  "fields": [
    {"name": "RequestApiKey", "type": "int16", "versions": "0+"},
    {"name": "RequestApiVersion", "type": "int16", "versions": "0+"},
    {"name": "CorrelationId", "type": "int32", "versions": "0+"},
    {"name": "ClientId", "type": "string", "versions": "1+", "nullableVersions": "1+", "flexibleVersions": "none", "ignorable": true}
  ]
}
"""
