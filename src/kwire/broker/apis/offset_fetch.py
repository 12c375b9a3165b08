"""OffsetFetch (api key 9), versions 0 to 10: read the committed offsets of groups.

    1  offsets from the broker (0: ZooKeeper)    2  null topics select all, group error    3  throttle time
    5  leader epochs (KIP-320)    7  require_stable (KIP-447)    8  several groups (KIP-709)
    9  member id and epoch of the consumer protocol    10  topic ids (KIP-848)

A partition without a committed offset has offset -1 and no error; in version 0 it has UNKNOWN_TOPIC_OR_PARTITION. With
require_stable, a partition with a pending transactional commit has UNSTABLE_OFFSET_COMMIT.

Source: kafka.server.KafkaApis.handleOffsetFetchRequest 3.9.1; OffsetMetadataManager.fetchOffsets.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import OffsetFetchRequest, OffsetFetchResponse
from kwire.messages.base import ZERO_UUID
from kwire.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kwire.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kwire.messages.offset_fetch_response import OffsetFetchResponsePartitions as Partition
from kwire.protocol.error_codes import ErrorCode

GROUP_ERROR_VERSION, GROUPS_VERSION, TOPIC_ID_VERSION = 2, 8, 10
NO_OFFSET, NO_EPOCH = -1, -1


def handle(node: Node, context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return the committed offsets of each group."""
    version = context.api_version
    if version >= GROUPS_VERSION:
        groups = [fetch_group(node, context, group, request.require_stable) for group in request.groups]
        return OffsetFetchResponse(groups=groups)
    one = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if request.topics is None
        else [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ],
    )
    group = fetch_group(node, context, one, request.require_stable)
    if version == 0:
        for topic in group.topics:
            for partition in topic.partitions:
                if partition.committed_offset == NO_OFFSET and not partition.error_code:
                    partition.error_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if version < GROUP_ERROR_VERSION and group.error_code:
        return error_response(request, ErrorCode(group.error_code), "")
    return OffsetFetchResponse(topics=old_topics(group.topics), error_code=group.error_code)


def fetch_group(
    node: Node, context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """Return one group's offsets: of the requested topics, or of all topics that the client may describe."""
    response = OffsetFetchResponseGroup(group_id=group.group_id)
    try:
        node.authorize(context, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        node.check_coordinator(GROUPS_TOPIC, group.group_id)
        node.groups.offsets.check_fetch(group.group_id, group.member_id, group.member_epoch)
    except BrokerError as error:
        response.error_code = error.code
        return response
    by_id = context.api_version >= TOPIC_ID_VERSION
    for topic in all_topics(node, group.group_id) if group.topics is None else group.topics:
        known = (
            node.topics.with_id(topic.topic_id) if by_id and group.topics is not None else node.topics.get(topic.name)
        )
        name = known.name if known is not None else topic.name
        topic_id = topic.topic_id if known is None else known.topic_id
        code = ErrorCode.NONE
        if by_id and known is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if group.topics is None and code is not ErrorCode.NONE:
            continue
        response.topics.append(
            OffsetFetchResponseTopics(
                name=name,
                topic_id=topic_id if by_id else ZERO_UUID,
                partitions=[
                    fetch(node, group.group_id, name, index, require_stable)
                    if code is ErrorCode.NONE
                    else no_offset(index, code)
                    for index in topic.partition_indexes
                ],
            )
        )
    return response


def all_topics(node: Node, group_id: str) -> list[OffsetFetchRequestTopics]:
    """Return all partitions with committed offsets of a group."""
    topics: dict[str, OffsetFetchRequestTopics] = {}
    for name, index in node.groups.store.state.offsets_of(group_id):
        if name not in topics:
            topics[name] = OffsetFetchRequestTopics(name=name, partition_indexes=[])
        topics[name].partition_indexes.append(index)
    return list(topics.values())


def fetch(node: Node, group_id: str, name: str, index: int, require_stable: bool) -> Partition:
    """Return the offset of one partition."""
    state = node.groups.store.state
    if require_stable and (name, index) in state.pending_partitions(group_id):
        return no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    committed = state.offsets_of(group_id).get((name, index))
    if committed is None:
        return no_offset(index, ErrorCode.NONE)
    return Partition(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def no_offset(index: int, code: ErrorCode) -> Partition:
    """Build the response of a partition without an offset."""
    return Partition(
        partition_index=index,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_EPOCH,
        metadata="",
        error_code=int(code),
    )


def old_topics(topics: list[OffsetFetchResponseTopics]) -> list[OffsetFetchResponseTopic]:
    """Convert topics to the structs of versions 0 to 7."""
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponse.OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def error_response(request: OffsetFetchRequest, code: ErrorCode, message: str) -> OffsetFetchResponse:
    """Build a response with the error in the response, its groups and its partitions, for every version."""
    failed = [
        OffsetFetchResponseTopics(
            name=topic.name, partitions=[no_offset(index, code) for index in topic.partition_indexes]
        )
        for topic in request.topics or ()
    ]
    groups = [OffsetFetchResponseGroup(group_id=group.group_id, error_code=int(code)) for group in request.groups]
    return OffsetFetchResponse(topics=old_topics(failed), error_code=int(code), groups=groups)
