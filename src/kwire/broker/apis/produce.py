"""Produce (api key 0), versions 0 to 13: append records to partitions.

    0, 1  magic 0    2  magic 1, log append time    3  magic 2, transactions    5  log start offset    7  zstd
    8  error messages per record    9  flexible    12  transactions of KIP-890    13  topic ids

Records of every magic are accepted and converted to the topic's format (KIP-31). Each partition has its own error code.
A batch that was appended before (same producer id, epoch and sequence) gets the offsets of the first append. Batches
that are slow to validate, because they are large when decompressed or have to be recompressed, are validated in a
worker thread; records of other requests may be appended before them.

acks=0 has no response, so an error closes the connection. acks=1 and acks=all are equivalent, because all replicas
share one log; acks=all fails if the ISR is smaller than min.insync.replicas. A node that does not lead the partition
responds with NOT_LEADER_OR_FOLLOWER and, from version 10 on, the leader (KIP-951).

Source: kafka.server.KafkaApis.handleProduceRequest, ReplicaManager.appendToLocalLog 3.9.1.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import TYPE_CHECKING

from kwire.broker.apis.steps.current_leaders import current_leader, endpoints_of
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.network.throttling import QuotaType
from kwire.broker.node import Node
from kwire.broker.replication.members import Member
from kwire.broker.topics import Partition, Topic
from kwire.broker.transactions.admission import ClientSupport, admit, produce_error
from kwire.broker.transactions.metadata import ProducerIdAndEpoch
from kwire.errors import BrokerError, KwireError
from kwire.messages import ProduceRequest, ProduceResponse
from kwire.messages.produce_request import PartitionProduceData, TopicProduceData
from kwire.messages.produce_response import PartitionProduceResponse
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records.attributes import TRANSACTIONAL_FLAG
from kwire.records.format.append_error import RejectedRecords, TooMuchWork
from kwire.records.format.batch_header import ATTRIBUTES_POSITION, DEFAULT_HEADER, MAGIC_POSITION, PRODUCER_ID_POSITION

if TYPE_CHECKING:
    from kwire.log.writing.partition_writer import Prepared

    Work = Callable[[], Prepared]

LEADER_VERSION = 10
TOPIC_ID_VERSION = 13
ACKS_ALL, VALID_ACKS = -1, (-1, 0, 1)
WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors for which Kafka leaves the log start offset unset."""
LENGTH_BYTES = 4
"""Length prefix of the frame; not counted for quotas."""
PRODUCER = struct.Struct(">qh")
ADMIN_CLIENT = "__admin_client"
"""Client id that may write to internal topics."""


def handle(
    node: Node, context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse]:
    """Append to each partition; returns an awaitable if records have to be validated in a worker thread."""
    steps = append_all(node, context, request)
    try:
        work = next(steps)
    except StopIteration as done:
        response: ProduceResponse = done.value
        return response
    return finish(node, context, steps, work)


async def finish(
    node: Node, context: RequestContext, steps: Generator[Work, Prepared, ProduceResponse], work: Work
) -> ProduceResponse:
    """Run slow validation in worker threads and every other step on the broker's thread."""
    while True:
        try:
            prepared = await node.workers.run(context.peer, work)
        except KwireError as error:
            resume = functools.partial(steps.throw, error)
        else:
            resume = functools.partial(steps.send, prepared)
        try:
            work = resume()
        except StopIteration as done:
            response: ProduceResponse = done.value
            return response


def append_all(
    node: Node, context: RequestContext, request: ProduceRequest
) -> Generator[Work, Prepared, ProduceResponse]:
    """Append to each partition. Yields slow work and receives its result."""
    request_error = check_request(node, context, request)
    now_ms = node.clock.now_ms()
    failed = False
    responses = []
    for data in request.topic_data:
        target = request_error or find_topic(node, context, data)
        partitions = []
        for each in data.partition_data:
            if isinstance(target, BrokerError):
                response = failure(each.index, target)
            else:
                response = yield from append(node, context, request, target, each, now_ms)
            failed |= response.error_code != 0
            partitions.append(response)
        responses.append(
            ProduceResponse.TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=partitions)
        )
    context.throttle_ms = node.throttling.record(QuotaType.PRODUCE, context, context.request_bytes - LENGTH_BYTES)
    context.peer.must_close |= failed and request.acks == 0
    result = ProduceResponse(responses=responses)
    if failed and context.api_version >= LEADER_VERSION:
        result.node_endpoints = [
            ProduceResponse.NodeEndpoint(node_id=each.node_id, host=host, port=port, rack=each.rack)
            for each, host, port in leaders_of(node, context, result)
        ]
    return result


def leaders_of(node: Node, context: RequestContext, response: ProduceResponse) -> Iterator[tuple[Member, str, int]]:
    """Yield the leaders in a response, each once, with their endpoints."""
    leaders = {each.current_leader.leader_id for topic in response.responses for each in topic.partition_responses}
    return endpoints_of(node, context, leaders)


def check_isr(node: Node, partition: Partition, needed: int) -> None:
    """Raise BrokerError if too few replicas are in sync for acks=all."""
    isr = node.members.replicas_of(partition.state).isr
    if len(isr) < needed:
        raise refusal(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"The size of the current ISR Set({', '.join(map(str, isr))}) is insufficient to satisfy the min.isr "
            f"requirement of {needed} for partition {partition.name}",
        )


