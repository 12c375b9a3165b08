"""Generated from DeleteGroupsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DeleteGroupsRequest"]


class DeleteGroupsRequest(base.Message, kw_only=True):
    """Request, api key 42; versions 0-3; flexible 2+; listeners broker, zkBroker."""

    groups_names: list[str] = []
    """[]string; versions 0+; groupId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 42
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DeleteGroupsRequest", "apiKey": 42,
  "validVersions": "0-3", "flexibleVersions": "2+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "GroupsNames", "type": "[]string", "versions": "0+", "entityType": "groupId"}
  ]
}
"""
