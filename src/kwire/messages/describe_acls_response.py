"""Generated from DescribeAclsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AclDescription", "DescribeAclsResource", "DescribeAclsResponse"]


class AclDescription(base.Struct, kw_only=True):
    """Versions 0+."""

    principal: str = ""
    """string; versions 0+."""
    host: str = ""
    """string; versions 0+."""
    operation: int = 0
    """int8; versions 0+."""
    permission_type: int = 0
    """int8; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeAclsResource(base.Struct, kw_only=True):
    """Versions 0+."""

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("name", "resource_name", 0, 1),
        ("type", "resource_type", 0, 1),
    )

    resource_type: int = 0
    """int8; versions 0+."""
    resource_name: str = ""
    """string; versions 0+."""
    pattern_type: int = 3
    """int8; versions 1+; default 3."""
    acls: list[AclDescription] = []
    """[]AclDescription; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeAclsResponse(base.Message, kw_only=True):
    """Response, api key 29; versions 0-3; flexible 2+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    resources: list[DescribeAclsResource] = []
    """[]DescribeAclsResource; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AclDescription: ClassVar[type[AclDescription]] = AclDescription
    DescribeAclsResource: ClassVar[type[DescribeAclsResource]] = DescribeAclsResource
    API_KEY: ClassVar[int | None] = 29
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeAclsResponse", "apiKey": 29,
  "validVersions": "0-3", "flexibleVersions": "2+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"},
    {"name": "Resources", "type": "[]DescribeAclsResource", "versions": "0+", "fields": [
      {"name": "ResourceType", "type": "int8", "versions": "0+"},
      {"name": "ResourceName", "type": "string", "versions": "0+"},
      {"name": "PatternType", "type": "int8", "versions": "1+", "default": "3"},
      {"name": "Acls", "type": "[]AclDescription", "versions": "0+", "fields": [
        {"name": "Principal", "type": "string", "versions": "0+"},
        {"name": "Host", "type": "string", "versions": "0+"},
        {"name": "Operation", "type": "int8", "versions": "0+"},
        {"name": "PermissionType", "type": "int8", "versions": "0+"}
      ]}
    ]}
  ]
}
"""
