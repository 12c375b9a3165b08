"""UnregisterBroker (api key 64), version 0: remove the registration of a broker that left the cluster.

Such brokers are in directories of clusters with several nodes. The broker's own id is refused: Kafka unregisters a
single node, which then has no partitions and cannot stop, until it is killed and restarted.

Source: org.apache.kafka.controller.ReplicationControlManager.unregisterBroker 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import UnregisterBrokerRequest, UnregisterBrokerResponse
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Unregister another broker. Raises BrokerError."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    if request.broker_id not in node.cluster.brokers:
        what = f"Broker ID {request.broker_id} is not currently registered"
        raise refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, what)
    if request.broker_id in node.members.all:
        single = node.members.is_single
        which = "this broker, the only one that is running" if single else "a node of this cluster"
        what = f"Broker ID {request.broker_id} is {which}; stop it instead"
        raise refusal(ErrorCode.INVALID_REQUEST, what)
    node.controller.unregister_broker(request.broker_id)
    return UnregisterBrokerResponse(error_message="")
