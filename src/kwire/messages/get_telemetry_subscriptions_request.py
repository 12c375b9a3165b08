"""Generated from GetTelemetrySubscriptionsRequest.json, Kafka 3.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["GetTelemetrySubscriptionsRequest"]


class GetTelemetrySubscriptionsRequest(base.Message, kw_only=True):
    """Request, api key 71; versions 0; flexible 0+; listeners broker."""

    client_instance_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 71
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "GetTelemetrySubscriptionsRequest", "apiKey": 71,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "ClientInstanceId", "type": "uuid", "versions": "0+"}
  ]
}
"""
