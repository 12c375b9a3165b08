"""Generated from ListGroupsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListGroupsRequest"]


class ListGroupsRequest(base.Message, kw_only=True):
    """Request, api key 16; versions 0-5; flexible 3+; listeners broker, zkBroker."""

    states_filter: list[str] = []
    """[]string; versions 4+."""
    types_filter: list[str] = []
    """[]string; versions 5+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 16
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ListGroupsRequest", "apiKey": 16,
  "validVersions": "0-5", "flexibleVersions": "3+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "StatesFilter", "type": "[]string", "versions": "4+"},
    {"name": "TypesFilter", "type": "[]string", "versions": "5+"}
  ]
}
"""
