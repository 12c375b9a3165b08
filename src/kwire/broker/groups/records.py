"""The records of `__consumer_offsets`: what each says, and the bytes of its key and value.

    type  key                                       value, and its version      says
       0  LegacyOffsetCommitKey                     OffsetCommitValue           as 1, by brokers before 0.9
       1  OffsetCommitKey                           OffsetCommitValue 3         an offset, with its metadata
                                                                         1      and with a time when it expires
       2  GroupMetadataKey                          GroupMetadataValue 3        a classic group's last generation
       3  ConsumerGroupMetadataKey                  ...Value 0                  a consumer group's epoch
       4  ConsumerGroupPartitionMetadataKey         ...Value 0                  the topics it reads, as last seen
       5  ConsumerGroupMemberMetadataKey            ...Value 0                  a member's subscription
       6  ConsumerGroupTargetAssignmentMetadataKey  ...Value 0                  epoch of the target assignment
       7  ConsumerGroupTargetAssignmentMemberKey    ...Value 0                  what a member is to have
       8  ConsumerGroupCurrentMemberAssignmentKey   ...Value 0                  what a member has
      16  ConsumerGroupRegularExpressionKey         ...Value 0                  the topics that a regex found

A null value deletes. Versions are those that Kafka 3.9.1 writes, so that it takes a directory over; it skips type 16,
which is 4.0's. Of newer values the tagged fields are passed over (a 4.x group's metadata hash), and types that are not
in the table (share and streams groups) are left alone.

Source: org.apache.kafka.coordinator.group.CoordinatorRecordHelpers, CoordinatorRecordSerde; MetadataVersion's
groupMetadataValueVersion and offsetCommitValueVersion.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from kwire.broker.groups.classic_group import ClassicGroup
from kwire.broker.groups.consumer_member import Assignment, ConsumerMember
from kwire.internal_topics.groups_state import ResolvedRegex, TopicMetadata
from kwire.messages.base import Message
from kwire.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from kwire.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kwire.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kwire.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kwire.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kwire.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kwire.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kwire.messages.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
    PartitionMetadata,
)
from kwire.messages.consumer_group_partition_metadata_value import TopicMetadata as TopicMetadataValue
from kwire.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kwire.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from kwire.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kwire.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kwire.messages.consumer_group_target_assignment_metadata_key import ConsumerGroupTargetAssignmentMetadataKey
from kwire.messages.consumer_group_target_assignment_metadata_value import ConsumerGroupTargetAssignmentMetadataValue
from kwire.messages.group_metadata_key import GroupMetadataKey
from kwire.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kwire.messages.offset_commit_key import OffsetCommitKey
from kwire.messages.offset_commit_value import OffsetCommitValue
from kwire.protocol.record_values import write_prefixed

__all__ = [
    "GroupRecord",
    "current_assignment",
    "current_assignment_tombstone",
    "empty_group_metadata",
    "group_epoch",
    "group_epoch_tombstone",
    "group_metadata",
    "group_metadata_tombstone",
    "member_subscription",
    "member_subscription_tombstone",
    "offset_commit",
    "offset_tombstone",
    "regex",
    "regex_tombstone",
    "subscription_metadata",
    "subscription_metadata_tombstone",
    "target_assignment",
    "target_assignment_tombstone",
    "target_epoch",
    "target_epoch_tombstone",
]

GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION, EXPIRING_OFFSET_COMMIT_VERSION = 3, 1


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A key, and its value in that version; None deletes what the key names."""

    key: Message
    value: Message | None
    version: int = 0

    def encode(self) -> tuple[bytes, bytes | None]:
        """The bytes of both. Raises EncodeError for text that does not fit, such as a member id of 40 000 bytes."""
        return write_prefixed(self.key, 0), None if self.value is None else write_prefixed(self.value, self.version)


# --- classic groups and offsets ---


def group_metadata(group: ClassicGroup, assignments: Mapping[str, bytes]) -> GroupRecord:
    """A group's generation, with what each member was given (nothing where the leader left it out)."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return GroupRecord(GroupMetadataKey(group=group.group_id), value, GROUP_METADATA_VERSION)


def empty_group_metadata(group: ClassicGroup) -> GroupRecord:
    """A group that has just been made: its first members are still joining."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=group.state_since_ms
    )
    return GroupRecord(GroupMetadataKey(group=group.group_id), value, GROUP_METADATA_VERSION)


def group_metadata_tombstone(group_id: str) -> GroupRecord:
    """No classic group of that id any more."""
    return GroupRecord(GroupMetadataKey(group=group_id), None)


def offset_commit(group_id: str, topic: str, partition: int, value: OffsetCommitValue) -> GroupRecord:
    """An offset. expire_timestamp is only in the version that old clients' retention needs."""
    version = OFFSET_COMMIT_VERSION if value.expire_timestamp == -1 else EXPIRING_OFFSET_COMMIT_VERSION
    return GroupRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    """No offset for that partition any more."""
    return GroupRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


# --- consumer groups ---


def group_epoch(group_id: str, epoch: int) -> GroupRecord:
    """The group's epoch."""
    return GroupRecord(ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(epoch=epoch))


def group_epoch_tombstone(group_id: str) -> GroupRecord:
    """No consumer group of that id any more."""
    return GroupRecord(ConsumerGroupMetadataKey(group_id=group_id), None)


def subscription_metadata(group_id: str, topics: Mapping[str, TopicMetadata]) -> GroupRecord:
    """The topics that the members read, as they are now."""
    value = ConsumerGroupPartitionMetadataValue(
        topics=[
            TopicMetadataValue(
                topic_id=topic.topic_id,
                topic_name=topic.name,
                num_partitions=topic.partition_count,
                partition_metadata=[
                    PartitionMetadata(partition=partition, racks=[topic.rack])
                    for partition in range(topic.partition_count)
                    if topic.rack is not None
                ],
            )
            for topic in topics.values()
        ]
    )
    return GroupRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), value)


def subscription_metadata_tombstone(group_id: str) -> GroupRecord:
    """The group reads nothing any more."""
    return GroupRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_subscription(group_id: str, member: ConsumerMember) -> GroupRecord:
    """Who a member is and what it subscribes to."""
    classic = None
    if member.classic_session_timeout_ms is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.classic_session_timeout_ms,
            supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in member.classic_protocols],
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return GroupRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def member_subscription_tombstone(group_id: str, member_id: str) -> GroupRecord:
    """The member is gone."""
    return GroupRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def target_epoch(group_id: str, epoch: int) -> GroupRecord:
    """The group's epoch for which the target assignment was made."""
    return GroupRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch),
    )


def target_epoch_tombstone(group_id: str) -> GroupRecord:
    """There is no target assignment any more."""
    return GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def target_assignment(group_id: str, member_id: str, assignment: Assignment) -> GroupRecord:
    """What the member is to have."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[TopicPartition(topic_id=topic, partitions=sorted(p)) for topic, p in assignment.items()]
    )
    return GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_assignment_tombstone(group_id: str, member_id: str) -> GroupRecord:
    """The member is to have nothing."""
    return GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def current_assignment(group_id: str, member: ConsumerMember) -> GroupRecord:
    """What the member has, and what it has yet to give up."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=_topic_partitions(member.assigned),
        partitions_pending_revocation=_topic_partitions(member.pending_revocation),
    )
    return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def current_assignment_tombstone(group_id: str, member_id: str) -> GroupRecord:
    """The member has nothing."""
    return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def _topic_partitions(assignment: Mapping[UUID, Collection[int]]) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic, partitions=sorted(p)) for topic, p in assignment.items()]


def regex(group_id: str, pattern: str, resolved: ResolvedRegex) -> GroupRecord:
    """The topics that a regular expression found."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), value)


def regex_tombstone(group_id: str, pattern: str) -> GroupRecord:
    """Nobody subscribes by that regular expression any more."""
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)
