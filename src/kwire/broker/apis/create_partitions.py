"""CreatePartitions (api key 37), versions 0 to 3: increase the number of partitions of topics.

    3  THROTTLING_QUOTA_EXCEEDED

Source: kafka.server.ControllerApis.createPartitions, ReplicationControlManager.createPartitions 3.9.1; KIP-195.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Generator, Iterator

from kwire.broker.apis.create_topics import check_replicas, check_running
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.controller import MAX_PARTITIONS
from kwire.broker.network.throttling import MutationQuota
from kwire.broker.node import Node
from kwire.broker.topics import Topic
from kwire.errors import BrokerError
from kwire.messages import CreatePartitionsRequest, CreatePartitionsResponse
from kwire.messages.create_partitions_request import CreatePartitionsTopic
from kwire.protocol.error_codes import ErrorCode, refusal

STRICT_QUOTA_VERSION = 3


def handle(
    node: Node, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse | Awaitable[CreatePartitionsResponse]:
    """Add partitions to each topic; returns an awaitable if that takes long."""
    return node.long_requests.run(add_all(node, context, request))


def add_all(
    node: Node, context: RequestContext, request: CreatePartitionsRequest
) -> Generator[None, None, CreatePartitionsResponse]:
    """Add partitions to each topic; yields after each log."""
    quota = node.throttling.mutations(context, strict_since=STRICT_QUOTA_VERSION)
    counts = Counter(topic.name for topic in request.topics)
    results = {}
    for topic in request.topics:
        result = CreatePartitionsResponse.CreatePartitionsTopicResult(name=topic.name)
        try:
            if counts[topic.name] > 1:
                raise refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            yield from add_partitions(node, context, topic, quota, validate_only=request.validate_only)
        except BrokerError as error:
            result.error_code, result.error_message = error.code, error.what or None
        results[topic.name] = result
    context.throttle_ms = quota.throttle_ms
    return CreatePartitionsResponse(results=list(results.values()))


def add_partitions(
    node: Node, context: RequestContext, change: CreatePartitionsTopic, quota: MutationQuota, *, validate_only: bool
) -> Iterator[None]:
    """Add partitions to one topic; yields after each log. Raises BrokerError."""
    node.authorize(context, Operation.ALTER, ResourceType.TOPIC, change.name)
    topic = node.topics.get(change.name)
    if topic is None:
        raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    current = len(topic.partitions)
    if change.count == current:
        raise refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s).")
    if change.count < current:
        what = f"The topic {topic.name} currently has {current} partition(s); {change.count} would not be an increase."
        raise refusal(ErrorCode.INVALID_PARTITIONS, what)
    added = change.count - current
    if added > MAX_PARTITIONS:
        raise refusal(ErrorCode.POLICY_VIOLATION, f"Excessively large number of partitions: {added}")
    if change.assignments is not None:
        if len(change.assignments) != added:
            what = (
                f"Attempted to add {added} additional partition(s), but only {len(change.assignments)} assignment(s) "
            )
            raise refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, what + "were specified.")
        for each in change.assignments:
            check_replicas(node, each.broker_ids, None if node.members.is_single else factor_of(topic))
            check_running(node, each.broker_ids)
    quota.record(added)
    if not validate_only:
        assignment = [each.broker_ids for each in change.assignments or ()]
        yield from node.controller.adding_partitions(topic, change.count, assignment)


def factor_of(topic: Topic) -> int:
    """Return the replication factor of a topic."""
    return len(topic.partitions[0].state.replicas)


def error_response(request: CreatePartitionsRequest, code: ErrorCode, message: str) -> CreatePartitionsResponse:
    """Build a response with the same error for every topic."""
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsResponse.CreatePartitionsTopicResult(name=t.name, error_code=code, error_message=message)
            for t in request.topics
        ]
    )
