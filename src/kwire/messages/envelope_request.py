"""Generated from EnvelopeRequest.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["EnvelopeRequest"]


class EnvelopeRequest(base.Message, kw_only=True):
    """Request, api key 58; versions 0; flexible 0+; listeners controller, zkBroker."""

    request_data: bytes = b""
    """bytes; versions 0+."""
    request_principal: bytes | None = b""
    """bytes; versions 0+; nullable."""
    client_host_address: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 58
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "EnvelopeRequest", "apiKey": 58,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["controller", "zkBroker"],
  "fields": [
    {"name": "RequestData", "type": "bytes", "versions": "0+", "zeroCopy": true},
    {"name": "RequestPrincipal", "type": "bytes", "versions": "0+", "nullableVersions": "0+"},
    {"name": "ClientHostAddress", "type": "bytes", "versions": "0+"}
  ]
}
"""
