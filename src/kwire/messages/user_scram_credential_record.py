"""Generated from UserScramCredentialRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["UserScramCredentialRecord"]


class UserScramCredentialRecord(base.Message, kw_only=True):
    """Metadata, record type 11; versions 0; flexible 0+."""

    name: str = ""
    """string; versions 0+."""
    mechanism: int = 0
    """int8; versions 0+."""
    salt: bytes = b""
    """bytes; versions 0+."""
    stored_key: bytes = b""
    """bytes; versions 0+."""
    server_key: bytes = b""
    """bytes; versions 0+."""
    iterations: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 11
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "UserScramCredentialRecord", "apiKey": 11,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Name", "type": "string", "versions": "0+"},
    {"name": "Mechanism", "type": "int8", "versions": "0+"},
    {"name": "Salt", "type": "bytes", "versions": "0+"},
    {"name": "StoredKey", "type": "bytes", "versions": "0+"},
    {"name": "ServerKey", "type": "bytes", "versions": "0+"},
    {"name": "Iterations", "type": "int32", "versions": "0+"}
  ]
}
"""
