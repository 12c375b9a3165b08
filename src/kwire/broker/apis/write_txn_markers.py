"""WriteTxnMarkers (api key 27), versions 0 to 2: write commit or abort markers to partitions.

    2  transaction version of the marker (KIP-1228)

Used by tools that abort hanging transactions (KIP-664). The broker's own coordinator writes its markers directly.

Source: kafka.server.KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.transactions import Marker
from kwire.errors import BrokerError, EncodeError, LogError
from kwire.identifiers import TopicPartition
from kwire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kwire.messages.write_txn_markers_request import WritableTxnMarker
from kwire.messages.write_txn_markers_response import WritableTxnMarkerResult
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Write each marker to its partitions."""
    if not node.may(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER) and not node.may(
        context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER
    ):
        raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    return WriteTxnMarkersResponse(markers=[write_all(node, each) for each in request.markers])


def write_all(node: Node, request: WritableTxnMarker) -> WritableTxnMarkerResult:
    """Write one marker; returns its result for each partition."""
    marker = Marker(request.producer_id, request.producer_epoch, request.transaction_result, request.coordinator_epoch)
    return WritableTxnMarkerResult(
        producer_id=request.producer_id,
        topics=[
            WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=write(node, (topic.name, index), marker)
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ],
    )


def write(node: Node, partition: TopicPartition, marker: Marker) -> ErrorCode:
    """Write a marker to one partition; returns NONE or the error."""
    try:
        node.markers.write_marker(partition, marker)
    except BrokerError as error:
        return ErrorCode(error.code)
    except LogError:
        return ErrorCode.KAFKA_STORAGE_ERROR
    except EncodeError:  # a producer id or epoch out of range
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE


def error_response(request: WriteTxnMarkersRequest, code: ErrorCode, message: str) -> WriteTxnMarkersResponse:
    """Build a response with the same error for every partition."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=each.producer_id,
                topics=[
                    WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=code
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in request.markers
        ]
    )
