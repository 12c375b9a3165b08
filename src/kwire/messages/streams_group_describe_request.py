"""Generated from StreamsGroupDescribeRequest.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["StreamsGroupDescribeRequest"]


class StreamsGroupDescribeRequest(base.Message, kw_only=True):
    """Request, api key 89; versions 0-1; flexible 0+; listeners broker."""

    group_ids: list[str] = []
    """[]string; versions 0+; groupId."""
    include_authorized_operations: bool = False
    """bool; versions 0+."""
    include_topology_description: bool = False
    """bool; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 89
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "StreamsGroupDescribeRequest", "apiKey": 89,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "GroupIds", "type": "[]string", "versions": "0+", "entityType": "groupId"},
    {"name": "IncludeAuthorizedOperations", "type": "bool", "versions": "0+"},
    {"name": "IncludeTopologyDescription", "type": "bool", "versions": "1+"}
  ]
}
"""
