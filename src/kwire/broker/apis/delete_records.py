"""DeleteRecords (api key 21), versions 0 to 2: advance the log start offset of partitions; -1 is the high watermark.

Segments entirely below the log start offset are deleted by the next retention check. Records below it that remain in
the first segment are no longer returned.

Source: kafka.server.ReplicaManager.deleteRecordsOnLocalLog, UnifiedLog.maybeIncrementLogStartOffset; KIP-107.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError, KwireError
from kwire.messages import DeleteRecordsRequest, DeleteRecordsResponse
from kwire.messages.delete_records_request import DeleteRecordsPartition
from kwire.messages.delete_records_response import DeleteRecordsPartitionResult as PartitionResult
from kwire.protocol.error_codes import ErrorCode, refusal

HIGH_WATERMARK = -1
INVALID_LOW_WATERMARK = -1


def handle(node: Node, context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Advance the log start offset of each partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponse.DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[delete(node, context, topic.name, requested) for requested in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def delete(node: Node, context: RequestContext, topic: str, requested: DeleteRecordsPartition) -> PartitionResult:
    """Advance the log start offset of one partition."""
    result = PartitionResult(partition_index=requested.partition_index, low_watermark=INVALID_LOW_WATERMARK)
    try:
        node.authorize(context, Operation.DELETE, ResourceType.TOPIC, topic)
        partition = node.topics.partition(topic, requested.partition_index)
        if partition is None:
            raise refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"unknown partition {topic}-{requested.partition_index}"
            )
        log = partition.at(node.node_id)
        if partition.topic.is_internal:
            raise refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot delete records of internal topic {topic}")
        if "delete" not in log.config.cleanup_policy:
            what = f"Records of partition {partition.name} can not be deleted due to the configured policy"
            raise refusal(ErrorCode.POLICY_VIOLATION, what)
        offset = log.high_watermark if requested.offset == HIGH_WATERMARK else requested.offset
        if not 0 <= offset <= log.high_watermark:
            raise refusal(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is out of range for {partition.name}: [0, {log.high_watermark}]",
            )
        log.delete_records(offset)
    except BrokerError as error:
        result.error_code = error.code
    except KwireError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    else:
        result.low_watermark = log.log_start_offset
    return result
