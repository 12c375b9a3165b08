"""Generated from SnapshotFooterRecord.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["SnapshotFooterRecord"]


class SnapshotFooterRecord(base.Message, kw_only=True):
    """Data; versions 0; flexible 0+."""

    version: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "data", "name": "SnapshotFooterRecord",
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Version", "type": "int16", "versions": "0+"}
  ]
}
"""
