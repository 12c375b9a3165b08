"""Generated from DescribeDelegationTokenRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeDelegationTokenOwner", "DescribeDelegationTokenRequest"]


class DescribeDelegationTokenOwner(base.Struct, kw_only=True):
    """Versions 0+."""

    principal_type: str = ""
    """string; versions 0+."""
    principal_name: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeDelegationTokenRequest(base.Message, kw_only=True):
    """Request, api key 41; versions 0-3; flexible 2+; deprecated 0; listeners broker, controller, zkBroker."""

    owners: list[DescribeDelegationTokenOwner] | None = []
    """[]DescribeDelegationTokenOwner; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribeDelegationTokenOwner: ClassVar[type[DescribeDelegationTokenOwner]] = DescribeDelegationTokenOwner
    API_KEY: ClassVar[int | None] = 41
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeDelegationTokenRequest", "apiKey": 41,
  "validVersions": "0-3", "deprecatedVersions": "0", "flexibleVersions": "2+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Owners", "type": "[]DescribeDelegationTokenOwner", "versions": "0+", "nullableVersions": "0+", "fields": [
      {"name": "PrincipalType", "type": "string", "versions": "0+"},
      {"name": "PrincipalName", "type": "string", "versions": "0+"}
    ]}
  ]
}
"""
