"""Generated from RemoveFeatureLevelRecord.json, Kafka 3.0.2 to 3.2.3, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["RemoveFeatureLevelRecord"]


class RemoveFeatureLevelRecord(base.Message, kw_only=True):
    """Metadata, record type 16; versions 0; flexible 0+."""

    name: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 16
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "RemoveFeatureLevelRecord", "apiKey": 16,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Name", "type": "string", "versions": "0+"}
  ]
}
"""
