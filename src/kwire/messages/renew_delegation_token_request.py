"""Generated from RenewDelegationTokenRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["RenewDelegationTokenRequest"]


class RenewDelegationTokenRequest(base.Message, kw_only=True):
    """Request, api key 39; versions 0-2; flexible 2+; deprecated 0; listeners broker, controller, zkBroker."""

    hmac: bytes = b""
    """bytes; versions 0+."""
    renew_period_ms: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 39
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "RenewDelegationTokenRequest", "apiKey": 39,
  "validVersions": "0-2", "deprecatedVersions": "0", "flexibleVersions": "2+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Hmac", "type": "bytes", "versions": "0+"},
    {"name": "RenewPeriodMs", "type": "int64", "versions": "0+"}
  ]
}
"""
