"""Generated from CreateAclsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AclCreation", "CreateAclsRequest"]


class AclCreation(base.Struct, kw_only=True):
    """Versions 0+."""

    resource_type: int = 0
    """int8; versions 0+."""
    resource_name: str = ""
    """string; versions 0+."""
    resource_pattern_type: int = 3
    """int8; versions 1+; default 3."""
    principal: str = ""
    """string; versions 0+."""
    host: str = ""
    """string; versions 0+."""
    operation: int = 0
    """int8; versions 0+."""
    permission_type: int = 0
    """int8; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class CreateAclsRequest(base.Message, kw_only=True):
    """Request, api key 30; versions 0-3; flexible 2+; deprecated 0; listeners broker, controller, zkBroker."""

    creations: list[AclCreation] = []
    """[]AclCreation; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AclCreation: ClassVar[type[AclCreation]] = AclCreation
    API_KEY: ClassVar[int | None] = 30
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "CreateAclsRequest", "apiKey": 30,
  "validVersions": "0-3", "deprecatedVersions": "0", "flexibleVersions": "2+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Creations", "type": "[]AclCreation", "versions": "0+", "fields": [
      {"name": "ResourceType", "type": "int8", "versions": "0+"},
      {"name": "ResourceName", "type": "string", "versions": "0+"},
      {"name": "ResourcePatternType", "type": "int8", "versions": "1+", "default": "3"},
      {"name": "Principal", "type": "string", "versions": "0+"},
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Operation", "type": "int8", "versions": "0+"},
      {"name": "PermissionType", "type": "int8", "versions": "0+"}
    ]}
  ]
}
"""
