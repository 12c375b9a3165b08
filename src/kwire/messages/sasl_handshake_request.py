"""Generated from SaslHandshakeRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["SaslHandshakeRequest"]


class SaslHandshakeRequest(base.Message, kw_only=True):
    """Request, api key 17; versions 0-1; flexible none; listeners broker, controller, zkBroker."""

    mechanism: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 17
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "SaslHandshakeRequest", "apiKey": 17,
  "validVersions": "0-1", "flexibleVersions": "none",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Mechanism", "type": "string", "versions": "0+"}
  ]
}
"""
