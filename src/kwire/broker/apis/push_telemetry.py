"""PushTelemetry (api key 72), version 0: receive a client's metrics (KIP-714).

Metrics are decompressed, as Kafka does for its plugins, and discarded; tests find them in `broker.requests`. Metrics
that cannot be decompressed are INVALID_RECORD.

Source: org.apache.kafka.server.ClientMetricsManager.processPushTelemetryRequest 3.9.1.
"""

from __future__ import annotations

from uuid import UUID

from kwire.broker.client_metrics import MAX_PUSH_BYTES
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import DecodeError
from kwire.messages import PushTelemetryRequest, PushTelemetryResponse
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records import Compression
from kwire.records.compression.codecs import TooLarge, expand

RESERVED = frozenset({UUID(int=0), UUID(int=1)})
MAX_DECOMPRESSED_BYTES = 16 * MAX_PUSH_BYTES


def handle(node: Node, context: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Validate the pushed metrics."""
    instance_id, metrics = request.client_instance_id, request.metrics
    if instance_id in RESERVED:
        what = f"Invalid request from the client [{instance_id}], invalid client instance id"
        raise refusal(ErrorCode.INVALID_REQUEST, what)
    node.client_metrics.push(
        instance_id,
        context,
        subscription_id=request.subscription_id,
        codec=request.compression_type,
        size_bytes=len(metrics),
        is_terminating=request.terminating,
    )
    codec = Compression(request.compression_type)
    if metrics and codec != Compression.NONE:
        try:
            expand(codec, 2, memoryview(metrics), MAX_DECOMPRESSED_BYTES)
        except (DecodeError, TooLarge):
            raise refusal(ErrorCode.INVALID_RECORD, f"{codec.text} metrics cannot be decompressed") from None
    return PushTelemetryResponse()
