"""Generated from HeartbeatResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["HeartbeatResponse"]


class HeartbeatResponse(base.Message, kw_only=True):
    """Response, api key 12; versions 0-4; flexible 4+."""

    throttle_time_ms: int = 0
    """int32; versions 1+; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 12
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "HeartbeatResponse", "apiKey": 12,
  "validVersions": "0-4", "flexibleVersions": "4+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": true},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"}
  ]
}
"""
