"""Generated from ControlledShutdownRequest.json, Kafka 2.0.1 to 3.9.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ControlledShutdownRequest"]


class ControlledShutdownRequest(base.Message, kw_only=True):
    """Request, api key 7; versions 0-3; flexible 3+; listeners zkBroker, controller."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    broker_epoch: int = -1
    """int64; versions 2+; default -1; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 7
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 3)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ControlledShutdownRequest", "apiKey": 7,
  "validVersions": "0-3", "flexibleVersions": "3+",
  "listeners": ["zkBroker", "controller"],
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"},
    {"name": "BrokerEpoch", "type": "int64", "versions": "2+", "default": "-1", "ignorable": true}
  ]
}
"""
