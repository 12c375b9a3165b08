"""Generated from BrokerHeartbeatResponse.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["BrokerHeartbeatResponse"]


class BrokerHeartbeatResponse(base.Message, kw_only=True):
    """Response, api key 63; versions 0-2; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    is_caught_up: bool = False
    """bool; versions 0+."""
    is_fenced: bool = True
    """bool; versions 0+; default true."""
    should_shut_down: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 63
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "BrokerHeartbeatResponse", "apiKey": 63,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "IsCaughtUp", "type": "bool", "versions": "0+"},
    {"name": "IsFenced", "type": "bool", "versions": "0+", "default": "true"},
    {"name": "ShouldShutDown", "type": "bool", "versions": "0+"}
  ]
}
"""
