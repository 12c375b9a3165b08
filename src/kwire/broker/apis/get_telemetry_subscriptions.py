"""GetTelemetrySubscriptions (api key 71), version 0: the metrics that a client should push (KIP-714).

A client without an instance id (zero) gets one. Compression types are in order of preference: zstd, lz4, gzip, snappy.

Source: org.apache.kafka.server.ClientMetricsManager.processGetTelemetrySubscriptionRequest 3.9.1.
"""

from __future__ import annotations

from kwire.broker.client_metrics import MAX_PUSH_BYTES
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.identifiers import new_uuid
from kwire.messages import GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse
from kwire.messages.base import ZERO_UUID
from kwire.records import Compression

ACCEPTED = [Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY]


def handle(
    node: Node, context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Return the client's subscription."""
    instance_id = new_uuid() if request.client_instance_id == ZERO_UUID else request.client_instance_id
    instance = node.client_metrics.get(instance_id, context)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=[int(codec) for codec in ACCEPTED],
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=MAX_PUSH_BYTES,
        delta_temporality=True,
        requested_metrics=instance.metrics,
    )
