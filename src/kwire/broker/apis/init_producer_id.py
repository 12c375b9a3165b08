"""InitProducerId (api key 22), versions 0 to 5: a producer's id and epoch.

    3  the producer's id and epoch so far (KIP-360)    4  PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before
    5  TRANSACTION_ABORTABLE may come (KIP-890)

Version 6 (two-phase commit, KIP-939) is left out: no release of Kafka has it enabled.
Source: kafka.server.KafkaApis.handleInitProducerIdRequest.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.transactions import NO_PRODUCER, ProducerIdAndEpoch
from kwire.errors import BrokerError
from kwire.messages import InitProducerIdRequest, InitProducerIdResponse
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records.attributes import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

FENCED_KNOWN_FROM = 4


def handle(node: Node, context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    check_access(node, context, request.transactional_id)
    given = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if (given.producer_id == NO_PRODUCER_ID) != (given.producer_epoch == NO_PRODUCER_EPOCH):
        raise refusal(ErrorCode.INVALID_REQUEST, "producer id and epoch come together or not at all")
    try:
        producer = node.transactions.init_producer_id(
            request.transactional_id, request.transaction_timeout_ms, None if given == NO_PRODUCER else given
        )
    except BrokerError as error:
        if error.code == ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_KNOWN_FROM:
            raise refusal(ErrorCode.INVALID_PRODUCER_EPOCH, error.what) from error
        raise
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)


def check_access(node: Node, context: RequestContext, transactional_id: str | None) -> None:
    """Raises BrokerError. Who may write to some topic may do so idempotently, without a transactional id (KIP-679)."""
    if transactional_id is not None:
        if not node.may(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            raise refusal(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"no access to transactional id {transactional_id}"
            )
    elif not node.may(context, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER):
        assert node.security is not None  # who else said no
        if not node.security.may_on_any(context, Operation.WRITE, ResourceType.TOPIC):
            raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no access to any topic")


def error_response(request: InitProducerIdRequest, code: ErrorCode, message: str) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH)
