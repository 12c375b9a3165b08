"""Records of share groups in `__consumer_offsets`, as Kafka 4.4.0 writes them.

    type  key                                    value, version 0   content
      10  ShareGroupMemberMetadataKey            ...Value           a member's subscription
      11  ShareGroupMetadataKey                  ...Value           the epoch of a group
      12  ShareGroupTargetAssignmentMetadataKey  ...Value           the epoch and time of the target assignment
      13  ShareGroupTargetAssignmentMemberKey    ...Value           a member's target assignment
      14  ShareGroupCurrentMemberAssignmentKey   ...Value           a member's current assignment
      15  ShareGroupStatePartitionMetadataKey    ...Value           partitions with a state in `__share_group_state`

A null value deletes; functions take None for it.

Source: org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers 4.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import msgspec

from kwire.broker.coordinator_log import CoordinatorRecord
from kwire.broker.groups.consumer_group import Assignment
from kwire.internal_topics.group_members import Member
from kwire.messages import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from kwire.messages.share_group_state_partition_metadata_value import TopicPartitionsInfo

__all__ = [
    "StatePartitions",
    "current_assignment",
    "group_epoch",
    "member_subscription",
    "state_partitions",
    "target_assignment",
    "target_epoch",
]

Topics = Mapping[UUID, frozenset[int]]


class StatePartitions(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions that a share group reads: those whose state is being written, those that have one, deleted ones.

    names: of the topics.
    """

    initializing: Topics
    initialized: Topics
    deleting: frozenset[UUID]
    names: Mapping[UUID, str]


def member_subscription(group_id: str, member_id: str, member: Member | None) -> CoordinatorRecord:
    """Record a member and its subscription."""
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    if member is None:
        return CoordinatorRecord(key, None)
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
    )
    return CoordinatorRecord(key, value)


def group_epoch(group_id: str, epoch: int | None, metadata_hash: int = 0) -> CoordinatorRecord:
    """Record the epoch of a share group. metadata_hash: of the topics that its members read."""
    key = ShareGroupMetadataKey(group_id=group_id)
    value = None if epoch is None else ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(key, value)


def target_epoch(group_id: str, epoch: int | None, timestamp_ms: int = 0) -> CoordinatorRecord:
    """Record the epoch of the target assignment, and when it was computed; 0 lets the next one follow at once."""
    key = ShareGroupTargetAssignmentMetadataKey(group_id=group_id)
    if epoch is None:
        return CoordinatorRecord(key, None)
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return CoordinatorRecord(key, value)


def target_assignment(group_id: str, member_id: str, assignment: Assignment | None) -> CoordinatorRecord:
    """Record a member's target assignment."""
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    if assignment is None:
        return CoordinatorRecord(key, None)
    cls = ShareGroupTargetAssignmentMemberValue
    topics = [cls.TopicPartition(topic_id=topic, partitions=sorted(p)) for topic, p in assignment.items()]
    return CoordinatorRecord(key, cls(topic_partitions=topics))


def current_assignment(group_id: str, member_id: str, member: Member | None) -> CoordinatorRecord:
    """Record a member's assignment."""
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    if member is None:
        return CoordinatorRecord(key, None)
    cls = ShareGroupCurrentMemberAssignmentValue
    value = cls(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=[
            cls.TopicPartitions(topic_id=each.topic_id, partitions=list(each.partitions))
            for each in member.assigned
            if each.topic_id is not None
        ],
    )
    return CoordinatorRecord(key, value)


def state_partitions(group_id: str, partitions: StatePartitions | None) -> CoordinatorRecord:
    """Record which partitions have a state in `__share_group_state`."""
    key = ShareGroupStatePartitionMetadataKey(group_id=group_id)
    if partitions is None:
        return CoordinatorRecord(key, None)
    cls, names = ShareGroupStatePartitionMetadataValue, partitions.names

    def infos(topics: Topics) -> list[TopicPartitionsInfo]:
        return [
            TopicPartitionsInfo(topic_id=topic, topic_name=names.get(topic, UNKNOWN), partitions=sorted(each))
            for topic, each in topics.items()
        ]

    value = cls(
        initializing_topics=infos(partitions.initializing),
        initialized_topics=infos(partitions.initialized),
        deleting_topics=[
            cls.TopicInfo(topic_id=topic, topic_name=names.get(topic, UNKNOWN)) for topic in partitions.deleting
        ],
    )
    return CoordinatorRecord(key, value)


UNKNOWN = "<UNKNOWN>"
"""Kafka's name of a topic that does not exist any more."""
