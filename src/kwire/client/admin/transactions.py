"""Transactions of a cluster by its admin APIs, and those that hang (KIP-664).

    ListTransactions, DescribeTransactions   transactional ids, from their coordinators
    ListOffsets, DescribeProducers           open transactions of partitions, from their leaders
    WriteTxnMarkers                          ends a transaction in one partition

A transaction hangs if a partition has it open and no coordinator will end it: the last stable offset stays at its
start, and read_committed consumers wait there forever. Kafka before 3.0 has no such APIs.
Source: KIP-664; org.apache.kafka.tools.TransactionsCommand (find-hanging, abort).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from kwire.client.admin.requests import AdminRequests
from kwire.client.client import LATEST_TIMESTAMP, Client, raise_for
from kwire.errors import BrokerError, OptionError
from kwire.identifiers import TopicPartition, by_topic
from kwire.internal_topics.transactions_state import Transaction, TransactionsState, TransactionState
from kwire.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kwire.protocol.error_codes import ErrorCode

__all__ = [
    "HangingTransaction",
    "abort_transaction",
    "describe_transactions",
    "find_hanging",
    "has_transactional_id",
]

MAX_TIMEOUT_MS = 900_000  # Kafka's default of transaction.max.timeout.ms
MAX_TIMEOUT = "transaction.max.timeout.ms"
BROKER_RESOURCE = 4
STATES = {state.label: state for state in TransactionState}


class HangingTransaction(NamedTuple):
    """An open transaction of a producer in one partition that no coordinator will end.

    start_offset: of its first record. last_timestamp: of its last record, in ms. coordinator_epoch: of the producer's
    last marker, -1 without. transactional_id: None if no coordinator knows the producer.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp: int
    transactional_id: str | None


def describe_transactions(client: Client) -> tuple[TransactionsState, AdminRequests]:
    """Return all transactional ids that the account may describe. Raises BrokerError, ConnectionFailed."""
    requests, state = AdminRequests(), TransactionsState()

    def ask(node_id: int) -> None:
        listed = requests.one(client, ListTransactionsRequest(), ListTransactionsResponse, node_id=node_id)
        if listed.error_code:
            requests.without(f"transactional ids of broker {node_id}", ErrorCode(listed.error_code))
            return
        names = [each.transactional_id for each in listed.transaction_states]
        if not names:
            return
        request = DescribeTransactionsRequest(transactional_ids=names)
        described = requests.one(client, request, DescribeTransactionsResponse, node_id=node_id)
        for each in described.transaction_states:
            if each.error_code:
                requests.without(f"transactional id {each.transactional_id!r}", ErrorCode(each.error_code))
                continue
            state.transactions[each.transactional_id] = Transaction(
                transactional_id=each.transactional_id,
                status=STATES.get(each.transaction_state, -1),
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                timeout_ms=each.transaction_timeout_ms,
                start_timestamp=each.transaction_start_time_ms,
                partitions={topic.topic: tuple(sorted(topic.partitions)) for topic in each.topics},
            )

    requests.every(client, "transactional ids", ask)
    return state, requests


def has_transactional_id(client: Client, name: str) -> bool:
    """Return whether the coordinator of a transactional id knows it. Raises BrokerError, ConnectionFailed."""
    request = DescribeTransactionsRequest(transactional_ids=[name])

    def attempt() -> bool:
        connection = client.connection(client.coordinator(name))
        for each in connection.request(request, DescribeTransactionsResponse).transaction_states:
            if each.transactional_id == name:
                if each.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    return False
                raise_for(each.error_code, f"transactional id {name!r}")
                return True
        what = f"transactional id {name!r}: missing in the DescribeTransactions response"
        raise BrokerError(what, ErrorCode.UNKNOWN_SERVER_ERROR)

    return client.retry(attempt)


