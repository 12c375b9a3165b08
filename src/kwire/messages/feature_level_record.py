"""Generated from FeatureLevelRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["FeatureLevelRecord"]


class FeatureLevelRecord(base.Message, kw_only=True):
    """Metadata, record type 12; versions 0; flexible 0+."""

    name: str = ""
    """string; versions 0+."""
    feature_level: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 12
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "FeatureLevelRecord", "apiKey": 12,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Name", "type": "string", "versions": "0+"},
    {"name": "FeatureLevel", "type": "int16", "versions": "0+"}
  ]
}
"""
