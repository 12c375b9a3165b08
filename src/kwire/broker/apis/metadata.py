"""Metadata (api key 3), versions 0 to 13: brokers, topics, and the leader of each partition.

    1  rack, controller, internal topics; null selects all topics, an empty list none (version 0: empty selects all)
    2  cluster id    3  throttle time    4  auto topic creation is optional    5  offline replicas
    7  leader epochs    8  authorized operations    10  topic ids    12  topics by id    13  top-level error code

All running nodes are listed, each with its endpoint on the client's listener. A partition whose leader is not running
has LEADER_NOT_AVAILABLE; version 0 also has REPLICA_NOT_AVAILABLE and lists running replicas only.

A missing topic is created if auto.create.topics.enable and the client allow it. The response already contains the new
topic; Kafka first responds with LEADER_NOT_AVAILABLE until its controller has created the topic.

Source: kafka.server.KafkaApis.handleTopicMetadataRequest, KRaftMetadataCache.getPartitionMetadata 3.9.1.
"""

from __future__ import annotations

from uuid import UUID

from kwire.broker.apis.steps.current_leaders import endpoints_of
from kwire.broker.authorization import CLUSTER, NO_OPERATIONS, Operation, ResourceType, operations_mask
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.topics import Partition, Topic, check_name
from kwire.errors import BrokerError
from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.messages import MetadataRequest, MetadataResponse
from kwire.messages.base import ZERO_UUID
from kwire.messages.metadata_request import MetadataRequestTopic
from kwire.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kwire.protocol.error_codes import ErrorCode

TOPIC_OPERATIONS = [
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
]
CLUSTER_OPERATIONS = [
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
]


def handle(node: Node, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """Describe the running nodes and topics."""
    version = context.api_version
    topics = request.topics
    if topics is None or (version == 0 and not topics):
        described = [
            describe(node, context, request, topic)
            for topic in node.topics
            if node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        ]
    else:
        once = {(topic.topic_id, topic.name): topic for topic in topics}.values()
        described = [describe_requested(node, context, request, topic) for topic in once]
    response = MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=each.node_id, host=host, port=port, rack=each.rack)
            for each, host, port in endpoints_of(node, context, node.members.running)
        ],
        cluster_id=node.cluster_id,
        controller_id=node.members.controller,
        topics=described,
        cluster_authorized_operations=NO_OPERATIONS,
    )
    if 8 <= version <= 10 and request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = (
            operations_mask([op for op in CLUSTER_OPERATIONS if node.may(context, op, ResourceType.CLUSTER, CLUSTER)])
            if node.may(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
            else 0
        )
    return response


def describe_requested(
    node: Node, context: RequestContext, request: MetadataRequest, requested: MetadataRequestTopic
) -> MetadataResponseTopic:
    """Describe a requested topic, by name or id; create it if it is missing and that is allowed."""
    if requested.topic_id != ZERO_UUID:  # the id takes precedence: Java clients send an empty name with it, not null
        topic = node.topics.with_id(requested.topic_id)
        if topic is None:
            return failed(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id=requested.topic_id)
        if not node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            return failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id=requested.topic_id)
        return describe(node, context, request, topic)
    name = requested.name or ""
    if not node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, name):
        return failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    topic = node.topics.get(name)
    if topic is None:
        allowed = context.api_version < 4 or request.allow_auto_topic_creation
        if not allowed or not node.settings.auto_create_topics_enable:
            return missing(name)
        if not node.may(context, Operation.CREATE, ResourceType.CLUSTER, CLUSTER) and not node.may(
            context, Operation.CREATE, ResourceType.TOPIC, name
        ):
            return failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
        try:
            topic = node.topic_creation.create_missing(name)
        except BrokerError as error:
            return failed(ErrorCode(error.code), name)
    return describe(node, context, request, topic)


def missing(name: str) -> MetadataResponseTopic:
    """Build the response for a topic that does not exist and is not created."""
    try:
        check_name(name)
    except BrokerError as error:
        return failed(ErrorCode(error.code), name)
    return failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)


def failed(code: ErrorCode, name: str | None, *, topic_id: UUID = ZERO_UUID) -> MetadataResponseTopic:
    """Build the response for a topic with an error."""
    return MetadataResponseTopic(
        error_code=code, name=name, topic_id=topic_id, topic_authorized_operations=NO_OPERATIONS
    )


def describe(node: Node, context: RequestContext, request: MetadataRequest, topic: Topic) -> MetadataResponseTopic:
    """Describe an existing topic."""
    operations = NO_OPERATIONS
    if context.api_version >= 8 and request.include_topic_authorized_operations:
        operations = operations_mask(
            [op for op in TOPIC_OPERATIONS if node.may(context, op, ResourceType.TOPIC, topic.name)]
        )
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            describe_partition(node, partition, context.api_version) for partition in topic.partitions.values()
        ],
        topic_authorized_operations=operations,
    )


def describe_partition(node: Node, partition: Partition, version: int) -> MetadataResponsePartition:
    """Describe a partition."""
    leader, replicas, isr, offline = node.members.replicas_of(partition.state)
    code = ErrorCode.LEADER_NOT_AVAILABLE if leader == NO_LEADER else ErrorCode.NONE
    if version == 0 and offline:
        code = code or ErrorCode.REPLICA_NOT_AVAILABLE
        replicas, isr = ([each for each in ids if each not in offline] for ids in (replicas, isr))
    return MetadataResponsePartition(
        error_code=code,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )
