"""What requests of share groups have in common: checks, and acknowledgements.

Source: kafka.server.KafkaApis.handleAcknowledgements, validateAcknowledgementBatches 4.4.0.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.shares.coordinator import ShareKey
from kwire.broker.shares.share_partition import Acknowledgement, AcknowledgeType
from kwire.broker.topics import Partition
from kwire.errors import BrokerError
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = [
    "RENEW_VERSION",
    "UNKNOWN",
    "Acknowledged",
    "acknowledge",
    "check_enabled",
    "check_member",
    "close_session",
    "disconnected",
    "end_all_sessions",
    "share_partition_of",
]

RENEW_VERSION = 2
"""The first version of ShareFetch and ShareAcknowledge that can renew locks."""
LONGEST_MEMBER_ID = 36
UNKNOWN = "This server does not host this topic-partition."


class AcknowledgementBatch(Protocol):
    """Acknowledged offsets in a request."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Acknowledged(NamedTuple):
    """The result of acknowledging records of a partition."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None


def check_enabled(node: Node) -> None:
    """Raise BrokerError (UNSUPPORTED_VERSION) unless share groups are enabled: share.version is 1 or more."""
    if not node.features.has_share_groups:
        raise refusal(ErrorCode.UNSUPPORTED_VERSION, "The version of API is not supported.")


def check_member(node: Node, context: RequestContext, group_id: str | None, member_id: str | None) -> tuple[str, str]:
    """Return the group and member of a request that may read. Raises BrokerError."""
    check_enabled(node)
    if group_id is None:
        raise refusal(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    node.authorize(context, Operation.READ, ResourceType.GROUP, group_id)
    if not member_id or len(member_id) > LONGEST_MEMBER_ID:
        raise refusal(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return group_id, member_id


def acknowledge(
    node: Node,
    context: RequestContext,
    group_id: str,
    member_id: str,
    batches: Iterable[tuple[UUID, int, Sequence[AcknowledgementBatch]]],
    *,
    is_renewal: bool,
) -> dict[tuple[UUID, int], Acknowledged]:
    """Acknowledge records of partitions; return the result of each.

    As in Kafka, partitions without acknowledgements are left out if none has one that is valid.
    """
    results: dict[tuple[UUID, int], Acknowledged] = {}
    empty, acknowledges = [], False
    for topic_id, index, each in batches:
        message = False
        try:
            results[topic_id, index] = Acknowledged()
            topic = node.topics.with_id(topic_id)
            if topic is None:
                raise refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
            check_batches(each, context.api_version, is_renewal=is_renewal)
            if not node.may(context, Operation.READ, ResourceType.TOPIC, topic.name):
                raise refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
            partition = topic.partitions.get(index)
            if partition is None:
                raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN)
            if not each:
                empty.append((topic_id, index))
            else:
                acknowledges = message = True
                share_acknowledge(node, ShareKey(group_id, topic_id, index), partition, member_id, each)
        except BrokerError as error:
            results[topic_id, index] = Acknowledged(ErrorCode(error.code), error.what if message else None)
    for key in () if acknowledges else empty:
        del results[key]
    return results


def share_acknowledge(
    node: Node, key: ShareKey, partition: Partition, member_id: str, batches: Iterable[AcknowledgementBatch]
) -> None:
    """Acknowledge records of a share partition. Raises BrokerError."""
    shares = node.coordinators.share_partitions
    share_partition = shares.get(key)
    if share_partition is None or partition.state.leader != node.node_id:
        raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN)
    try:
        share_partition.acknowledge(
            member_id,
            [Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types) for each in batches],
        )
    except BrokerError as error:
        shares.fence(key, error)
        raise
    finally:
        shares.notify(key)


def check_batches(batches: Iterable[AcknowledgementBatch], version: int, *, is_renewal: bool) -> None:
    """Raise BrokerError (INVALID_REQUEST) unless batches are in order, with types that the version has."""
    end = -1
    highest = AcknowledgeType.RENEW if version >= RENEW_VERSION else AcknowledgeType.REJECT
    for each in batches:
        types, count = each.acknowledge_types, each.last_offset - each.first_offset + 1
        if (
            count < 1
            or each.first_offset < end
            or not types
            or (len(types) > 1 and len(types) != count)
            or not all(0 <= kind <= highest for kind in types)
            or (AcknowledgeType.RENEW in types and not is_renewal)
        ):
            raise refusal(ErrorCode.INVALID_REQUEST, "invalid acknowledgement")
        end = each.last_offset


def share_partition_of(node: Node, group_id: str, topic_id: UUID, partition: Partition) -> ShareKey:
    """Return the key of a share partition that this node leads, loading it. Raises BrokerError."""
    partition.at(node.node_id)
    key = ShareKey(group_id, topic_id, partition.index)
    node.coordinators.share_partitions.load(key, partition)
    return key


def close_session(node: Node, group_id: str, member_id: str) -> None:
    """End a member's session on this node and release its records."""
    shares = node.coordinators.share_partitions
    for topic_id, index in node.share_sessions.end(group_id, member_id):
        key = ShareKey(group_id, topic_id, index)
        share_partition = shares.get(key)
        if share_partition is not None and leads(node, key):
            try:
                share_partition.release(member_id)
            except BrokerError as error:
                shares.fence(key, error)
            shares.notify(key)


def disconnected(node: Node, connection_id: str) -> None:
    """End the sessions of a closed connection; forget the share partitions of groups without other sessions here."""
    for group_id, member_id in node.share_sessions.of_connection(connection_id):
        close_session(node, group_id, member_id)
        if not node.share_sessions.has_group(group_id):
            node.coordinators.share_partitions.forget(functools.partial(is_of_group_here, node, group_id))


def end_all_sessions(node: Node) -> None:
    """End the sessions with all nodes and forget all share partitions, without a release of records.

    Source: kafka.server.share.SharePartitionManager.onShareVersionToggle 4.4.0.
    """
    for sessions in node.share_sessions_of.values():
        sessions.clear()
    node.coordinators.share_partitions.forget(lambda key: True)


def is_of_group_here(node: Node, group_id: str, key: ShareKey) -> bool:
    """Return whether a share partition is one of a group, and this node leads it."""
    return key.group_id == group_id and leads(node, key)


def leads(node: Node, key: ShareKey) -> bool:
    """Return whether this node leads a share partition; the nodes of a cluster share those that are loaded."""
    topic = node.topics.with_id(key.topic_id)
    partition = None if topic is None else topic.partitions.get(key.partition)
    return partition is not None and partition.state.leader == node.node_id
