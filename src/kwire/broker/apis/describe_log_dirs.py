"""DescribeLogDirs (api key 35), versions 0 to 5: the log directory, its partitions and their sizes.

    2  flexible    3  an error for the whole request    4  the disk's size and room
    5  cordoned directories (KIP-1066)

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
    """The one directory there is; null asks for all partitions."""
    node.authorize(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
    wanted = None if request.topics is None else {topic.topic: set(topic.partitions) for topic in request.topics}
    topics = []
    for topic in node.topics:
        partitions = [
            DescribeLogDirsResponse.DescribeLogDirsPartition(
                partition_index=index, partition_size=partition.log.size_bytes
            )
            for index, partition in topic.partitions.items()
            if partition.log is not None and (wanted is None or index in wanted.get(topic.name, ()))
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
    """Whether cordoned.log.dirs has the directory."""
    configs = node.cluster.configs_of(ConfigResource.BROKER, str(node.node_id))
    return bool({"*", directory} & {each.strip() for each in configs.get("cordoned.log.dirs", "").split(",")})


def error_response(request: DescribeLogDirsRequest, code: ErrorCode, message: str) -> DescribeLogDirsResponse:
    """No directory; the error where the version has a place for it."""
    return DescribeLogDirsResponse(error_code=code)
