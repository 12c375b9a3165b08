"""Generated from ConsumerGroupDescribeRequest.json, Kafka 3.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ConsumerGroupDescribeRequest"]


class ConsumerGroupDescribeRequest(base.Message, kw_only=True):
    """Request, api key 69; versions 0-1; flexible 0+; listeners broker, zkBroker."""

    group_ids: list[str] = []
    """[]string; versions 0+; groupId."""
    include_authorized_operations: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 69
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ConsumerGroupDescribeRequest", "apiKey": 69,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "GroupIds", "type": "[]string", "versions": "0+", "entityType": "groupId"},
    {"name": "IncludeAuthorizedOperations", "type": "bool", "versions": "0+"}
  ]
}
"""
