"""Generated from ShareGroupMetadataKey.json, Kafka 3.9.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ShareGroupMetadataKey"]


class ShareGroupMetadataKey(base.Message, kw_only=True):
    """Coordinator-key, record type 11; versions 0; flexible none."""

    group_id: str = ""
    """string; versions 0."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 11
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-key", "name": "ShareGroupMetadataKey", "apiKey": 11,
  "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0"}
  ]
}
"""
