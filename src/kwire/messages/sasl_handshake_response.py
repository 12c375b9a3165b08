"""Generated from SaslHandshakeResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["SaslHandshakeResponse"]


class SaslHandshakeResponse(base.Message, kw_only=True):
    """Response, api key 17; versions 0-1; flexible none."""

    error_code: int = 0
    """int16; versions 0+."""
    mechanisms: list[str] = []
    """[]string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 17
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "SaslHandshakeResponse", "apiKey": 17,
  "validVersions": "0-1", "flexibleVersions": "none",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "Mechanisms", "type": "[]string", "versions": "0+"}
  ]
}
"""
