"""Generated from NoOpRecord.json, Kafka 3.3.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["NoOpRecord"]


class NoOpRecord(base.Message, kw_only=True):
    """Metadata, record type 20; versions 0; flexible 0+."""

    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 20
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "NoOpRecord", "apiKey": 20,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": []
}
"""