def check_request(node: Node, context: RequestContext, request: ProduceRequest) -> BrokerError | None:
    """Return the error that applies to all partitions of a request, or None."""
    if request.acks not in VALID_ACKS:
        return refusal(ErrorCode.INVALID_REQUIRED_ACKS, f"invalid acks {request.acks}: must be -1, 0 or 1")
    name = request.transactional_id
    if name is not None and not node.may(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        return refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactional Id authorization failed.")
    return None


def find_topic(node: Node, context: RequestContext, data: TopicProduceData) -> Topic | BrokerError:
    """Return the topic that records are for, or the error for its partitions."""
    if context.api_version >= TOPIC_ID_VERSION:
        topic = node.topics.with_id(data.topic_id)
        if topic is None:
            return refusal(ErrorCode.UNKNOWN_TOPIC_ID, f"unknown topic id {data.topic_id}")
        name = topic.name
    else:
        name = data.name
        topic = node.topics.get(name)
    if not node.may(context, Operation.WRITE, ResourceType.TOPIC, name):
        return refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    if topic is None:
        return refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"unknown topic '{name}'")
    if topic.is_internal and context.client_id != ADMIN_CLIENT:
        return refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
    return topic


def append(
    node: Node, context: RequestContext, request: ProduceRequest, topic: Topic, each: PartitionProduceData, now_ms: int
) -> Generator[Work, Prepared, PartitionProduceResponse]:
    """Append to one partition. Yields slow work and receives its result.

    Records are validated by PartitionWriter.prepare and written by PartitionWriter.append_prepared.
    """
    partition = topic.partitions.get(each.index)
    try:
        if partition is None:
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"unknown partition {topic.name}-{each.index}")
        records = each.records
        if records is None:
            raise RejectedRecords("records are null", ErrorCode.INVALID_RECORD)
        version = context.api_version
        log, leader_epoch = partition.at(node.node_id), partition.leader_epoch
        if request.acks == ACKS_ALL and log.config.min_insync_replicas > 1:
            check_isr(node, partition, log.config.min_insync_replicas)
        check_transaction(node, partition, records, request.transactional_id, version)
        prepare = functools.partial(
            log.prepare,
            records,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
            produce_version=version,
        )
        try:
            prepared = prepare(quick=True)
        except TooMuchWork:
            prepared = yield prepare
            # The transaction may have ended in the meantime, and the leader changed.
            partition.at(node.node_id)
            if partition.leader_epoch != leader_epoch:
                raise refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the leader of {partition.name} has changed") from None
            check_transaction(node, partition, records, request.transactional_id, version)
        done = partition.opened.append_prepared(prepared)
    except KwireError as error:
        response = failure(each.index, error, partition)
        is_elsewhere = partition is not None and response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        if is_elsewhere and context.api_version >= LEADER_VERSION:
            assert partition is not None
            leader_id, leader_epoch = current_leader(partition)
            response.current_leader = ProduceResponse.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        return response
    if partition.watchers:
        partition.notify()
    return PartitionProduceResponse(
        index=each.index,
        base_offset=done.first_offset,
        log_append_time_ms=done.log_append_time_ms,
        log_start_offset=done.log_start_offset,
    )


def check_transaction(
    node: Node, partition: Partition, records: bytes | memoryview, transactional_id: str | None, version: int
) -> None:
    """Check that a producer may append these records to its transaction.

    Only the first batch is checked: a transactional request has one. Raises BrokerError.
    """
    if (
        len(records) < DEFAULT_HEADER.size
        or records[MAGIC_POSITION] < 2
        or not records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_FLAG
    ):
        return
    if transactional_id is None:
        raise refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactional records need a transactional id")
    producer = ProducerIdAndEpoch(*PRODUCER.unpack_from(records, PRODUCER_ID_POSITION))
    entry = partition.opened.producers.entries.get(producer.producer_id)
    if entry is not None and entry.transaction_first_offset is not None and entry.producer_epoch == producer[1]:
        return
    support = ClientSupport.of_produce(version)
    if support != ClientSupport.ADD and not node.settings.transaction_partition_verification_enable:
        return
    this = (partition.topic.name, partition.index)
    code = admit(node.transactions, transactional_id, producer, frozenset({this}), support).get(this)
    if code is not None:
        what = f"{partition.name} does not belong to an open transaction of producer {producer.producer_id}"
        raise refusal(produce_error(code, support), what)


def failure(index: int, error: KwireError, partition: Partition | None = None) -> PartitionProduceResponse:
    """Build the response for a partition whose records were not appended."""
    code = ErrorCode(error.code) if isinstance(error, BrokerError) else ErrorCode.KAFKA_STORAGE_ERROR
    response = PartitionProduceResponse(index=index, error_code=code, base_offset=-1)
    if partition is not None and partition.log is not None and code not in WITHOUT_LOG_START:
        response.log_start_offset = partition.log.log_start_offset
    if isinstance(error, RejectedRecords) and error.record_errors:
        response.error_message = error.what
        response.record_errors = [
            ProduceResponse.BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=text)
            for position, text in error.record_errors
        ]
    return response


def error_response(request: ProduceRequest, code: ErrorCode, message: str) -> ProduceResponse:
    """Build a response with the same error for every partition."""
    return ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name=data.name,
                topic_id=data.topic_id,
                partition_responses=[failure(each.index, refusal(code, message)) for each in data.partition_data],
            )
            for data in request.topic_data
        ]
    )
