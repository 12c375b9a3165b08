"""DescribeCluster (api key 60), versions 0 to 2: brokers, controller and cluster id.

    1  endpoint type    2  fenced brokers (KIP-1073)

Source: kafka.server.KafkaApis.handleDescribeCluster 3.9.1; KIP-700, KIP-919.
"""

from __future__ import annotations

from kwire.broker.apis.metadata import CLUSTER_OPERATIONS
from kwire.broker.authorization import CLUSTER, NO_OPERATIONS, Operation, ResourceType, operations_mask
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import DescribeClusterRequest, DescribeClusterResponse
from kwire.protocol.error_codes import ErrorCode, refusal

BROKERS, CONTROLLERS = 1, 2


def handle(node: Node, context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the cluster, with the endpoints on the client's listener."""
    if context.api_version >= 1 and request.endpoint_type not in (BROKERS, CONTROLLERS):
        what = f"Unsupported endpoint type {request.endpoint_type}"
        raise refusal(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, what)
    if request.endpoint_type == CONTROLLERS:
        what = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        raise refusal(ErrorCode.MISMATCHED_ENDPOINT_TYPE, what)
    operations = NO_OPERATIONS
    if request.include_cluster_authorized_operations:
        operations = operations_mask(
            [op for op in CLUSTER_OPERATIONS if node.may(context, op, ResourceType.CLUSTER, CLUSTER)]
            if node.may(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
            else []
        )
    members = node.members
    shown = members.all if request.include_fenced_brokers else members.running
    brokers = []
    for each in shown.values():
        host, port = each.endpoint(context.listener)
        brokers.append(
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=each.node_id,
                host=host,
                port=port,
                rack=each.rack,
                is_fenced=each.node_id not in members.running,
            )
        )
    return DescribeClusterResponse(
        cluster_id=node.cluster_id,
        controller_id=members.controller,
        brokers=brokers,
        cluster_authorized_operations=operations,
    )
