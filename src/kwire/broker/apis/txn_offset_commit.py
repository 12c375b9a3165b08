"""TxnOffsetCommit (api key 28), versions 0 to 6: commit a group's offsets as part of a transaction.

    2  leader epochs (KIP-320)    3  member and generation (KIP-447)    4  TRANSACTION_ABORTABLE
    5  AddOffsetsToTxn is not required (KIP-890)    6  topic ids (KIP-848)

The offsets are written to `__consumer_offsets` as part of the transaction and take effect with its commit marker. Until
then, OffsetFetch with require_stable returns UNSTABLE_OFFSET_COMMIT.

Source: kafka.server.KafkaApis.handleTxnOffsetCommitRequest 3.9.1; OffsetMetadataManager.commitTransactionalOffset,
CoordinatorRuntime.scheduleTransactionalWriteOperation.
"""

from __future__ import annotations

from kwire.broker.apis.steps.offset_commits import (
    Commits,
    Outcome,
    commit_each,
    commit_value,
    response_topics,
    same_error,
)
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.transactions.admission import ClientSupport, admit
from kwire.broker.transactions.metadata import ProducerIdAndEpoch
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kwire.protocol.error_codes import ErrorCode, refusal

TOPIC_ID_VERSION = 6


def handle(node: Node, context: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Commit the offsets of each partition as part of the transaction."""
    node.authorize(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    node.authorize(context, Operation.READ, ResourceType.GROUP, request.group_id)
    if not request.group_id:
        raise refusal(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    node.check_coordinator(GROUPS_TOPIC, request.group_id)
    now_ms = node.clock.now_ms()
    outcome = commit_each(
        node,
        context,
        request,
        by_id=context.api_version >= TOPIC_ID_VERSION,
        value_of=lambda partition: commit_value(partition, now_ms),
        commit=lambda commits: commit(node, context, request, commits),
    )
    return respond(request, outcome)


def commit(node: Node, context: RequestContext, request: TxnOffsetCommitRequest, commits: Commits) -> None:
    """Commit the valid offsets as part of the transaction. Raises BrokerError."""
    node.groups.offsets.check_commit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        version=context.api_version,
        transactional=True,
    )
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    check_transaction(node, context.api_version, request, producer)
    node.groups.offsets.commit(request.group_id, commits, producer)


def check_transaction(node: Node, version: int, request: TxnOffsetCommitRequest, producer: ProducerIdAndEpoch) -> None:
    """Verify that the transaction has the group's partition, or add it. Raises BrokerError."""
    support = ClientSupport.of_offset_commit(version)
    if support is not ClientSupport.ADD and not node.settings.transaction_partition_verification_enable:
        return
    index = node.groups.store.partition_of(request.group_id)
    partition = node.topics.partition(GROUPS_TOPIC, index)
    if partition is not None:
        entry = partition.opened.producers.entries.get(producer.producer_id)
        if entry is not None and entry.transaction_first_offset is not None and entry.producer_epoch == producer[1]:
            return
    this = (GROUPS_TOPIC, index)
    code = admit(node.transactions, request.transactional_id, producer, frozenset({this}), support).get(this)
    if code is not None:
        raise refusal(
            code, f"group '{request.group_id}' is not part of a transaction of producer {producer.producer_id}"
        )


def respond(request: TxnOffsetCommitRequest, outcome: Outcome) -> TxnOffsetCommitResponse:
    """Build the response, in the order of the request."""
    kind = TxnOffsetCommitResponse
    return kind(
        topics=response_topics(
            request, outcome, kind.TxnOffsetCommitResponseTopic, kind.TxnOffsetCommitResponsePartition
        )
    )


def error_response(request: TxnOffsetCommitRequest, code: ErrorCode, message: str) -> TxnOffsetCommitResponse:
    """Build a response with the same error for every partition."""
    return respond(request, same_error(request, code))
