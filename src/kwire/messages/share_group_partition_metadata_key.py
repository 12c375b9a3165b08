"""Generated from ShareGroupPartitionMetadataKey.json, Kafka 3.9.1 to 4.0.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ShareGroupPartitionMetadataKey"]


class ShareGroupPartitionMetadataKey(base.Message, kw_only=True):
    """Data; versions 9; flexible none."""

    group_id: str = ""
    """string; versions 9."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(9, 9)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "ShareGroupPartitionMetadataKey",
  "validVersions": "9", "flexibleVersions": "none",
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "9"}
  ]
}
"""
