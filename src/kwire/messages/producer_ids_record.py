"""Generated from ProducerIdsRecord.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ProducerIdsRecord"]


class ProducerIdsRecord(base.Message, kw_only=True):
    """Metadata, record type 15; versions 0; flexible 0+."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    broker_epoch: int = -1
    """int64; versions 0+; default -1."""
    next_producer_id: int = 0
    """int64; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 15
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("producerIdsEnd", "next_producer_id", 0, 0),)
    DEFINITION: ClassVar[str] = """\
{
  "type": "metadata", "name": "ProducerIdsRecord", "apiKey": 15,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "0+", "default": "-1"},
    {"name": "NextProducerId", "type": "int64", "versions": "0+"}
  ]
}
"""
