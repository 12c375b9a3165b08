"""RemoveRaftVoter (api key 81), version 0: remove a voter from the quorum of the metadata log (KIP-853).

The quorum of this broker does not change. With static voters, as new brokers have them (`kraft.version` 0), the
response is UNSUPPORTED_VERSION, as in Kafka. In a directory with `kraft.version` 1, unknown voters and the last one get
VOTER_NOT_FOUND, as in Kafka, others INVALID_REQUEST.

Source: org.apache.kafka.raft.KafkaRaftClient.handleRemoveVoterRequest, RemoveVoterHandler 4.4.0.
"""

from __future__ import annotations

from kwire.broker.apis.steps.voters import ReplicaKey, check_request, check_static_voters, is_voter, voter_keys
from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Refuse to remove a voter. Raises BrokerError."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    voter = ReplicaKey(request.voter_id, request.voter_directory_id)
    check_request(node, request.cluster_id, voter, "Remove")
    check_static_voters(node, "removing")
    if not is_voter(node, voter) or len(node.cluster.voters) == 1:
        what = f"Cannot remove voter {voter} from the set of voters {voter_keys(node)}"
        raise refusal(ErrorCode.VOTER_NOT_FOUND, what)
    raise refusal(ErrorCode.INVALID_REQUEST, f"{voter} stays a voter: this broker does not change the quorum")
