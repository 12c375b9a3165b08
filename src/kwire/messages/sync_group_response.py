"""Generated from SyncGroupResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["SyncGroupResponse"]


class SyncGroupResponse(base.Message, kw_only=True):
    """Response, api key 14; versions 0-5; flexible 4+."""

    throttle_time_ms: int = 0
    """int32; versions 1+; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    protocol_type: str | None = None
    """string; versions 5+; nullable; default null; ignorable."""
    protocol_name: str | None = None
    """string; versions 5+; nullable; default null; ignorable."""
    assignment: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 14
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "SyncGroupResponse", "apiKey": 14,
  "validVersions": "0-5", "flexibleVersions": "4+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ProtocolType", "type": "string", "versions": "5+", "nullableVersions": "5+", "default": "null", "ignorable": true},
    {"name": "ProtocolName", "type": "string", "versions": "5+", "nullableVersions": "5+", "default": "null", "ignorable": true},
    {"name": "Assignment", "type": "bytes", "versions": "0+"}
  ]
}
"""
