"""ListTransactions (api key 66), versions 0 to 2: transactional ids by state, producer id, age and name.

    1  only those that run longer than so many milliseconds (KIP-994)
    2  only those whose transactional id matches a regular expression as a whole (KIP-1152)

Kafka reads the expression as RE2, here Python's re reads it: what both know is the same.
Source: kafka.server.KafkaApis.handleListTransactionsRequest, TransactionStateManager.listTransactionStates.
"""

from __future__ import annotations

import re
from typing import Any

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.transactions import TransactionState
from kwire.messages import ListTransactionsResponse
from kwire.protocol.error_codes import ErrorCode, refusal

API_KEY = 66
VERSIONS = (0, 2)

STATES = {state.label: state for state in TransactionState}


def handle(node: Node, context: RequestContext, request: Any) -> ListTransactionsResponse:
    states = {STATES[name] for name in request.state_filters if name in STATES}
    producer_ids = set(request.producer_id_filters)
    try:
        pattern = re.compile(request.transactional_id_pattern or "")
    except re.error as error:
        what = f"Transaction ID pattern {request.transactional_id_pattern!r} is not valid: {error}"
        raise refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, what) from None
    now_ms = node.clock.now_ms()
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in STATES],
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.label,
            )
            for transaction in node.transactions
            if node.may(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id)
            and (not producer_ids or transaction.producer_id in producer_ids)
            and (not request.state_filters or transaction.state in states)
            and (request.duration_filter < 0 or now_ms - transaction.start_time_ms > request.duration_filter)
            and (not pattern.pattern or pattern.fullmatch(transaction.transactional_id))
        ],
    )
