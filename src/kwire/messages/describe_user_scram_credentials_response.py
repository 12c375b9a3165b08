"""Generated from DescribeUserScramCredentialsResponse.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["CredentialInfo", "DescribeUserScramCredentialsResponse", "DescribeUserScramCredentialsResult"]


class CredentialInfo(base.Struct, kw_only=True):
    """Versions 0+."""

    mechanism: int = 0
    """int8; versions 0+."""
    iterations: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeUserScramCredentialsResult(base.Struct, kw_only=True):
    """Versions 0+."""

    user: str = ""
    """string; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    credential_infos: list[CredentialInfo] = []
    """[]CredentialInfo; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeUserScramCredentialsResponse(base.Message, kw_only=True):
    """Response, api key 50; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    results: list[DescribeUserScramCredentialsResult] = []
    """[]DescribeUserScramCredentialsResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    CredentialInfo: ClassVar[type[CredentialInfo]] = CredentialInfo
    DescribeUserScramCredentialsResult: ClassVar[type[DescribeUserScramCredentialsResult]] = (
        DescribeUserScramCredentialsResult
    )
    API_KEY: ClassVar[int | None] = 50
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeUserScramCredentialsResponse", "apiKey": 50,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Results", "type": "[]DescribeUserScramCredentialsResult", "versions": "0+", "fields": [
      {"name": "User", "type": "string", "versions": "0+"},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
      {"name": "CredentialInfos", "type": "[]CredentialInfo", "versions": "0+", "fields": [
        {"name": "Mechanism", "type": "int8", "versions": "0+"},
        {"name": "Iterations", "type": "int32", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
