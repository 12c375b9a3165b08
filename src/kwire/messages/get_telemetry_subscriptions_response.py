"""Generated from GetTelemetrySubscriptionsResponse.json, Kafka 3.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["GetTelemetrySubscriptionsResponse"]


class GetTelemetrySubscriptionsResponse(base.Message, kw_only=True):
    """Response, api key 71; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    client_instance_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 0+."""
    subscription_id: int = 0
    """int32; versions 0+."""
    accepted_compression_types: list[int] = []
    """[]int8; versions 0+."""
    push_interval_ms: int = 0
    """int32; versions 0+."""
    telemetry_max_bytes: int = 0
    """int32; versions 0+."""
    delta_temporality: bool = False
    """bool; versions 0+."""
    requested_metrics: list[str] = []
    """[]string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 71
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "GetTelemetrySubscriptionsResponse", "apiKey": 71,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ClientInstanceId", "type": "uuid", "versions": "0+"},
    {"name": "SubscriptionId", "type": "int32", "versions": "0+"},
    {"name": "AcceptedCompressionTypes", "type": "[]int8", "versions": "0+"},
    {"name": "PushIntervalMs", "type": "int32", "versions": "0+"},
    {"name": "TelemetryMaxBytes", "type": "int32", "versions": "0+"},
    {"name": "DeltaTemporality", "type": "bool", "versions": "0+"},
    {"name": "RequestedMetrics", "type": "[]string", "versions": "0+"}
  ]
}
"""
