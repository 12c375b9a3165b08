"""Generated from SaslAuthenticateRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["SaslAuthenticateRequest"]


class SaslAuthenticateRequest(base.Message, kw_only=True):
    """Request, api key 36; versions 0-2; flexible 2+; listeners broker, controller, zkBroker."""

    auth_bytes: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 36
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "SaslAuthenticateRequest", "apiKey": 36,
  "validVersions": "0-2", "flexibleVersions": "2+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "AuthBytes", "type": "bytes", "versions": "0+"}
  ]
}
"""
