"""DescribeQuorum (api key 55), versions 0 to 2: the voters of the metadata log, and how far they are (KIP-595).

    1  times of the last fetch (KIP-836)    2  directory ids, error messages and listeners of the voters (KIP-853)

This node is the only voter and the leader. It has no controller listener, so the addresses are those of its first
listener. Anything but partition 0 of __cluster_metadata is UNKNOWN_TOPIC_OR_PARTITION, as is every partition of a
request with more than that one. With fixed voters, as here, the directory id is zero.
Source: org.apache.kafka.raft.KafkaRaftClient.handleDescribeQuorumRequest, DescribeQuorumRequest 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.messages import DescribeQuorumRequest, DescribeQuorumResponse
from kwire.protocol.error_codes import ErrorCode, refusal

SINCE_NODES = 2
NOT_HERE = "This server does not host this topic-partition."


def handle(node: Node, context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the one quorum."""
    if not node.may(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER):
        raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    asked = [(topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions]
    if asked != [(METADATA_TOPIC, 0)]:
        return unknown(request)
    cls = DescribeQuorumResponse
    now_ms, log = node.clock.now_ms(), node.metadata_log
    voter = cls.ReplicaState(
        replica_id=node.node_id,
        log_end_offset=log.last_offset + 1,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = cls.PartitionData(
        partition_index=0,
        leader_id=node.node_id,
        leader_epoch=log.leader_epoch,
        high_watermark=log.last_offset + 1,
        current_voters=[voter],
    )
    name, (host, port) = next(iter(node.endpoints.items()))
    listener = cls.Listener(name=name, host=host, port=port)
    return cls(
        topics=[cls.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[cls.Node(node_id=node.node_id, listeners=[listener])] if context.api_version >= SINCE_NODES else [],
    )


def unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """The response to a request for other partitions."""
    cls = DescribeQuorumResponse
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return cls(
        topics=[
            cls.TopicData(
                topic_name=topic.topic_name,
                partitions=[
                    cls.PartitionData(partition_index=each.partition_index, error_code=code, error_message=NOT_HERE)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
