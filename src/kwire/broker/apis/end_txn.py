"""EndTxn (api key 26), versions 0 to 5: commit or abort.

    2  PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before    4  TRANSACTION_ABORTABLE may come (KIP-890)
    5  transaction version 2: the answer has the producer's id and epoch for its next transaction

Source: kafka.server.KafkaApis.handleEndTxnRequest.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.transactions import ProducerIdAndEpoch
from kwire.errors import BrokerError
from kwire.messages import EndTxnRequest, EndTxnResponse
from kwire.protocol.error_codes import ErrorCode, refusal

FENCED_KNOWN_FROM = 2
BUMPING_FROM = 5


def handle(node: Node, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    if not node.may(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        raise refusal(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"no access to transactional id {request.transactional_id}"
        )
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    client_transaction_version = 2 if context.api_version >= BUMPING_FROM else 0
    try:
        following = node.transactions.end(
            request.transactional_id, producer, request.committed, client_transaction_version
        )
    except BrokerError as error:
        if error.code == ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_KNOWN_FROM:
            raise refusal(ErrorCode.INVALID_PRODUCER_EPOCH, error.what) from error
        raise
    return EndTxnResponse(producer_id=following.producer_id, producer_epoch=following.producer_epoch)
