"""AlterReplicaLogDirs (api key 34), versions 0 to 2: move replicas to another log directory (KIP-113).

    1  throttle time after the response    2  flexible

The broker has one log directory. Moving a replica to it is a no-op; any other directory is LOG_DIR_NOT_FOUND. If a
partition is listed for several directories, the last one applies, as in Kafka.

Source: kafka.server.ReplicaManager.alterReplicaLogDirs 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Check the target directory of each replica."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    targets = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    codes: dict[str, dict[int, ErrorCode]] = {}
    for (name, index), path in targets.items():
        code = ErrorCode.NONE
        if path != str(node.log_manager.path):
            code = ErrorCode.LOG_DIR_NOT_FOUND
        elif node.topics.partition(name, index) is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        codes.setdefault(name, {})[index] = code
    return response(codes)


def response(codes: dict[str, dict[int, ErrorCode]]) -> AlterReplicaLogDirsResponse:
    """Build the response from error codes by topic and partition."""
    cls = AlterReplicaLogDirsResponse
    return cls(
        results=[
            cls.AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    cls.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index, code in partitions.items()
                ],
            )
            for name, partitions in codes.items()
        ]
    )


def error_response(request: AlterReplicaLogDirsRequest, code: ErrorCode, message: str) -> AlterReplicaLogDirsResponse:
    """Build a response with the same error for every replica."""
    codes: dict[str, dict[int, ErrorCode]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            codes.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, code))
    return response(codes)
