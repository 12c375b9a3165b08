"""Generated from AlterUserScramCredentialsResponse.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AlterUserScramCredentialsResponse", "AlterUserScramCredentialsResult"]


class AlterUserScramCredentialsResult(base.Struct, kw_only=True):
    """Versions 0+."""

    user: str = ""
    """string; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class AlterUserScramCredentialsResponse(base.Message, kw_only=True):
    """Response, api key 51; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    results: list[AlterUserScramCredentialsResult] = []
    """[]AlterUserScramCredentialsResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AlterUserScramCredentialsResult: ClassVar[type[AlterUserScramCredentialsResult]] = AlterUserScramCredentialsResult
    API_KEY: ClassVar[int | None] = 51
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "AlterUserScramCredentialsResponse", "apiKey": 51,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Results", "type": "[]AlterUserScramCredentialsResult", "versions": "0+", "fields": [
      {"name": "User", "type": "string", "versions": "0+"},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"}
    ]}
  ]
}
"""
