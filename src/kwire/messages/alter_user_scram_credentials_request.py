"""Generated from AlterUserScramCredentialsRequest.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterUserScramCredentialsRequest", "ScramCredentialDeletion", "ScramCredentialUpsertion"]


class ScramCredentialDeletion(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+."""
    mechanism: int = 0
    """int8; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ScramCredentialUpsertion(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+."""
    mechanism: int = 0
    """int8; versions 0+."""
    iterations: int = 0
    """int32; versions 0+."""
    salt: bytes = b""
    """bytes; versions 0+."""
    salted_password: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterUserScramCredentialsRequest(base.Message, kw_only=True):
    """Request, api key 51; versions 0; flexible 0+; listeners broker, controller, zkBroker."""

    deletions: list[ScramCredentialDeletion] = []
    """[]ScramCredentialDeletion; versions 0+."""
    upsertions: list[ScramCredentialUpsertion] = []
    """[]ScramCredentialUpsertion; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ScramCredentialDeletion: ClassVar[type[ScramCredentialDeletion]] = ScramCredentialDeletion
    ScramCredentialUpsertion: ClassVar[type[ScramCredentialUpsertion]] = ScramCredentialUpsertion
    API_KEY: ClassVar[int | None] = 51
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AlterUserScramCredentialsRequest", "apiKey": 51,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Deletions", "type": "[]ScramCredentialDeletion", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+"},
      {"name": "Mechanism", "type": "int8", "versions": "0+"}
    ]},
    {"name": "Upsertions", "type": "[]ScramCredentialUpsertion", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+"},
      {"name": "Mechanism", "type": "int8", "versions": "0+"},
      {"name": "Iterations", "type": "int32", "versions": "0+"},
      {"name": "Salt", "type": "bytes", "versions": "0+"},
      {"name": "SaltedPassword", "type": "bytes", "versions": "0+"}
    ]}
  ]
}
"""
