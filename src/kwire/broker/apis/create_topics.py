"""CreateTopics (api key 19), versions 0 to 7: create topics with their partitions and configs.

    1  validate_only, error messages    2  throttle time    4  -1 for the default partition count or replication factor
    5  partition count, replication factor and configs in the response    6  THROTTLING_QUOTA_EXCEEDED    7  topic ids

Manual replica assignments may name the nodes of the cluster. A replica on a node that is not running is not in sync.

Source: kafka.server.ControllerApis.createTopics, ReplicationControlManager.createTopics 3.9.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Generator, Iterator

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.network.throttling import MutationQuota
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.messages import CreateTopicsRequest, CreateTopicsResponse
from kwire.messages.create_topics_request import CreatableTopic
from kwire.messages.create_topics_response import CreatableTopicResult
from kwire.protocol.error_codes import ErrorCode, refusal

DEFAULT = -1
STRICT_QUOTA_VERSION = 6


def handle(
    node: Node, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse | Awaitable[CreateTopicsResponse]:
    """Create each topic; returns an awaitable if that takes long."""
    return node.long_requests.run(create_all(node, context, request))


def create_all(
    node: Node, context: RequestContext, request: CreateTopicsRequest
) -> Generator[None, None, CreateTopicsResponse]:
    """Create each topic; yields after each log."""
    quota = node.throttling.mutations(context, strict_since=STRICT_QUOTA_VERSION)
    counts = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatableTopicResult] = {}
    for topic in request.topics:
        result = CreatableTopicResult(name=topic.name, error_message=None, configs=[])
        try:
            if counts[topic.name] > 1:
                raise refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            yield from create(node, context, topic, result, quota, validate_only=request.validate_only)
        except BrokerError as error:
            result.error_code, result.error_message = error.code, error.what or None
        results.setdefault(topic.name, result)
    context.throttle_ms = quota.throttle_ms
    return CreateTopicsResponse(topics=list(results.values()))


def create(
    node: Node,
    context: RequestContext,
    topic: CreatableTopic,
    result: CreatableTopicResult,
    quota: MutationQuota,
    *,
    validate_only: bool,
) -> Iterator[None]:
    """Create one topic and fill in its result; yields after each log. Raises BrokerError."""
    name = topic.name
    if not node.may(context, Operation.CREATE, ResourceType.CLUSTER, CLUSTER) and not node.may(
        context, Operation.CREATE, ResourceType.TOPIC, name
    ):
        raise refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    if name == METADATA_TOPIC:
        raise refusal(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    partition_count, replication_factor = topic.num_partitions, topic.replication_factor
    assignment: list[list[int]] = []
    if topic.assignments:
        assignment = check_assignments(node, topic)
        partition_count, replication_factor = len(assignment), len(assignment[0])
    partition_count = node.settings.num_partitions if partition_count == DEFAULT else partition_count
    replication_factor = node.controller.replication_factor if replication_factor == DEFAULT else replication_factor
    configs = {}
    for config in topic.configs:
        if config.value is None:
            what = f"Null value not supported for topic configs: {config.name}"
            raise refusal(ErrorCode.INVALID_CONFIG, what)
        configs[config.name] = config.value
    node.controller.check_new_topic(name, partition_count, configs, replication_factor)
    quota.record(partition_count)
    if not validate_only:
        created = yield from node.controller.creating_topic(
            name, partition_count, configs, replication_factor, assignment
        )
        result.topic_id = created.topic_id
    if not node.may(context, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name):
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return
    result.num_partitions, result.replication_factor = partition_count, replication_factor
    result.configs = [
        CreateTopicsResponse.CreatableTopicConfigs(
            name=entry.name, value=entry.value, read_only=entry.read_only, config_source=entry.source
        )
        for entry in node.configs.topic_entries(configs)
    ]


def check_assignments(node: Node, topic: CreatableTopic) -> list[list[int]]:
    """Validate a manual assignment and return the replicas of each partition. Raises BrokerError."""
    if topic.num_partitions != DEFAULT:
        what = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise refusal(ErrorCode.INVALID_REQUEST, what)
    if topic.replication_factor != DEFAULT:
        what = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise refusal(ErrorCode.INVALID_REQUEST, what)
    indexes = sorted(each.partition_index for each in topic.assignments)
    if indexes != list(range(len(indexes))):
        what = "partitions should be a consecutive 0-based integer sequence"
        raise refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, what)
    replicas = [each.broker_ids for each in sorted(topic.assignments, key=lambda each: each.partition_index)]
    for each in replicas:
        check_replicas(node, each, len(replicas[0]))
        check_running(node, each)
    return replicas


def check_running(node: Node, broker_ids: list[int]) -> None:
    """Raise BrokerError if no replica of a new partition is running."""
    if not any(each in node.members.running for each in broker_ids):
        what = "All brokers specified in the manual partition assignment for partition {} are fenced or in controlled "
        raise refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, what.format(broker_ids) + "shutdown.")


def check_replicas(node: Node, broker_ids: list[int], factor: int | None = None) -> None:
    """Raise BrokerError unless the replicas of a partition are nodes of the cluster, as many as of other partitions.

    factor: the replication factor of the others, None if it may be any.
    Source: org.apache.kafka.controller.ReplicationControlManager.validateManualPartitionAssignment.
    """
    if not broker_ids:
        what = "The manual partition assignment includes an empty replica list."
        raise refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, what)
    unknown = [broker for broker in sorted(broker_ids) if broker not in node.members.all]
    if unknown:
        what = f"The manual partition assignment includes broker {unknown[0]}, but no such broker is registered."
        raise refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, what)
    repeated = [broker for broker in sorted(broker_ids) if broker_ids.count(broker) > 1]
    if repeated:
        what = f"The manual partition assignment includes the broker {repeated[0]} more than once."
        raise refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, what)
    if factor not in (None, len(broker_ids)):
        what = (
            f"The manual partition assignment includes a partition with {len(broker_ids)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )
        raise refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, what)


def error_response(request: CreateTopicsRequest, code: ErrorCode, message: str) -> CreateTopicsResponse:
    """Build a response with the same error for every topic."""
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=code, error_message=message, configs=[])
            for topic in request.topics
        ]
    )
