"""Consumer groups: the groups of `GroupsState`, with the rules of the consumer protocol.

    epoch             rises when members, subscriptions or topics change
    assignment_epoch  the epoch for which the target assignment was computed
    a member's epoch  the epoch that the member has reached

    state        condition
    Empty        the group has no members
    Assigning    assignment_epoch is below epoch
    Reconciling  a member's epoch is below assignment_epoch, or it waits for partitions
    Stable       every member has its target assignment

All of it follows from records, so a restart does not change it.

Source: KIP-848; org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup, modern.ModernGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias
from uuid import UUID

from kwire.broker.topics import TopicRegistry
from kwire.internal_topics.consumer_protocol import PROTOCOL_TYPE
from kwire.internal_topics.group_members import AssignedPartitions, Member
from kwire.internal_topics.groups_state import CONSUMER, Group, ResolvedRegex, TopicMetadata
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = [
    "LEAVE_EPOCH",
    "LEAVE_STATIC_EPOCH",
    "Assignment",
    "ConsumerGroup",
    "classic_members",
    "group_topics",
    "is_owned",
    "member_of",
    "member_topics",
    "new_group",
    "preferred_assignor",
    "static_member",
    "supports_classic",
    "target_of",
    "to_assignment",
    "to_partitions",
    "topics_metadata",
    "waits_for_others",
]

LEAVE_EPOCH = -1
"""Member epoch of a heartbeat that leaves the group."""
LEAVE_STATIC_EPOCH = -2
"""Member epoch of a heartbeat that leaves for a while: the instance's partitions stay with it."""

ConsumerGroup: TypeAlias = Group
"""A group of the consumer protocol."""
Assignment: TypeAlias = Mapping[UUID, frozenset[int]]
"""Partitions by topic id, no topic without partitions."""


class TopicPartitions(Protocol):
    """Partitions of a topic, in a message or in the state of a group."""

    @property
    def topic_id(self) -> UUID | None:
        """The topic's id."""

    @property
    def partitions(self) -> Sequence[int]:
        """Numbers of partitions."""


def to_assignment(topics: Iterable[TopicPartitions]) -> Assignment:
    """Return the partitions by topic id."""
    return {each.topic_id: frozenset(each.partitions) for each in topics if each.topic_id and each.partitions}


def to_partitions(assignment: Assignment) -> tuple[AssignedPartitions, ...]:
    """Return an assignment as the state of a group has it, partitions in order."""
    return tuple(AssignedPartitions(topic_id=topic, partitions=tuple(sorted(p))) for topic, p in assignment.items())


def new_group(group_id: str, epoch: int = 0) -> ConsumerGroup:
    """Return a consumer group that has no record yet."""
    return ConsumerGroup(group_id=group_id, partition=-1, kind=CONSUMER, epoch=epoch, assignment_epoch=epoch)


# --- members ---


def member_of(group: ConsumerGroup, member_id: str) -> Member:
    """Return a member. Raises BrokerError: UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    if member is None:
        raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def static_member(group: ConsumerGroup, instance_id: str | None) -> Member | None:
    """Return the member of an instance."""
    if instance_id is None:
        return None
    return next((member for member in group.members.values() if member.instance_id == instance_id), None)


def is_owned(group: ConsumerGroup, topic_id: UUID, partition: int) -> bool:
    """Return whether a member owns a partition or still has to revoke it."""
    return any(
        each.topic_id == topic_id and partition in each.partitions
        for member in group.members.values()
        for each in (*member.assigned, *member.revoking)
    )


def waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    """Return whether another member still owns a partition of a member's target assignment."""
    assigned = to_assignment(member.assigned)
    return any(
        partition not in assigned.get(topic_id, ()) and is_owned(group, topic_id, partition)
        for topic_id, partitions in to_assignment(member.target or ()).items()
        for partition in partitions
    )


def target_of(group: ConsumerGroup, member: Member) -> Assignment:
    """Return a member's target assignment; for an instance with a new member id, that of the old id."""
    stored = static_member(group, member.instance_id) or group.members.get(member.member_id)
    return {} if stored is None else to_assignment(stored.target or ())


# --- subscriptions ---


def member_topics(member: Member, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """Return the topic names that a member subscribes to, by name or by regular expression."""
    resolved = regexes.get(member.subscribed_regex) if member.subscribed_regex else None
    return frozenset(member.subscribed_topics) | (frozenset() if resolved is None else resolved.topics)


def group_topics(members: Iterable[Member], regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """Return the topic names that members subscribe to; the topics need not exist."""
    return frozenset(name for member in members for name in member_topics(member, regexes))


def topics_metadata(names: Iterable[str], topics: TopicRegistry, rack: str | None) -> dict[str, TopicMetadata]:
    """Return the metadata of existing topics, in order of their names."""
    return {
        name: TopicMetadata(topic_id=topic.topic_id, name=name, partition_count=len(topic.partitions), rack=rack)
        for name in sorted(names)
        if (topic := topics.get(name)) is not None
    }


def preferred_assignor(members: Iterable[Member], default: str) -> str:
    """Return the server-side assignor that most members ask for."""
    votes = Counter(member.assignor for member in members if member.assignor is not None)
    return votes.most_common(1)[0][0] if votes else default


# --- members that use the classic protocol ---


def classic_members(group: ConsumerGroup) -> list[Member]:
    """Return the members that joined with JoinGroup."""
    return [member for member in group.members.values() if member.uses_classic_protocol]


def supports_classic(group: ConsumerGroup, protocol_type: str, names: Iterable[str]) -> bool:
    """Return whether a member with these classic protocols is compatible with the classic members."""
    if protocol_type != PROTOCOL_TYPE:
        return False
    classic = classic_members(group)
    offered = Counter(name for member in classic for name, _ in member.classic_protocols)
    return any(offered[name] == len(classic) for name in names)
