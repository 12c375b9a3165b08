"""Generated from DeleteGroupsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DeletableGroupResult", "DeleteGroupsResponse"]


class DeletableGroupResult(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("group_id",)

    group_id: str = ""
    """string; versions 0+; map key; groupId."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 3+; nullable; default null; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("results")
class DeleteGroupsResponse(base.Message, kw_only=True):
    """Response, api key 42; versions 0-3; flexible 2+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    results: base.Keyed[DeletableGroupResult] = base.keyed()
    """[]DeletableGroupResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DeletableGroupResult: ClassVar[type[DeletableGroupResult]] = DeletableGroupResult
    API_KEY: ClassVar[int | None] = 42
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DeleteGroupsResponse", "apiKey": 42,
  "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Results", "type": "[]DeletableGroupResult", "versions": "0+", "fields": [
      {"name": "GroupId", "type": "string", "versions": "0+", "mapKey": true, "entityType": "groupId"},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "3+", "nullableVersions": "3+", "default": "null", "ignorable": true}
    ]}
  ]
}
"""
