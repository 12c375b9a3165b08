"""Generated from UnregisterControllerRecord.json, Kafka 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["UnregisterControllerRecord"]


class UnregisterControllerRecord(base.Message, kw_only=True):
    """Metadata, record type 29; versions 0; flexible 0+."""

    controller_id: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 29
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "UnregisterControllerRecord", "apiKey": 29,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ControllerId", "type": "int32", "versions": "0+"}
  ]
}
"""
