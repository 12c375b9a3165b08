"""Generated from DescribeDelegationTokenResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeDelegationTokenResponse", "DescribedDelegationToken", "DescribedDelegationTokenRenewer"]


class DescribedDelegationTokenRenewer(base.Struct, kw_only=True):
    """Versions 0+."""

    principal_type: str = ""
    """string; versions 0+."""
    principal_name: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribedDelegationToken(base.Struct, kw_only=True):
    """Versions 0+."""

    principal_type: str = ""
    """string; versions 0+."""
    principal_name: str = ""
    """string; versions 0+."""
    token_requester_principal_type: str = ""
    """string; versions 3+."""
    token_requester_principal_name: str = ""
    """string; versions 3+."""
    issue_timestamp: int = 0
    """int64; versions 0+."""
    expiry_timestamp: int = 0
    """int64; versions 0+."""
    max_timestamp: int = 0
    """int64; versions 0+."""
    token_id: str = ""
    """string; versions 0+."""
    hmac: bytes = b""
    """bytes; versions 0+."""
    renewers: list[DescribedDelegationTokenRenewer] = []
    """[]DescribedDelegationTokenRenewer; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeDelegationTokenResponse(base.Message, kw_only=True):
    """Response, api key 41; versions 0-3; flexible 2+."""

    error_code: int = 0
    """int16; versions 0+."""
    tokens: list[DescribedDelegationToken] = []
    """[]DescribedDelegationToken; versions 0+."""
    throttle_time_ms: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribedDelegationTokenRenewer: ClassVar[type[DescribedDelegationTokenRenewer]] = DescribedDelegationTokenRenewer
    DescribedDelegationToken: ClassVar[type[DescribedDelegationToken]] = DescribedDelegationToken
    API_KEY: ClassVar[int | None] = 41
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeDelegationTokenResponse", "apiKey": 41,
  "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "Tokens", "type": "[]DescribedDelegationToken", "versions": "0+", "fields": [
      {"name": "PrincipalType", "type": "string", "versions": "0+"},
      {"name": "PrincipalName", "type": "string", "versions": "0+"},
      {"name": "TokenRequesterPrincipalType", "type": "string", "versions": "3+"},
      {"name": "TokenRequesterPrincipalName", "type": "string", "versions": "3+"},
      {"name": "IssueTimestamp", "type": "int64", "versions": "0+"},
      {"name": "ExpiryTimestamp", "type": "int64", "versions": "0+"},
      {"name": "MaxTimestamp", "type": "int64", "versions": "0+"},
      {"name": "TokenId", "type": "string", "versions": "0+"},
      {"name": "Hmac", "type": "bytes", "versions": "0+"},
      {"name": "Renewers", "type": "[]DescribedDelegationTokenRenewer", "versions": "0+", "fields": [
        {"name": "PrincipalType", "type": "string", "versions": "0+"},
        {"name": "PrincipalName", "type": "string", "versions": "0+"}
      ]}
    ]},
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"}
  ]
}
"""
