"""Generated from ApiVersionsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ApiVersion", "ApiVersionsResponse", "FinalizedFeatureKey", "SupportedFeatureKey"]


class ApiVersion(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("api_key",)

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("index", "api_key", 0, 2),)

    api_key: int = 0
    """int16; versions 0+; map key."""
    min_version: int = 0
    """int16; versions 0+."""
    max_version: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class SupportedFeatureKey(base.Struct, kw_only=True):
    """Versions 3+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 3+; map key."""
    min_version: int = 0
    """int16; versions 3+."""
    max_version: int = 0
    """int16; versions 3+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class FinalizedFeatureKey(base.Struct, kw_only=True):
    """Versions 3+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 3+; map key."""
    max_version_level: int = 0
    """int16; versions 3+."""
    min_version_level: int = 0
    """int16; versions 3+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("api_keys", "supported_features", "finalized_features")
class ApiVersionsResponse(base.Message, kw_only=True):
    """Response, api key 18; versions 0-5; flexible 3+."""

    error_code: int = 0
    """int16; versions 0+."""
    api_keys: base.Keyed[ApiVersion] = base.keyed()
    """[]ApiVersion; versions 0+."""
    throttle_time_ms: int = 0
    """int32; versions 1+; ignorable."""
    supported_features: base.Keyed[SupportedFeatureKey] = base.keyed()
    """[]SupportedFeatureKey; versions 3+; tag 0; ignorable."""
    finalized_features_epoch: int = -1
    """int64; versions 3+; tag 1; default -1; ignorable."""
    finalized_features: base.Keyed[FinalizedFeatureKey] = base.keyed()
    """[]FinalizedFeatureKey; versions 3+; tag 2; ignorable."""
    zk_migration_ready: bool = False
    """bool; versions 3+; tag 3; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ApiVersion: ClassVar[type[ApiVersion]] = ApiVersion
    SupportedFeatureKey: ClassVar[type[SupportedFeatureKey]] = SupportedFeatureKey
    FinalizedFeatureKey: ClassVar[type[FinalizedFeatureKey]] = FinalizedFeatureKey
    API_KEY: ClassVar[int | None] = 18
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ApiVersionsResponse", "apiKey": 18,
  "validVersions": "0-5", "flexibleVersions": "3+",
  "fields": [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ApiKeys", "type": "[]ApiVersion", "versions": "0+", "fields": [
      {"name": "ApiKey", "type": "int16", "versions": "0+", "mapKey": true},
      {"name": "MinVersion", "type": "int16", "versions": "0+"},
      {"name": "MaxVersion", "type": "int16", "versions": "0+"}
    ]},
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+", "ignorable": true},
    {"name": "SupportedFeatures", "type": "[]SupportedFeatureKey", "versions": "3+", "tag": 0, "taggedVersions": "3+", "ignorable": true, "fields": [
      {"name": "Name", "type": "string", "versions": "3+", "mapKey": true},
      {"name": "MinVersion", "type": "int16", "versions": "3+"},
      {"name": "MaxVersion", "type": "int16", "versions": "3+"}
    ]},
    {"name": "FinalizedFeaturesEpoch", "type": "int64", "versions": "3+", "tag": 1, "taggedVersions": "3+", "default": "-1", "ignorable": true},
    {"name": "FinalizedFeatures", "type": "[]FinalizedFeatureKey", "versions": "3+", "tag": 2, "taggedVersions": "3+", "ignorable": true, "fields": [
      {"name": "Name", "type": "string", "versions": "3+", "mapKey": true},
      {"name": "MaxVersionLevel", "type": "int16", "versions": "3+"},
      {"name": "MinVersionLevel", "type": "int16", "versions": "3+"}
    ]},
    {"name": "ZkMigrationReady", "type": "bool", "versions": "3+", "tag": 3, "taggedVersions": "3+", "ignorable": true}
  ]
}
"""
