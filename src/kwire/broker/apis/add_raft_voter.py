"""AddRaftVoter (api key 80), versions 0 and 1: add a voter to the quorum of the metadata log (KIP-853).

    1  acknowledgement before the change is committed

The quorum of this broker does not change. With static voters, as new brokers have them (`kraft.version` 0), the
response is UNSUPPORTED_VERSION, as in Kafka. In a directory with `kraft.version` 1, no new voter ever catches up with
the log, because brokers do not replicate it: the response is REQUEST_TIMED_OUT.

Source: org.apache.kafka.raft.KafkaRaftClient.handleAddVoterRequest, AddVoterHandler 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.steps.voters import ReplicaKey, check_request, check_static_voters, voter_keys
from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.network.listeners import CONTROLLER_NAMES
from kwire.broker.node import Node
from kwire.messages import AddRaftVoterRequest, AddRaftVoterResponse
from kwire.protocol.error_codes import ErrorCode, refusal

DEFAULT_LISTENER = "CONTROLLER"
"""The name of the controllers' listener where no config has it."""


def handle(node: Node, context: RequestContext, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Refuse to add a voter. Raises BrokerError."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    voter = ReplicaKey(request.voter_id, request.voter_directory_id)
    check_request(node, request.cluster_id, voter, "Add")
    names = node.settings.others.get(CONTROLLER_NAMES, "")
    listener = names.partition(",")[0].strip().upper() or DEFAULT_LISTENER
    if listener not in [each.name.upper() for each in request.listeners]:
        endpoints = (
            f"ListenerName({each.name.upper()})={each.host}/<unresolved>:{each.port}" for each in request.listeners
        )
        what = f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{', '.join(endpoints)}}}))"
        raise refusal(ErrorCode.INVALID_REQUEST, f"{what} for the default listener ListenerName({listener})")
    check_static_voters(node, "adding")
    if voter.node_id in node.cluster.voters:
        what = f"The voter id for {voter} is already part of the set of voters {voter_keys(node)}."
        raise refusal(ErrorCode.DUPLICATE_VOTER, what)
    raise refusal(ErrorCode.REQUEST_TIMED_OUT, f"Aborted add voter operation for {voter} since it is lagging behind")
