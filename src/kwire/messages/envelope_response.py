"""Generated from EnvelopeResponse.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["EnvelopeResponse"]


class EnvelopeResponse(base.Message, kw_only=True):
    """Response, api key 58; versions 0; flexible 0+."""

    response_data: bytes | None = None
    """bytes; versions 0+; nullable; default null."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 58
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "EnvelopeResponse", "apiKey": 58,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ResponseData", "type": "bytes", "versions": "0+", "nullableVersions": "0+", "default": "null", "zeroCopy": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"}
  ]
}
"""
