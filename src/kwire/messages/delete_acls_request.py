"""Generated from DeleteAclsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DeleteAclsFilter", "DeleteAclsRequest"]


class DeleteAclsFilter(base.Struct, kw_only=True):
    """Versions 0+."""

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


class DeleteAclsRequest(base.Message, kw_only=True):
    """Request, api key 31; versions 0-3; flexible 2+; deprecated 0; listeners broker, controller, zkBroker."""

    filters: list[DeleteAclsFilter] = []
    """[]DeleteAclsFilter; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DeleteAclsFilter: ClassVar[type[DeleteAclsFilter]] = DeleteAclsFilter
    API_KEY: ClassVar[int | None] = 31
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DeleteAclsRequest", "apiKey": 31,
  "validVersions": "0-3", "deprecatedVersions": "0", "flexibleVersions": "2+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Filters", "type": "[]DeleteAclsFilter", "versions": "0+", "fields": [
      {"name": "ResourceTypeFilter", "type": "int8", "versions": "0+"},
      {"name": "ResourceNameFilter", "type": "string", "versions": "0+", "nullableVersions": "0+"},
      {"name": "PatternTypeFilter", "type": "int8", "versions": "1+", "default": "3"},
      {"name": "PrincipalFilter", "type": "string", "versions": "0+", "nullableVersions": "0+"},
      {"name": "HostFilter", "type": "string", "versions": "0+", "nullableVersions": "0+"},
      {"name": "Operation", "type": "int8", "versions": "0+"},
      {"name": "PermissionType", "type": "int8", "versions": "0+"}
    ]}
  ]
}
"""
