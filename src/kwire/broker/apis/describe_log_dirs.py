"""DescribeLogDirs (api key 35), versions 0 to 5: the log directory, its partitions and their sizes.

    2  flexible    3  top-level error    4  total and usable size of the volume    5  cordoned directories (KIP-1066)

Source: kafka.server.ReplicaManager.describeLogDirs 3.9.1; KIP-113, KIP-827.
"""

from __future__ import annotations

import os

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.internal_topics.enums import ConfigResource
from kwire.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe the log directory. Null topics select all partitions."""
    node.authorize(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
    selected = None if request.topics is None else {topic.topic: set(topic.partitions) for topic in request.topics}
    topics = []
    for topic in node.topics:
        partitions = [
            DescribeLogDirsResponse.DescribeLogDirsPartition(
                partition_index=index, partition_size=partition.log.size_bytes
            )
            for index, partition in topic.partitions.items()
            if partition.log is not None
            and (node.members.is_single or node.node_id in partition.state.replicas)
            and (selected is None or index in selected.get(topic.name, ()))
        ]
        if partitions:
            topics.append(DescribeLogDirsResponse.DescribeLogDirsTopic(name=topic.name, partitions=partitions))
    directory = str(node.log_manager.path)
    disk = os.statvfs(directory)
    result = DescribeLogDirsResponse.DescribeLogDirsResult(
        log_dir=directory,
        topics=topics,
        total_bytes=disk.f_blocks * disk.f_frsize,
        usable_bytes=disk.f_bavail * disk.f_frsize,
        is_cordoned=is_cordoned(node, directory),
    )
    return DescribeLogDirsResponse(results=[result])


def is_cordoned(node: Node, directory: str) -> bool:
    """Return whether cordoned.log.dirs contains the directory."""
    configs = node.cluster.configs_of(ConfigResource.BROKER, str(node.node_id))
    return bool({"*", directory} & {each.strip() for each in configs.get("cordoned.log.dirs", "").split(",")})


def error_response(request: DescribeLogDirsRequest, code: ErrorCode, message: str) -> DescribeLogDirsResponse:
    """Build a response without directories; versions before 3 have no field for the error."""
    return DescribeLogDirsResponse(error_code=code)
