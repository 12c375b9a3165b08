"""Generated from UpdateFeaturesRequest.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["FeatureUpdateKey", "UpdateFeaturesRequest"]


class FeatureUpdateKey(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("feature",)

    feature: str = ""
    """string; versions 0+; map key."""
    max_version_level: int = 0
    """int16; versions 0+."""
    allow_downgrade: bool = False
    """bool; versions 0."""
    upgrade_type: int = 1
    """int8; versions 1+; default 1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("feature_updates")
class UpdateFeaturesRequest(base.Message, kw_only=True):
    """Request, api key 57; versions 0-2; flexible 0+; listeners broker, controller, zkBroker."""

    timeout_ms: int = 60000
    """int32; versions 0+; default 60000."""
    feature_updates: base.Keyed[FeatureUpdateKey] = base.keyed()
    """[]FeatureUpdateKey; versions 0+."""
    validate_only: bool = False
    """bool; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    FeatureUpdateKey: ClassVar[type[FeatureUpdateKey]] = FeatureUpdateKey
    API_KEY: ClassVar[int | None] = 57
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "UpdateFeaturesRequest", "apiKey": 57,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "timeoutMs", "type": "int32", "versions": "0+", "default": "60000"},
    {"name": "FeatureUpdates", "type": "[]FeatureUpdateKey", "versions": "0+", "fields": [
      {"name": "Feature", "type": "string", "versions": "0+", "mapKey": true},
      {"name": "MaxVersionLevel", "type": "int16", "versions": "0+"},
      {"name": "AllowDowngrade", "type": "bool", "versions": "0"},
      {"name": "UpgradeType", "type": "int8", "versions": "1+", "default": "1"}
    ]},
    {"name": "ValidateOnly", "type": "bool", "versions": "1+"}
  ]
}
"""
