"""Generated from UpdateFeaturesResponse.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["UpdatableFeatureResult", "UpdateFeaturesResponse"]


class UpdatableFeatureResult(base.Struct, kw_only=True):
    """Versions 0-1."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("feature",)

    feature: str = ""
    """string; versions 0+; map key."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("results")
class UpdateFeaturesResponse(base.Message, kw_only=True):
    """Response, api key 57; versions 0-2; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    results: base.Keyed[UpdatableFeatureResult] = base.keyed()
    """[]UpdatableFeatureResult; versions 0-1; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    UpdatableFeatureResult: ClassVar[type[UpdatableFeatureResult]] = UpdatableFeatureResult
    API_KEY: ClassVar[int | None] = 57
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "UpdateFeaturesResponse", "apiKey": 57,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Results", "type": "[]UpdatableFeatureResult", "versions": "0-1", "ignorable": true, "fields": [
      {"name": "Feature", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"}
    ]}
  ]
}
"""
