"""Generated from SaslAuthenticateResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["SaslAuthenticateResponse"]


class SaslAuthenticateResponse(base.Message, kw_only=True):
    """Response, api key 36; versions 0-2; flexible 2+."""

    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    auth_bytes: bytes = b""
    """bytes; versions 0+."""
    session_lifetime_ms: int = 0
    """int64; versions 1+; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 36
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "SaslAuthenticateResponse", "apiKey": 36,
  "validVersions": "0-2", "flexibleVersions": "2+",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "AuthBytes", "type": "bytes", "versions": "0+"},
    {"name": "SessionLifetimeMs", "type": "int64", "versions": "1+", "ignorable": true}
  ]
}
"""
