"""Generated from DescribeGroupsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeGroupsRequest"]


class DescribeGroupsRequest(base.Message, kw_only=True):
    """Request, api key 15; versions 0-6; flexible 5+; listeners broker, zkBroker."""

    groups: list[str] = []
    """[]string; versions 0+; groupId."""
    include_authorized_operations: bool = False
    """bool; versions 3+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 15
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 6)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(5, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeGroupsRequest", "apiKey": 15,
  "validVersions": "0-6", "flexibleVersions": "5+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "Groups", "type": "[]string", "versions": "0+", "entityType": "groupId"},
    {"name": "IncludeAuthorizedOperations", "type": "bool", "versions": "3+"}
  ]
}
"""
