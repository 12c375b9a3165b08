"""ElectLeaders (api key 43), versions 0 to 2: elect the leaders of partitions.

    1  unclean elections, top-level error    2  flexible

A request for all partitions (null) lists each topic, with the partitions whose election was needed.

Source: KIP-183, KIP-460; org.apache.kafka.controller.ReplicationControlManager.electLeaders,
ElectLeadersRequest.getErrorResponse 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.replication.elections import Election
from kwire.errors import BrokerError
from kwire.messages import ElectLeadersRequest, ElectLeadersResponse
from kwire.messages.elect_leaders_response import PartitionResult, ReplicaElectionResult
from kwire.protocol.error_codes import ErrorCode, refusal

PREFERRED, UNCLEAN = 0, 1
ERROR_CODE_VERSION = 1


def handle(node: Node, context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Hold each election."""
    try:
        return ElectLeadersResponse(replica_election_results=results(node, context, request))
    except BrokerError as error:
        response = error_response(request, ErrorCode(error.code), error.what)
        if context.api_version < ERROR_CODE_VERSION:
            response.error_code = ErrorCode.NONE
        return response


def results(node: Node, context: RequestContext, request: ElectLeadersRequest) -> list[ReplicaElectionResult]:
    """Return the results of all topics. Raises BrokerError."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    requested = request.topic_partitions
    if request.election_type not in (PREFERRED, UNCLEAN) and (requested is None or requested):
        raise refusal(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    kind = Election.UNCLEAN if request.election_type == UNCLEAN else Election.PREFERRED
    if requested is None:
        everything = [
            (topic.name, [elect(node, topic.name, index, kind) for index in sorted(topic.partitions)])
            for topic in node.topics
        ]
        return [
            ReplicaElectionResult(
                topic=name,
                partition_result=[each for each in elected if each.error_code != ErrorCode.ELECTION_NOT_NEEDED],
            )
            for name, elected in everything
        ]
    return [
        ReplicaElectionResult(
            topic=each.topic, partition_result=[elect(node, each.topic, index, kind) for index in each.partitions]
        )
        for each in requested
    ]


def elect(node: Node, name: str, index: int, kind: Election) -> PartitionResult:
    """Hold the election of one partition and return its result."""
    topic = node.topics.get(name)
    code: ErrorCode
    what: str | None
    if topic is None:
        code, what = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    elif index not in topic.partitions:
        code, what = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
    elif node.members.is_single:
        code, what = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    else:
        code, what = ErrorCode.NONE, None
        try:
            node.leadership.elect(topic.partitions[index], kind)
        except BrokerError as error:
            code, what = ErrorCode(error.code), error.what
    return PartitionResult(partition_id=index, error_code=code, error_message=what)


def error_response(request: ElectLeadersRequest, code: ErrorCode, message: str) -> ElectLeadersResponse:
    """Build a response with the same error for the request and every partition."""
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=each.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=code, error_message=message)
                    for index in each.partitions
                ],
            )
            for each in request.topic_partitions or ()
        ],
    )
