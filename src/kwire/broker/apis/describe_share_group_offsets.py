"""DescribeShareGroupOffsets (api key 90), versions 0 and 1: the start offsets of share groups (KIP-932).

    1  lag (KIP-1226)

Without topics, all partitions with a state are returned. A partition without a state has the offset -1.

Source: kafka.server.KafkaApis.handleDescribeShareGroupOffsetsRequest,
GroupCoordinatorService.describeShareGroupOffsets 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.steps.share_requests import check_enabled
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.groups.share_protocol import state_partitions
from kwire.broker.node import Node
from kwire.broker.shares.coordinator import ShareKey
from kwire.broker.topics import Topic
from kwire.errors import BrokerError
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.internal_topics.share_state import UNSET
from kwire.messages import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from kwire.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequestGroup as Group
from kwire.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponseGroup as DescribedGroup,
)
from kwire.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponsePartition as DescribedPartition,
)
from kwire.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponseTopic as DescribedTopic,
)
from kwire.protocol.error_codes import ErrorCode

LAG_VERSION = 1


def handle(
    node: Node, context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """Describe the offsets of each group."""
    return DescribeShareGroupOffsetsResponse(groups=[describe(node, context, group) for group in request.groups])


def describe(node: Node, context: RequestContext, group: Group) -> DescribedGroup:
    """Describe the offsets of one group."""
    try:
        check_enabled(node)
        node.authorize(context, Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        if group.topics is not None and not group.topics:
            return DescribedGroup(group_id=group.group_id)
        node.check_coordinator(GROUPS_TOPIC, group.group_id)
    except BrokerError as error:
        return DescribedGroup(group_id=group.group_id, error_code=error.code, error_message=error.what)
    described, refused = [], []
    for name, partitions in asked(node, group):
        topic = node.topics.get(name)
        if node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, name):
            described.append(describe_topic(node, context, group.group_id, name, topic, partitions))
        elif group.topics is not None:
            code, what = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), "Topic authorization failed."
            failed = [
                DescribedPartition(partition_index=index, start_offset=UNSET, error_code=code, error_message=what)
                for index in partitions
            ]
            refused.append(DescribedTopic(topic_name=name, partitions=failed))
    described.sort(key=lambda topic: node.topics.get(topic.topic_name) is None)  # as Kafka has them
    return DescribedGroup(group_id=group.group_id, topics=[*described, *refused])


def asked(node: Node, group: Group) -> list[tuple[str, list[int]]]:
    """Return the partitions of a request by topic, or all that the group has a state of."""
    if group.topics is not None:
        return [(topic.topic_name, topic.partitions) for topic in group.topics]
    store = node.groups.store
    if not store.is_share_group(group.group_id):
        return []
    ready = state_partitions(store.share_group(group.group_id)).initialized
    known = [(topic, indexes) for topic_id, indexes in ready.items() if (topic := node.topics.with_id(topic_id))]
    return [(topic.name, sorted(indexes)) for topic, indexes in known]


def describe_topic(
    node: Node, context: RequestContext, group_id: str, name: str, topic: Topic | None, partitions: list[int]
) -> DescribedTopic:
    """Describe the offsets of a topic."""
    if topic is None:
        unknown = [DescribedPartition(partition_index=index, start_offset=UNSET) for index in partitions]
        return DescribedTopic(topic_name=name, partitions=unknown)
    described = []
    for index in partitions:
        one = DescribedPartition(partition_index=index, start_offset=UNSET)
        try:
            stored = node.coordinators.share_states.summary(ShareKey(group_id, topic.topic_id, index))
        except BrokerError:
            stored = None
        if stored is not None:
            one.start_offset, one.leader_epoch = stored.start_offset, stored.leader_epoch
            log = topic.partitions[index].log
            if log is not None and UNSET not in (stored.start_offset, stored.delivery_complete_count):
                one.lag = log.high_watermark - stored.start_offset - stored.delivery_complete_count
        if context.api_version < LAG_VERSION:
            one.lag = UNSET
        described.append(one)
    return DescribedTopic(topic_name=name, topic_id=topic.topic_id, partitions=described)
