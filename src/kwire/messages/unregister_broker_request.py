"""Generated from UnregisterBrokerRequest.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["UnregisterBrokerRequest"]


class UnregisterBrokerRequest(base.Message, kw_only=True):
    """Request, api key 64; versions 0; flexible 0+; listeners broker, controller."""

    broker_id: int = 0
    """int32; versions 0+; brokerId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 64
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "UnregisterBrokerRequest", "apiKey": 64,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker", "controller"],
  "fields": [
    {"name": "BrokerId", "type": "int32", "versions": "0+", "entityType": "brokerId"}
  ]
}
"""
