"""UnregisterController (api key 94), version 0: remove the registration of a controller that left the cluster.

Such controllers are in directories of Kafka 4.4 or later (metadata.version 33); others, and new brokers, get
UNSUPPORTED_VERSION, as in Kafka. The active controller is refused.

Source: org.apache.kafka.controller.QuorumController.unregisterController, ClusterControlManager 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.internal_topics.metadata_versions import METADATA_VERSION
from kwire.messages import UnregisterControllerRequest, UnregisterControllerResponse
from kwire.protocol.error_codes import ErrorCode, refusal

LOWEST_METADATA_VERSION = 33


def handle(node: Node, context: RequestContext, request: UnregisterControllerRequest) -> UnregisterControllerResponse:
    """Unregister another controller. Raises BrokerError."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    if request.controller_id == node.members.controller:
        raise refusal(ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if node.features.finalized().get(METADATA_VERSION, 0) < LOWEST_METADATA_VERSION:
        what = "The current MetadataVersion is too old to support controller unregistration."
        raise refusal(ErrorCode.UNSUPPORTED_VERSION, what)
    if request.controller_id not in node.cluster.controllers:
        what = f"Controller ID {request.controller_id} is not currently registered."
        raise refusal(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, what)
    node.controller.unregister_controller(request.controller_id)
    return UnregisterControllerResponse(error_message="")
