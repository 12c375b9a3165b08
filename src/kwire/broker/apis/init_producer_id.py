"""InitProducerId (api key 22), versions 0 to 5: allocate a producer id and epoch.

    3  current producer id and epoch (KIP-360)    4  PRODUCER_FENCED (before: INVALID_PRODUCER_EPOCH)
    5  TRANSACTION_ABORTABLE (KIP-890)    6  two-phase commit (KIP-939), with unstable.api.versions.enable only

Version 6 is unstable in Kafka 4.4. Two-phase commit needs transaction.two.phase.commit.enable and, with the authorizer,
TWO_PHASE_COMMIT on the transactional id; the transaction has no timeout then. Keeping a prepared transaction gets
UNSUPPORTED_VERSION, as in Kafka.

Source: kafka.server.KafkaApis.handleInitProducerIdRequest, TransactionCoordinator.handleInitProducerId 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.transactions import NO_PRODUCER, ProducerIdAndEpoch, TwoPhase
from kwire.errors import BrokerError
from kwire.internal_topics.names import TRANSACTIONS_TOPIC
from kwire.messages import InitProducerIdRequest, InitProducerIdResponse
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records.attributes import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

PRODUCER_FENCED_VERSION = 4


def handle(node: Node, context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Allocate a producer id and epoch."""
    check_access(node, context, request)
    if request.transactional_id:
        node.check_coordinator(TRANSACTIONS_TOPIC, request.transactional_id)
    current = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if (current.producer_id == NO_PRODUCER_ID) != (current.producer_epoch == NO_PRODUCER_EPOCH):
        raise refusal(ErrorCode.INVALID_REQUEST, "producer id and epoch must be both set or both unset")
    try:
        producer = node.transactions.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            None if current == NO_PRODUCER else current,
            two_phase=TwoPhase(request.enable2_pc, request.keep_prepared_txn),
        )
    except BrokerError as error:
        if error.code == ErrorCode.PRODUCER_FENCED and context.api_version < PRODUCER_FENCED_VERSION:
            raise refusal(ErrorCode.INVALID_PRODUCER_EPOCH, error.what) from error
        raise
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)


def check_access(node: Node, context: RequestContext, request: InitProducerIdRequest) -> None:
    """Raise BrokerError unless authorized; WRITE on any topic implies idempotent writes (KIP-679)."""
    if request.transactional_id is not None:
        node.authorize(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        if request.enable2_pc:
            node.authorize(context, Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not (
        node.may(context, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER)
        or node.security.may_on_any(context, Operation.WRITE, ResourceType.TOPIC)
    ):
        raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


def error_response(request: InitProducerIdRequest, code: ErrorCode, message: str) -> InitProducerIdResponse:
    """Build an error response, which has no producer epoch."""
    return InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH)
