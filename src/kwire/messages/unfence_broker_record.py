"""Generated from UnfenceBrokerRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["UnfenceBrokerRecord"]


class UnfenceBrokerRecord(base.Message, kw_only=True):
    """Metadata, record type 8; versions 0; flexible 0+."""

    id: int = 0
    """int32; versions 0+; brokerId."""
    epoch: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 8
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "UnfenceBrokerRecord", "apiKey": 8,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "Id", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "Epoch", "type": "int64", "versions": "0+"}
  ]
}
"""