def find_hanging(client: Client, keys: Iterable[TopicPartition]) -> tuple[list[HangingTransaction], AdminRequests]:
    """Return the hanging transactions of partitions, by partition and start offset.

    Transactions younger than the cluster's transaction.max.timeout.ms (15 minutes, if the account may not see it) are
    not among them: their coordinator may still end them. Raises BrokerError, ConnectionFailed, UnsupportedVersion.
    """
    keys = sorted(keys)
    ends = client.list_offsets(dict.fromkeys(keys, LATEST_TIMESTAMP), isolation="read_uncommitted")
    stable = client.list_offsets(dict.fromkeys(keys, LATEST_TIMESTAMP), isolation="read_committed")
    requests = AdminRequests(["ListOffsets"])
    oldest = int(time.time() * 1000) - _max_timeout(client, requests)
    transactions = [
        each
        for key in keys
        if stable[key].offset < ends[key].offset
        for each in _open_transactions(client, requests, key)
        if each.last_timestamp <= oldest
    ]
    if not transactions:
        return [], requests
    state, described = describe_transactions(client)
    for what in described.passing:  # its transactions would look as if no coordinator knew them
        raise BrokerError(f"{what}: {described.unseen[what]}; try again later", ErrorCode.COORDINATOR_NOT_AVAILABLE)
    requests.apis += described.apis
    requests.unseen.update(described.unseen)
    requests.passing.update(described.passing)
    by_producer = {each.producer_id: each for each in state.transactions.values()}
    hanging = []
    for each in transactions:
        known = by_producer.get(each.producer_id)
        if known is None or not (known.is_open and (each.topic, each.partition) in known.topic_partitions):
            hanging.append(each._replace(transactional_id=None if known is None else known.transactional_id))
    return sorted(hanging), requests


def _open_transactions(client: Client, requests: AdminRequests, key: TopicPartition) -> list[HangingTransaction]:
    topics = [
        DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=partitions)
        for topic, partitions in by_topic([key]).items()
    ]
    request = DescribeProducersRequest(topics=topics)
    requests.used(request)
    response = client.retry(lambda: client.connection(client.leader(key)).request(request, DescribeProducersResponse))
    transactions = []
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code:
                requests.without(f"producers of {key[0]}-{key[1]}", ErrorCode(partition.error_code))
                continue
            transactions += [
                HangingTransaction(
                    *key,
                    producer_id=each.producer_id,
                    producer_epoch=each.producer_epoch,
                    coordinator_epoch=each.coordinator_epoch,
                    start_offset=each.current_txn_start_offset,
                    last_timestamp=each.last_timestamp,
                    transactional_id=None,
                )
                for each in partition.active_producers
                if each.current_txn_start_offset >= 0
            ]
    return transactions


def _max_timeout(client: Client, requests: AdminRequests) -> int:
    """Return transaction.max.timeout.ms of a broker; Kafka's default if the account may not see it."""
    timeouts: list[int] = []

    def ask(node_id: int) -> None:
        if timeouts:
            return
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name=str(node_id), configuration_keys=[MAX_TIMEOUT]
        )
        request = DescribeConfigsRequest(resources=[resource])
        response = requests.one(client, request, DescribeConfigsResponse, node_id=node_id)
        values = [each.value for result in response.results for each in result.configs if each.name == MAX_TIMEOUT]
        timeouts.extend(int(value) for value in values if value is not None and value.isdecimal())

    requests.every(client, "configs", ask)
    return timeouts[0] if timeouts else MAX_TIMEOUT_MS


def abort_transaction(client: Client, hanging: HangingTransaction) -> None:
    """Write an abort marker for a hanging transaction to its partition, as `kafka-transactions abort` does.

    Requires ALTER or CLUSTER_ACTION on the cluster. Raises OptionError if the transaction is no longer open,
    BrokerError, ConnectionFailed.
    """
    key = hanging.topic, hanging.partition
    now = {
        (each.producer_id, each.producer_epoch, each.start_offset)
        for each in _open_transactions(client, AdminRequests(), key)
    }
    if (hanging.producer_id, hanging.producer_epoch, hanging.start_offset) not in now:
        raise OptionError(f"{key[0]}-{key[1]}: the transaction of producer {hanging.producer_id} has ended meanwhile")
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=hanging.producer_id,
        producer_epoch=hanging.producer_epoch,
        transaction_result=False,
        coordinator_epoch=max(hanging.coordinator_epoch, 0),
        topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=key[0], partition_indexes=[key[1]])],
    )
    request = WriteTxnMarkersRequest(markers=[marker])

    def attempt() -> None:
        response = client.connection(client.leader(key)).request(request, WriteTxnMarkersResponse)
        for result in response.markers:
            for topic in result.topics:
                for each in topic.partitions:
                    raise_for(each.error_code, f"{key[0]}-{key[1]}: marker of producer {hanging.producer_id}")

    try:
        client.retry(attempt)
    except BrokerError as error:
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise BrokerError(f"{error.what}; it takes ALTER or CLUSTER_ACTION on the cluster", error.code) from error
        raise
