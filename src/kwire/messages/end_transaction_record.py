"""Generated from EndTransactionRecord.json, Kafka 3.6.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["EndTransactionRecord"]


class EndTransactionRecord(base.Message, kw_only=True):
    """Metadata, record type 24; versions 0; flexible 0+."""

    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 24
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "EndTransactionRecord", "apiKey": 24,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": []
}
"""
