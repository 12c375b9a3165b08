"""DescribeQuorum (api key 55), versions 0 to 2: the voters of the metadata log and their progress (KIP-595).

    1  fetch timestamps (KIP-836)    2  directory ids, error messages and voter endpoints (KIP-853)

All nodes are voters, and the active controller is the leader. They have no controller listeners; the endpoints are
those of their first listeners. A request for any partition other than __cluster_metadata-0 gets
UNKNOWN_TOPIC_OR_PARTITION for all its partitions. The directory id is zero, as for every static voter.

Source: org.apache.kafka.raft.KafkaRaftClient.handleDescribeQuorumRequest, DescribeQuorumRequest 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.messages import DescribeQuorumRequest, DescribeQuorumResponse
from kwire.protocol.error_codes import ErrorCode

NODES_VERSION = 2
NOT_HOSTED = "This server does not host this topic-partition."


def handle(node: Node, context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the quorum of the metadata log."""
    node.authorize(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
    requested = [(topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions]
    if requested != [(METADATA_TOPIC, 0)]:
        return unknown(request)
    cls = DescribeQuorumResponse
    now_ms, log = node.clock.now_ms(), node.metadata_log
    voters = [
        cls.ReplicaState(
            replica_id=node_id,
            log_end_offset=log.last_offset + 1,
            last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )
        if node_id in node.members.running
        else cls.ReplicaState(replica_id=node_id, log_end_offset=-1)
        for node_id in node.members.all
    ]
    partition = cls.PartitionData(
        partition_index=0,
        leader_id=node.members.controller,
        leader_epoch=log.leader_epoch,
        high_watermark=log.last_offset + 1,
        current_voters=voters,
    )
    nodes = []
    for member in node.members.all.values():
        name, (host, port) = next(iter(member.endpoints.items()))
        nodes.append(cls.Node(node_id=member.node_id, listeners=[cls.Listener(name=name, host=host, port=port)]))
    return cls(
        topics=[cls.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=nodes if context.api_version >= NODES_VERSION else [],
    )


def unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Build the response to a request for other partitions."""
    cls = DescribeQuorumResponse
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return cls(
        topics=[
            cls.TopicData(
                topic_name=topic.topic_name,
                partitions=[
                    cls.PartitionData(partition_index=each.partition_index, error_code=code, error_message=NOT_HOSTED)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
