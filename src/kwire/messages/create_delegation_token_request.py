"""Generated from CreateDelegationTokenRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["CreatableRenewers", "CreateDelegationTokenRequest"]


class CreatableRenewers(base.Struct, kw_only=True):
    """Versions 0+."""

    principal_type: str = ""
    """string; versions 0+."""
    principal_name: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class CreateDelegationTokenRequest(base.Message, kw_only=True):
    """Request, api key 38; versions 0-3; flexible 2+; deprecated 0; listeners broker, controller, zkBroker."""

    owner_principal_type: str | None = ""
    """string; versions 3+; nullable."""
    owner_principal_name: str | None = ""
    """string; versions 3+; nullable."""
    renewers: list[CreatableRenewers] = []
    """[]CreatableRenewers; versions 0+."""
    max_lifetime_ms: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    CreatableRenewers: ClassVar[type[CreatableRenewers]] = CreatableRenewers
    API_KEY: ClassVar[int | None] = 38
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "CreateDelegationTokenRequest", "apiKey": 38,
  "validVersions": "0-3", "deprecatedVersions": "0", "flexibleVersions": "2+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "OwnerPrincipalType", "type": "string", "versions": "3+", "nullableVersions": "3+"},
    {"name": "OwnerPrincipalName", "type": "string", "versions": "3+", "nullableVersions": "3+"},
    {"name": "Renewers", "type": "[]CreatableRenewers", "versions": "0+", "fields": [
      {"name": "PrincipalType", "type": "string", "versions": "0+"},
      {"name": "PrincipalName", "type": "string", "versions": "0+"}
    ]},
    {"name": "MaxLifetimeMs", "type": "int64", "versions": "0+"}
  ]
}
"""
