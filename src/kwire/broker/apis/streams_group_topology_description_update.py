"""StreamsGroupTopologyDescriptionUpdate (api key 93), version 0: refused with UNSUPPORTED_VERSION.

Streams groups (KIP-1071) are not supported: the response is that of a Kafka 4.4.0 whose feature `streams.version` is 0.
Kafka Streams works with the classic protocol, its default.

Source: kafka.server.KafkaApis.handleStreamsGroupTopologyDescriptionUpdate 4.4.0.
"""

from __future__ import annotations

from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse
from kwire.protocol.error_codes import ErrorCode


def handle(
    node: Node, context: RequestContext, request: StreamsGroupTopologyDescriptionUpdateRequest
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Refuse the request."""
    return StreamsGroupTopologyDescriptionUpdateResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=None)
