"""Generated from AddOffsetsToTxnResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AddOffsetsToTxnResponse"]


class AddOffsetsToTxnResponse(base.Message, kw_only=True):
    """Response, api key 25; versions 0-4; flexible 3+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 25
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "AddOffsetsToTxnResponse", "apiKey": 25,
  "validVersions": "0-4", "flexibleVersions": "3+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"}
  ]
}
"""
