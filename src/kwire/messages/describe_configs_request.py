"""Generated from DescribeConfigsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeConfigsRequest", "DescribeConfigsResource"]


class DescribeConfigsResource(base.Struct, kw_only=True):
    """Versions 0+."""

    resource_type: int = 0
    """int8; versions 0+."""
    resource_name: str = ""
    """string; versions 0+."""
    configuration_keys: list[str] | None = []
    """[]string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeConfigsRequest(base.Message, kw_only=True):
    """Request, api key 32; versions 0-4; flexible 4+; deprecated 0; listeners broker, controller, zkBroker."""

    resources: list[DescribeConfigsResource] = []
    """[]DescribeConfigsResource; versions 0+."""
    include_synonyms: bool = False
    """bool; versions 1+."""
    include_documentation: bool = False
    """bool; versions 3+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribeConfigsResource: ClassVar[type[DescribeConfigsResource]] = DescribeConfigsResource
    API_KEY: ClassVar[int | None] = 32
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("includeSynoyms", "include_synonyms", 1, 2),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeConfigsRequest", "apiKey": 32,
  "validVersions": "0-4", "deprecatedVersions": "0", "flexibleVersions": "4+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Resources", "type": "[]DescribeConfigsResource", "versions": "0+", "fields": [
      {"name": "ResourceType", "type": "int8", "versions": "0+"},
      {"name": "ResourceName", "type": "string", "versions": "0+"},
      {"name": "ConfigurationKeys", "type": "[]string", "versions": "0+", "nullableVersions": "0+"}
    ]},
    {"name": "IncludeSynonyms", "type": "bool", "versions": "1+"},
    {"name": "IncludeDocumentation", "type": "bool", "versions": "3+"}
  ]
}
"""
