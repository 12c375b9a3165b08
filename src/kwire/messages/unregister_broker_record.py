"""Generated from UnregisterBrokerRecord.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["UnregisterBrokerRecord"]


class UnregisterBrokerRecord(base.Message, kw_only=True):
    """Metadata, record type 1; versions 0; flexible 0+."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    broker_epoch: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 1
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "UnregisterBrokerRecord", "apiKey": 1,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "0+"}
  ]
}
"""
