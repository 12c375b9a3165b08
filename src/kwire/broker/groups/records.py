"""Records of `__consumer_offsets` as the broker writes them.

    type  key                                       value, and its version      content
       1  OffsetCommitKey                           OffsetCommitValue 3         an offset with its metadata
                                                                         1      and with an expiry time
       2  GroupMetadataKey                          GroupMetadataValue 3        the last generation of a classic group
       3  ConsumerGroupMetadataKey                  ...Value 0                  the epoch of a consumer group
       4  ConsumerGroupPartitionMetadataKey         ...Value 0                  the topics it reads
       5  ConsumerGroupMemberMetadataKey            ...Value 0                  a member's subscription
       6  ConsumerGroupTargetAssignmentMetadataKey  ...Value 0                  the epoch of the target assignment
       7  ConsumerGroupTargetAssignmentMemberKey    ...Value 0                  a member's target assignment
       8  ConsumerGroupCurrentMemberAssignmentKey   ...Value 0                  a member's current assignment
      16  ConsumerGroupRegularExpressionKey         ...Value 0                  the topics that match a regex

The records of share groups, types 10 to 15, are in share_records.

A null value deletes; functions take None for it. The versions are those that Kafka 3.9.1 writes, so that it can
take over a directory; it skips type 16, which came with 4.0. `kwire.internal_topics.groups_state` applies the records.

Source: org.apache.kafka.coordinator.group.CoordinatorRecordHelpers, CoordinatorRecordSerde; MetadataVersion's
groupMetadataValueVersion and offsetCommitValueVersion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kwire.broker.coordinator_log import CoordinatorRecord
from kwire.broker.groups.classic_group import ClassicGroup
from kwire.broker.groups.consumer_group import Assignment
from kwire.internal_topics.group_members import AssignedPartitions, Member
from kwire.internal_topics.groups_state import ResolvedRegex, TopicMetadata
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

__all__ = [
    "current_assignment",
    "empty_group_metadata",
    "group_epoch",
    "group_metadata",
    "group_metadata_tombstone",
    "member_subscription",
    "offset_commit",
    "regex",
    "subscription_metadata",
    "target_assignment",
    "target_epoch",
]

GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION, EXPIRING_OFFSET_COMMIT_VERSION = 3, 1


# --- classic groups and offsets ---


def group_metadata(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """Record the generation of a classic group with its assignments; members without one get none."""
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
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, GROUP_METADATA_VERSION)


def empty_group_metadata(group: ClassicGroup) -> CoordinatorRecord:
    """Record a new classic group, whose first members are still joining."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=group.state_since_ms
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value, GROUP_METADATA_VERSION)


def group_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Delete a classic group."""
    return CoordinatorRecord(GroupMetadataKey(group=group_id), None)


def offset_commit(group_id: str, topic: str, partition: int, value: OffsetCommitValue | None) -> CoordinatorRecord:
    """Record a committed offset. Only version 1 of the value, for old clients, has expire_timestamp."""
    expires = value is not None and value.expire_timestamp != -1
    version = EXPIRING_OFFSET_COMMIT_VERSION if expires else OFFSET_COMMIT_VERSION
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), value, version)


# --- consumer groups ---


def group_epoch(group_id: str, epoch: int | None) -> CoordinatorRecord:
    """Record the epoch of a consumer group."""
    value = None if epoch is None else ConsumerGroupMetadataValue(epoch=epoch)
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def subscription_metadata(group_id: str, topics: Mapping[str, TopicMetadata] | None) -> CoordinatorRecord:
    """Record the topics that the members of a group read."""
    key = ConsumerGroupPartitionMetadataKey(group_id=group_id)
    if topics is None:
        return CoordinatorRecord(key, None)
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
    return CoordinatorRecord(key, value)


def member_subscription(group_id: str, member_id: str, member: Member | None) -> CoordinatorRecord:
    """Record a member and its subscription."""
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    if member is None:
        return CoordinatorRecord(key, None)
    classic = None
    if member.uses_classic_protocol:
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in member.classic_protocols],
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topics),
        subscribed_topic_regex=member.subscribed_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return CoordinatorRecord(key, value)


def target_epoch(group_id: str, epoch: int | None) -> CoordinatorRecord:
    """Record the epoch of the target assignment."""
    value = None if epoch is None else ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch)
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_assignment(group_id: str, member_id: str, assignment: Assignment | None) -> CoordinatorRecord:
    """Record a member's target assignment."""
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    if assignment is None:
        return CoordinatorRecord(key, None)
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[TopicPartition(topic_id=topic, partitions=sorted(p)) for topic, p in assignment.items()]
    )
    return CoordinatorRecord(key, value)


def current_assignment(group_id: str, member_id: str, member: Member | None) -> CoordinatorRecord:
    """Record a member's assignment, and the partitions that it still has to revoke."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    if member is None:
        return CoordinatorRecord(key, None)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=_topic_partitions(member.assigned),
        partitions_pending_revocation=_topic_partitions(member.revoking),
    )
    return CoordinatorRecord(key, value)


def _topic_partitions(assigned: Iterable[AssignedPartitions]) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=each.topic_id, partitions=list(each.partitions))
        for each in assigned
        if each.topic_id is not None
    ]


def regex(group_id: str, pattern: str, resolved: ResolvedRegex | None) -> CoordinatorRecord:
    """Record the topics that match a regular expression."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    if resolved is None:
        return CoordinatorRecord(key, None)
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return CoordinatorRecord(key, value)
