"""Generated from ListConfigResourcesRequest.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListConfigResourcesRequest"]


class ListConfigResourcesRequest(base.Message, kw_only=True):
    """Request, api key 74; versions 0-1; flexible 0+; listeners broker."""

    resource_types: list[int] = []
    """[]int8; versions 1+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 74
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 1)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ListConfigResourcesRequest", "apiKey": 74,
  "validVersions": "0-1", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "ResourceTypes", "type": "[]int8", "versions": "1+"}
  ]
}
"""
