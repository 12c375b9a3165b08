"""Generated from StreamsGroupTopologyKey.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["StreamsGroupTopologyKey"]


class StreamsGroupTopologyKey(base.Message, kw_only=True):
    """Coordinator-key, record type 23; versions 0; flexible none."""

    group_id: str = ""
    """string; versions 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 23
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-key", "name": "StreamsGroupTopologyKey", "apiKey": 23,
  "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0"}
  ]
}
"""
