"""StreamsGroupDescribe (api key 89), versions 0 and 1: refused with UNSUPPORTED_VERSION for each group.

Streams groups (KIP-1071) are not supported: the response is that of a Kafka 4.4.0 whose feature `streams.version` is 0.
Kafka Streams works with the classic protocol, its default.

Source: kafka.server.KafkaApis.handleStreamsGroupDescribe 4.4.0.
"""

from __future__ import annotations

from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: StreamsGroupDescribeRequest) -> StreamsGroupDescribeResponse:
    """Refuse the request, group by group."""
    return error_response(request, ErrorCode.UNSUPPORTED_VERSION, "")


def error_response(request: StreamsGroupDescribeRequest, code: ErrorCode, message: str) -> StreamsGroupDescribeResponse:
    """Build an error response, which names each group."""
    group = StreamsGroupDescribeResponse.DescribedGroup
    return StreamsGroupDescribeResponse(groups=[group(group_id=each, error_code=code) for each in request.group_ids])
