"""AddPartitionsToTxn (api key 24), versions 0 to 5: a transaction will write to these partitions.

    2  PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before    4  many transactions at once, and asking only whether
    5  TRANSACTION_ABORTABLE may come (KIP-890)                      partitions are part of them: for other brokers

One partition that does not exist refuses all of its transaction: the others are OPERATION_NOT_ATTEMPTED.
Source: kafka.server.KafkaApis.handleAddPartitionsToTxnRequest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.transactions import ProducerIdAndEpoch, TopicPartition
from kwire.errors import BrokerError
from kwire.messages import AddPartitionsToTxnResponse
from kwire.protocol.error_codes import ErrorCode

API_KEY = 24
VERSIONS = (0, 5)

FENCED_KNOWN_FROM = 2
BATCHED_FROM = 4


def handle(node: Node, context: RequestContext, request: Any) -> AddPartitionsToTxnResponse:
    if context.api_version < BATCHED_FROM:
        producer = ProducerIdAndEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        results = add(node, request.v3_and_below_transactional_id, producer, request.v3_and_below_topics, False, 0)
        if context.api_version < FENCED_KNOWN_FROM:
            fenced, known = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH
            results = {partition: known if code == fenced else code for partition, code in results.items()}
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=by_topic(results))
    answered = []
    for transaction in request.transactions:
        producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
        results = add(node, transaction.transactional_id, producer, transaction.topics, transaction.verify_only, 2)
        answered.append(
            AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=by_topic(results)
            )
        )
    return AddPartitionsToTxnResponse(results_by_transaction=answered)


def add(
    node: Node,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    topics: Any,
    verify_only: bool,
    client_transaction_version: int,
) -> Mapping[TopicPartition, ErrorCode]:
    """The result for each partition of one transaction."""
    partitions = frozenset((topic.name, index) for topic in topics for index in topic.partitions)
    unknown = {(name, index) for name, index in partitions if node.topics.partition(name, index) is None}
    if unknown:
        return {
            partition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if partition in unknown
            else ErrorCode.OPERATION_NOT_ATTEMPTED
            for partition in partitions
        }
    results = dict.fromkeys(partitions, ErrorCode.NONE)
    try:
        if verify_only:
            missing = node.transactions.missing_partitions(transactional_id, producer, partitions)
            results |= dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE)
        else:
            node.transactions.add_partitions(transactional_id, producer, partitions, client_transaction_version)
    except BrokerError as error:
        return dict.fromkeys(partitions, ErrorCode(error.code))
    return results


def by_topic(results: Mapping[TopicPartition, ErrorCode]) -> list[Any]:
    """Results as the response has them."""
    topics: dict[str, Any] = {}
    for (name, index), code in sorted(results.items()):
        topic = topics.setdefault(
            name, AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(name=name, results_by_partition=[])
        )
        topic.results_by_partition.append(
            AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=code
            )
        )
    return list(topics.values())


def refuse(request: Any, code: ErrorCode, what: str) -> AddPartitionsToTxnResponse:
    partitions = ((topic.name, index) for topic in request.v3_and_below_topics for index in topic.partitions)
    return AddPartitionsToTxnResponse(
        error_code=code, results_by_topic_v3_and_below=by_topic(dict.fromkeys(partitions, code))
    )
