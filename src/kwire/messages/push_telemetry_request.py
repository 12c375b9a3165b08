"""Generated from PushTelemetryRequest.json, Kafka 3.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["PushTelemetryRequest"]


class PushTelemetryRequest(base.Message, kw_only=True):
    """Request, api key 72; versions 0; flexible 0+; listeners broker."""

    client_instance_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    subscription_id: int = 0
    """int32; versions 0+."""
    terminating: bool = False
    """bool; versions 0+."""
    compression_type: int = 0
    """int8; versions 0+."""
    metrics: bytes = b""
    """bytes; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 72
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "PushTelemetryRequest", "apiKey": 72,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": [
    {"name": "ClientInstanceId", "type": "uuid", "versions": "0+"},
    {"name": "SubscriptionId", "type": "int32", "versions": "0+"},
    {"name": "Terminating", "type": "bool", "versions": "0+"},
    {"name": "CompressionType", "type": "int8", "versions": "0+"},
    {"name": "Metrics", "type": "bytes", "versions": "0+", "zeroCopy": true}
  ]
}
"""
