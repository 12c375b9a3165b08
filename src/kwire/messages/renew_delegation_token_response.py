"""Generated from RenewDelegationTokenResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["RenewDelegationTokenResponse"]


class RenewDelegationTokenResponse(base.Message, kw_only=True):
    """Response, api key 39; versions 0-2; flexible 2+."""

    error_code: int = 0
    """int16; versions 0+."""
    expiry_timestamp_ms: int = 0
    """int64; versions 0+."""
    throttle_time_ms: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 39
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "RenewDelegationTokenResponse", "apiKey": 39,
  "validVersions": "0-2", "flexibleVersions": "2+",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ExpiryTimestampMs", "type": "int64", "versions": "0+"},
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"}
  ]
}
"""
