"""ListOffsets (api key 2), versions 0 to 11: look up offsets by timestamp, or the start and end of a partition.

    0  list of segment base offsets    1  one offset with its timestamp    2  isolation level
    4  leader epochs    7  largest timestamp (-3)    8, 9  local and tiered logs (-4, -5)
    10  timeout    11  first offset not yet tiered (-6)

    timestamp  -1  log end (read_committed: last stable offset)    -2  log start
               -3  record with the largest timestamp    -4  start of the local log (equal to -2: no tiered storage)
               -5, -6  tiered storage: none, so no offset    otherwise the first record at or after the timestamp

Source: kafka.server.KafkaApis.handleListOffsetRequest, UnifiedLog.fetchOffsetByTimestamp and
legacyFetchOffsetsBefore 3.9.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.apis.steps.partition_fetch import READ_COMMITTED
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.topics import Partition
from kwire.errors import BrokerError, KwireError
from kwire.messages import ListOffsetsRequest, ListOffsetsResponse
from kwire.messages.list_offsets_request import ListOffsetsPartition
from kwire.messages.list_offsets_response import ListOffsetsPartitionResponse as Response
from kwire.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from kwire.log.writing.partition_writer import PartitionWriter

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)
FIRST_VERSION_WITH = {EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, PENDING_UPLOAD: 11}
NEVER = 1 << 15  # above every version
NONE_FOUND = -1
LEADER_EPOCH_VERSION = 4


def handle(node: Node, context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look up the offset of each partition."""
    topics = []
    for topic in request.topics:
        allowed = node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        seen: set[int] = set()
        partitions = []
        for requested in topic.partitions:
            if requested.partition_index in seen and context.api_version > 0:
                partitions.append(failure(requested.partition_index, ErrorCode.INVALID_REQUEST))
                continue
            seen.add(requested.partition_index)
            partition = node.topics.partition(topic.name, requested.partition_index)
            if not allowed:
                partitions.append(failure(requested.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif context.api_version > 0 and is_unsupported(requested.timestamp, context.api_version):
                partitions.append(failure(requested.partition_index, ErrorCode.UNSUPPORTED_VERSION))
            elif partition is None:
                partitions.append(failure(requested.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            else:
                partitions.append(look_up(node, context, request, partition, requested))
        topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


def failure(index: int, code: ErrorCode) -> Response:
    """Build the response of a partition with an error."""
    return Response(partition_index=index, error_code=code)


def look_up(
    node: Node,
    context: RequestContext,
    request: ListOffsetsRequest,
    partition: Partition,
    requested: ListOffsetsPartition,
) -> Response:
    """Look up the offset of one partition."""
    try:
        log = partition.at(node.node_id, requested.current_leader_epoch)
        if context.api_version == 0:
            now_ms = node.clock.now_ms()
            offsets = offsets_before(log, requested.timestamp, requested.max_num_offsets, now_ms=now_ms)
            return Response(partition_index=requested.partition_index, old_style_offsets=offsets)
        timestamp, offset, epoch = find(partition, log, request.isolation_level, requested.timestamp)
    except BrokerError as error:
        return failure(requested.partition_index, ErrorCode(error.code))
    except KwireError:
        return failure(requested.partition_index, ErrorCode.KAFKA_STORAGE_ERROR)
    response = Response(partition_index=requested.partition_index, timestamp=timestamp, offset=offset)
    if context.api_version >= LEADER_EPOCH_VERSION:
        response.leader_epoch = epoch
    return response


def is_unsupported(timestamp: int, version: int) -> bool:
    """Return whether a version has no such special timestamp."""
    return timestamp < LATEST and version < FIRST_VERSION_WITH.get(timestamp, NEVER)


def find(partition: Partition, log: PartitionWriter, isolation_level: int, timestamp: int) -> tuple[int, int, int]:
    """Return (timestamp, offset, leader epoch) for a timestamp, each -1 if there is none."""
    end = log.high_watermark
    if isolation_level == READ_COMMITTED:
        end = min(end, log.last_stable_offset)
    if timestamp <= LATEST_TIERED:
        return NONE_FOUND, NONE_FOUND, NONE_FOUND
    if timestamp == LATEST:
        return NONE_FOUND, end, partition.leader_epoch
    record = log.offset_for_time(EARLIEST if timestamp == EARLIEST_LOCAL else timestamp, up_to=end)
    if record is None:
        return NONE_FOUND, NONE_FOUND, NONE_FOUND
    epoch = record.leader_epoch
    return record.timestamp, record.offset, NONE_FOUND if epoch is None else epoch


def offsets_before(log: PartitionWriter, timestamp: int, max_count: int, *, now_ms: int) -> list[int]:
    """Version 0: return base offsets of segments modified up to a timestamp, newest first, and the log end.

    The log end counts as modified now.
    """
    end = log.high_watermark
    pairs = [(max(segment.base_offset, log.log_start_offset), segment.log.modified_ms()) for segment in log.segments]
    if log.segments[-1].size_bytes:
        pairs.append((log.log_end_offset, now_ms))
    if timestamp == LATEST:
        start = len(pairs) - 1
    elif timestamp == EARLIEST:
        start = 0
    else:
        start = len(pairs) - 1
        while start >= 0 and pairs[start][1] > timestamp:
            start -= 1
    offsets = [pairs[i][0] for i in range(start, max(-1, start - max_count), -1)]
    return sorted((min(offset, end) for offset in offsets), reverse=True)


def error_response(request: ListOffsetsRequest, code: ErrorCode, message: str) -> ListOffsetsResponse:
    """Build a response with the same error for every partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name, partitions=[failure(each.partition_index, code) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )
