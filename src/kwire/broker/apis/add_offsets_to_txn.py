"""AddOffsetsToTxn (api key 25), versions 0 to 4: add a consumer group's offsets to a transaction.

    2  PRODUCER_FENCED (before: INVALID_PRODUCER_EPOCH)    4  TRANSACTION_ABORTABLE (KIP-890)

The group's partition of `__consumer_offsets` becomes part of the transaction, so its markers are written there too.

Source: kafka.server.KafkaApis.handleAddOffsetsToTxnRequest.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.transactions import ProducerIdAndEpoch
from kwire.errors import BrokerError
from kwire.internal_topics.names import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from kwire.internal_topics.placement import partition_for
from kwire.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kwire.protocol.error_codes import ErrorCode, refusal

PRODUCER_FENCED_VERSION = 2


def handle(node: Node, context: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """Add the group's partition of `__consumer_offsets` to the transaction."""
    node.authorize(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    node.authorize(context, Operation.READ, ResourceType.GROUP, request.group_id)
    node.check_coordinator(TRANSACTIONS_TOPIC, request.transactional_id)
    offsets = node.topic_creation.create_missing(GROUPS_TOPIC)
    partition = (GROUPS_TOPIC, partition_for(request.group_id, len(offsets.partitions)))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        node.transactions.add_partitions(request.transactional_id, producer, frozenset({partition}))
    except BrokerError as error:
        if error.code == ErrorCode.PRODUCER_FENCED and context.api_version < PRODUCER_FENCED_VERSION:
            raise refusal(ErrorCode.INVALID_PRODUCER_EPOCH, error.what) from error
        raise
    return AddOffsetsToTxnResponse()
