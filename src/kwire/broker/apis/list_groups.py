"""ListGroups (api key 16), versions 0 to 5: list groups.

    1  throttle time    4  states, filter by state (KIP-518)    5  types, filter by type (KIP-848)

Source: kafka.server.KafkaApis.handleListGroupsRequest 3.9.1.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import ListGroupsRequest, ListGroupsResponse


def handle(node: Node, context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """List the groups that the client may describe."""
    sees_all = node.may(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
    return ListGroupsResponse(
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=group_id, protocol_type=protocol_type, group_state=state, group_type=kind
            )
            for group_id, protocol_type, state, kind in node.groups.listed(request.states_filter, request.types_filter)
            if node.coordinates(GROUPS_TOPIC, group_id)
            and (sees_all or node.may(context, Operation.DESCRIBE, ResourceType.GROUP, group_id))
        ]
    )
