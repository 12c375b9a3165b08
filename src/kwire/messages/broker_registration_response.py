"""Generated from BrokerRegistrationResponse.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["BrokerRegistrationResponse"]


class BrokerRegistrationResponse(base.Message, kw_only=True):
    """Response, api key 62; versions 0-4; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    broker_epoch: int = -1
    """int64; versions 0+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 62
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "BrokerRegistrationResponse", "apiKey": 62,
  "validVersions": "0-4", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "0+", "default": "-1"}
  ]
}
"""
