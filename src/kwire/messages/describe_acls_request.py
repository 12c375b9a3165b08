"""Generated from DescribeAclsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeAclsRequest"]


class DescribeAclsRequest(base.Message, kw_only=True):
    """Request, api key 29; versions 0-3; flexible 2+; deprecated 0; listeners broker, controller, zkBroker."""

    resource_type_filter: int = 0
    """int8; versions 0+."""
    resource_name_filter: str | None = ""
    """string; versions 0+; nullable."""
    pattern_type_filter: int = 3
    """int8; versions 1+; default 3."""
    principal_filter: str | None = ""
    """string; versions 0+; nullable."""
    host_filter: str | None = ""
    """string; versions 0+; nullable."""
    operation: int = 0
    """int8; versions 0+."""
    permission_type: int = 0
    """int8; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 29
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("resourcePatternType", "pattern_type_filter", 1, 1),
        ("resourceType", "resource_type_filter", 0, 1),
    )
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeAclsRequest", "apiKey": 29,
  "validVersions": "0-3", "deprecatedVersions": "0", "flexibleVersions": "2+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "ResourceTypeFilter", "type": "int8", "versions": "0+"},
    {"name": "ResourceNameFilter", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "PatternTypeFilter", "type": "int8", "versions": "1+", "default": "3"},
    {"name": "PrincipalFilter", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "HostFilter", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Operation", "type": "int8", "versions": "0+"},
    {"name": "PermissionType", "type": "int8", "versions": "0+"}
  ]
}
"""
