"""Generated from AllocateProducerIdsRequest.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["AllocateProducerIdsRequest"]


class AllocateProducerIdsRequest(base.Message, kw_only=True):
    """Request, api key 67; versions 0; flexible 0+; listeners controller, zkBroker."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    broker_epoch: int = -1
    """int64; versions 0+; default -1."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 67
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "AllocateProducerIdsRequest", "apiKey": 67,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["controller", "zkBroker"],
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "0+", "default": "-1"}
  ]
}
"""
