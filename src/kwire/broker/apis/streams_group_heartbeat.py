"""StreamsGroupHeartbeat (api key 88), versions 0 and 1: refused with UNSUPPORTED_VERSION.

Streams groups (KIP-1071) are not supported: the response is that of a Kafka 4.4.0 whose feature `streams.version` is 0.
Kafka Streams works with the classic protocol, its default.

Source: kafka.server.KafkaApis.handleStreamsGroupHeartbeat 4.4.0.
"""

from __future__ import annotations

from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    """Refuse the request."""
    return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
