"""Generated from DescribeConfigsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = [
    "DescribeConfigsResourceResult",
    "DescribeConfigsResponse",
    "DescribeConfigsResult",
    "DescribeConfigsSynonym",
]


class DescribeConfigsSynonym(base.Struct, kw_only=True):
    """Versions 1+."""

    name: str = ""
    """string; versions 1+."""
    value: str | None = ""
    """string; versions 1+; nullable."""
    source: int = 0
    """int8; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeConfigsResourceResult(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+."""
    value: str | None = ""
    """string; versions 0+; nullable."""
    read_only: bool = False
    """bool; versions 0+."""
    is_default: bool = False
    """bool; versions 0."""
    config_source: int = -1
    """int8; versions 1+; default -1; ignorable."""
    is_sensitive: bool = False
    """bool; versions 0+."""
    synonyms: list[DescribeConfigsSynonym] = []
    """[]DescribeConfigsSynonym; versions 1+; ignorable."""
    config_type: int = 0
    """int8; versions 3+; ignorable."""
    documentation: str | None = ""
    """string; versions 3+; nullable; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeConfigsResult(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    resource_type: int = 0
    """int8; versions 0+."""
    resource_name: str = ""
    """string; versions 0+."""
    configs: list[DescribeConfigsResourceResult] = []
    """[]DescribeConfigsResourceResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeConfigsResponse(base.Message, kw_only=True):
    """Response, api key 32; versions 0-4; flexible 4+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    results: list[DescribeConfigsResult] = []
    """[]DescribeConfigsResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribeConfigsSynonym: ClassVar[type[DescribeConfigsSynonym]] = DescribeConfigsSynonym
    DescribeConfigsResourceResult: ClassVar[type[DescribeConfigsResourceResult]] = DescribeConfigsResourceResult
    DescribeConfigsResult: ClassVar[type[DescribeConfigsResult]] = DescribeConfigsResult
    API_KEY: ClassVar[int | None] = 32
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeConfigsResponse", "apiKey": 32,
  "validVersions": "0-4", "flexibleVersions": "4+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "Results", "type": "[]DescribeConfigsResult", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
      {"name": "ResourceType", "type": "int8", "versions": "0+"},
      {"name": "ResourceName", "type": "string", "versions": "0+"},
      {"name": "Configs", "type": "[]DescribeConfigsResourceResult", "versions": "0+", "fields": [
        {"name": "Name", "type": "string", "versions": "0+"},
        {"name": "Value", "type": "string", "versions": "0+", "nullableVersions": "0+"},
        {"name": "ReadOnly", "type": "bool", "versions": "0+"},
        {"name": "IsDefault", "type": "bool", "versions": "0"},
        {"name": "ConfigSource", "type": "int8", "versions": "1+", "default": "-1", "ignorable": true},
        {"name": "IsSensitive", "type": "bool", "versions": "0+"},
        {"name": "Synonyms", "type": "[]DescribeConfigsSynonym", "versions": "1+", "ignorable": true, "fields": [
          {"name": "Name", "type": "string", "versions": "1+"},
          {"name": "Value", "type": "string", "versions": "1+", "nullableVersions": "0+"},
          {"name": "Source", "type": "int8", "versions": "1+"}
        ]},
        {"name": "ConfigType", "type": "int8", "versions": "3+", "ignorable": true},
        {"name": "Documentation", "type": "string", "versions": "3+", "nullableVersions": "0+", "ignorable": true}
      ]}
    ]}
  ]
}
"""
