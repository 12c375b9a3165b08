"""DescribeTransactions (api key 65), version 0: the state of transactional ids (KIP-664).

Source: kafka.server.KafkaApis.handleDescribeTransactionsRequest, TransactionCoordinator.handleDescribeTransactions.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.names import TRANSACTIONS_TOPIC
from kwire.internal_topics.transactions_state import Transaction
from kwire.messages import DescribeTransactionsRequest, DescribeTransactionsResponse
from kwire.messages.describe_transactions_response import TransactionState
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Describe each transactional id."""
    states = []
    for transactional_id in request.transactional_ids:
        if not node.may(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            states.append(failed(transactional_id, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            continue
        try:
            node.check_coordinator(TRANSACTIONS_TOPIC, transactional_id)
            states.append(describe(node, context, node.transactions.describe(transactional_id)))
        except BrokerError as error:
            states.append(failed(transactional_id, ErrorCode(error.code)))
    return DescribeTransactionsResponse(transaction_states=states)


def describe(node: Node, context: RequestContext, transaction: Transaction) -> TransactionState:
    """Describe one transaction, with the topics that the client may describe."""
    return TransactionState(
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_timestamp,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=list(indexes))
            for topic, indexes in transaction.partitions.items()
            if node.may(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)
        ],
    )


def failed(transactional_id: str, code: ErrorCode) -> TransactionState:
    """Build the result of a transactional id with an error."""
    return TransactionState(transactional_id=transactional_id, error_code=code)


def error_response(request: DescribeTransactionsRequest, code: ErrorCode, message: str) -> DescribeTransactionsResponse:
    """Build a response with the same error for every transactional id."""
    return DescribeTransactionsResponse(
        transaction_states=[failed(transactional_id, code) for transactional_id in request.transactional_ids]
    )
