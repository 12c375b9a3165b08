"""AddPartitionsToTxn (api key 24), versions 0 to 5: add partitions to a transaction.

    2  PRODUCER_FENCED (before: INVALID_PRODUCER_EPOCH)    4  between brokers: several transactions, verify_only
    5  TRANSACTION_ABORTABLE (KIP-890)

If one partition of a transaction does not exist, none is added: the others have OPERATION_NOT_ATTEMPTED.

Source: kafka.server.KafkaApis.handleAddPartitionsToTxnRequest.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.transactions import ProducerIdAndEpoch
from kwire.errors import BrokerError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.names import COORDINATOR_TOPICS, TRANSACTIONS_TOPIC
from kwire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kwire.messages.add_partitions_to_txn_request import AddPartitionsToTxnTopic
from kwire.messages.add_partitions_to_txn_response import AddPartitionsToTxnTopicResult
from kwire.protocol.error_codes import ErrorCode

PRODUCER_FENCED_VERSION = 2
BATCHED_VERSION = 4

Results = dict[TopicPartition, ErrorCode]


def handle(node: Node, context: RequestContext, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    """Add or verify the partitions of every transaction in the request."""
    if context.api_version < BATCHED_VERSION:
        producer = ProducerIdAndEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        transactional_id = request.v3_and_below_transactional_id
        partitions = topic_partitions(request.v3_and_below_topics)
        results = check_access(node, context, transactional_id, partitions)
        results = results or add(node, transactional_id, producer, partitions, False, 0)
        if context.api_version < PRODUCER_FENCED_VERSION:
            fenced, known = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH
            results = {partition: known if code == fenced else code for partition, code in results.items()}
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=by_topic(results))
    node.authorize(context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER)
    transactions = []
    for each in request.transactions:
        producer = ProducerIdAndEpoch(each.producer_id, each.producer_epoch)
        results = add(node, each.transactional_id, producer, topic_partitions(each.topics), each.verify_only, 2)
        transactions.append(
            AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=by_topic(results)
            )
        )
    return AddPartitionsToTxnResponse(results_by_transaction=transactions)


def topic_partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> frozenset[TopicPartition]:
    """Return the partitions of a request's topics."""
    return frozenset((topic.name, index) for topic in topics for index in topic.partitions)


def check_access(
    node: Node, context: RequestContext, transactional_id: str, partitions: frozenset[TopicPartition]
) -> Results:
    """Return the errors that prevent adding partitions, empty if authorized. Internal topics are never writable."""
    if not node.may(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    unauthorized = {
        name
        for name in {name for name, _ in partitions}
        if name in COORDINATOR_TOPICS or not node.may(context, Operation.WRITE, ResourceType.TOPIC, name)
    }
    codes = {True: ErrorCode.TOPIC_AUTHORIZATION_FAILED, False: ErrorCode.OPERATION_NOT_ATTEMPTED}
    return {(name, index): codes[name in unauthorized] for name, index in partitions} if unauthorized else {}


def add(
    node: Node,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: frozenset[TopicPartition],
    verify_only: bool,
    client_transaction_version: int,
) -> Results:
    """Add or verify the partitions of one transaction; returns the result of each."""
    unknown = {(name, index) for name, index in partitions if node.topics.partition(name, index) is None}
    if unknown:
        codes = {True: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False: ErrorCode.OPERATION_NOT_ATTEMPTED}
        return {partition: codes[partition in unknown] for partition in partitions}
    results = dict.fromkeys(partitions, ErrorCode.NONE)
    try:
        node.check_coordinator(TRANSACTIONS_TOPIC, transactional_id)
        if verify_only:
            missing = node.transactions.missing_partitions(transactional_id, producer, partitions)
            results |= dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE)
        else:
            node.transactions.add_partitions(transactional_id, producer, partitions, client_transaction_version)
    except BrokerError as error:
        return dict.fromkeys(partitions, ErrorCode(error.code))
    return results


def by_topic(results: Results) -> list[AddPartitionsToTxnTopicResult]:
    """Group results by topic for the response."""
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, index), code in sorted(results.items()):
        topic = topics.setdefault(name, AddPartitionsToTxnTopicResult(name=name, results_by_partition=[]))
        topic.results_by_partition.append(
            AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=code
            )
        )
    return list(topics.values())


def error_response(request: AddPartitionsToTxnRequest, code: ErrorCode, message: str) -> AddPartitionsToTxnResponse:
    """Build a response with the same error for every partition."""
    results = dict.fromkeys(topic_partitions(request.v3_and_below_topics), code)
    return AddPartitionsToTxnResponse(error_code=code, results_by_topic_v3_and_below=by_topic(results))
