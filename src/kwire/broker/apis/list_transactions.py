"""ListTransactions (api key 66), versions 0 to 2: list transactional ids by state, producer id, duration and name.

    1  minimum duration in milliseconds (KIP-994)    2  pattern that the transactional id must match (KIP-1152)

A pattern that is invalid or too expensive to match is INVALID_REGULAR_EXPRESSION.

Source: kafka.server.KafkaApis.handleListTransactionsRequest, TransactionStateManager.listTransactionStates.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.groups.topic_regex import TopicRegex
from kwire.broker.node import Node
from kwire.broker.transactions import TransactionState
from kwire.internal_topics.names import TRANSACTIONS_TOPIC
from kwire.messages import ListTransactionsRequest, ListTransactionsResponse

STATES = {state.label: state for state in TransactionState}


def handle(node: Node, context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the matching transactions that the client may describe. Raises BrokerError for an invalid pattern."""
    states = {STATES[name] for name in request.state_filters if name in STATES}
    producer_ids = set(request.producer_id_filters)
    pattern = None
    if request.transactional_id_pattern:
        names = "".join(transaction.transactional_id for transaction in node.transactions)
        pattern = TopicRegex(request.transactional_id_pattern, frozenset(names))
    now_ms = node.clock.now_ms()
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in STATES],
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state,
            )
            for transaction in node.transactions
            if node.coordinates(TRANSACTIONS_TOPIC, transaction.transactional_id)
            and node.may(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id)
            and (not producer_ids or transaction.producer_id in producer_ids)
            and (not request.state_filters or transaction.status in states)
            and (request.duration_filter < 0 or now_ms - transaction.start_timestamp > request.duration_filter)
            and (pattern is None or pattern.matches(transaction.transactional_id))
        ],
    )
