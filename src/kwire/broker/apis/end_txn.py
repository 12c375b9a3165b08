"""EndTxn (api key 26), versions 0 to 5: commit or abort a transaction.

    2  PRODUCER_FENCED (before: INVALID_PRODUCER_EPOCH)    4  TRANSACTION_ABORTABLE (KIP-890)
    5  transaction version 2: the response has the producer id and epoch for the next transaction

Source: kafka.server.KafkaApis.handleEndTxnRequest.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.transactions import ProducerIdAndEpoch
from kwire.errors import BrokerError
from kwire.internal_topics.names import TRANSACTIONS_TOPIC
from kwire.messages import EndTxnRequest, EndTxnResponse
from kwire.protocol.error_codes import ErrorCode, refusal

PRODUCER_FENCED_VERSION = 2
EPOCH_BUMP_VERSION = 5


def handle(node: Node, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    """Complete the transaction."""
    node.authorize(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    node.check_coordinator(TRANSACTIONS_TOPIC, request.transactional_id)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    client_transaction_version = 2 if context.api_version >= EPOCH_BUMP_VERSION else 0
    try:
        next_producer = node.transactions.end(
            request.transactional_id, producer, request.committed, client_transaction_version
        )
    except BrokerError as error:
        if error.code == ErrorCode.PRODUCER_FENCED and context.api_version < PRODUCER_FENCED_VERSION:
            raise refusal(ErrorCode.INVALID_PRODUCER_EPOCH, error.what) from error
        raise
    return EndTxnResponse(producer_id=next_producer.producer_id, producer_epoch=next_producer.producer_epoch)
