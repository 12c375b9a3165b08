"""Generated from CreateAclsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AclCreationResult", "CreateAclsResponse"]


class AclCreationResult(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class CreateAclsResponse(base.Message, kw_only=True):
    """Response, api key 30; versions 0-3; flexible 2+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    results: list[AclCreationResult] = []
    """[]AclCreationResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AclCreationResult: ClassVar[type[AclCreationResult]] = AclCreationResult
    API_KEY: ClassVar[int | None] = 30
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "CreateAclsResponse", "apiKey": 30,
  "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Results", "type": "[]AclCreationResult", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"}
    ]}
  ]
}
"""
