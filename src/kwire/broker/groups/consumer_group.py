"""A group of the consumer protocol: epochs, members, the target assignment, and the owners of partitions.

    epoch             rises when members, subscriptions or topics change
    assignment_epoch  the epoch for which the target assignment was computed
    a member's epoch  the epoch that the member has reached

    state        condition
    Empty        the group has no members
    Assigning    assignment_epoch is below epoch
    Reconciling  a member's epoch is below assignment_epoch, or it waits for partitions
    Stable       every member has its target assignment

All of it follows from records, so a restart does not change it; only the topics are checked again.

Source: KIP-848; org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup, modern.ModernGroup.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from kwire.broker.groups.consumer_member import Assignment, ConsumerMember
from kwire.broker.groups.embedded_protocol import CONSUMER_PROTOCOL_TYPE
from kwire.broker.groups.subscription import subscribed_topics
from kwire.internal_topics.groups_state import ResolvedRegex, TopicMetadata
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["ConsumerGroup", "ConsumerState"]

NOBODY = -1


class ConsumerState(enum.StrEnum):
    """State names in the responses of ConsumerGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(slots=True, kw_only=True, eq=False)
class ConsumerGroup:
    """A consumer group.

    topics: the topics that members read, when last checked. look_again: whether the next heartbeat checks the topics.
    partition_epochs: the epoch of the member that owns a partition.
    """

    group_id: str
    epoch: int = 0
    assignment_epoch: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    target: dict[str, Assignment] = field(default_factory=dict)
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    partition_epochs: dict[tuple[UUID, int], int] = field(default_factory=dict)
    look_again: bool = True

    @property
    def state(self) -> ConsumerState:
        """The state, by the conditions in the table above."""
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    # --- members ---

    def member(self, member_id: str) -> ConsumerMember:
        """Return a member. Raises BrokerError: UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the member of an instance."""
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members.get(member_id)

    def put(self, member: ConsumerMember) -> None:
        """Add or replace a member."""
        self._release(self.members.get(member.member_id))
        self.members[member.member_id] = member
        for partition in self._held(member):
            self.partition_epochs[partition] = member.epoch
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member and its ownership of partitions."""
        member = self.members.pop(member_id, None)
        self._release(member)
        if member is not None and self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]

    def _release(self, member: ConsumerMember | None) -> None:
        """End a member's ownership of its partitions, unless another member owns them at another epoch by now."""
        if member is not None:
            for partition in self._held(member):
                if self.partition_epochs.get(partition) == member.epoch:
                    del self.partition_epochs[partition]

    @staticmethod
    def _held(member: ConsumerMember) -> Iterable[tuple[UUID, int]]:
        for held in (member.assigned, member.pending_revocation):
            for topic_id, partitions in held.items():
                for partition in partitions:
                    yield topic_id, partition

    def is_held(self, topic_id: UUID, partition: int) -> bool:
        """Return whether a member owns a partition or still has to revoke it."""
        return self.partition_epochs.get((topic_id, partition), NOBODY) != NOBODY

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Return whether another member still owns a partition of a member's target assignment."""
        return any(
            partition not in member.assigned.get(topic_id, ()) and self.is_held(topic_id, partition)
            for topic_id, partitions in self.target.get(member.member_id, {}).items()
            for partition in partitions
        )

    def target_of(self, member: ConsumerMember) -> Assignment:
        """Return a member's target assignment; for an instance with a new member id, that of the old id."""
        previous = self.static_members.get(member.instance_id) if member.instance_id is not None else None
        return self.target.get(previous or member.member_id, {})

    # --- subscriptions ---

    def subscribed_topics(self) -> Counter[str]:
        """Return the number of members that subscribe to each topic name."""
        return subscribed_topics(self.members.values(), self.regexes)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads a topic."""
        return topic in self.subscribed_topics()

    def preferred_assignor(self, members: Iterable[ConsumerMember], default: str) -> str:
        """Return the server-side assignor that most members ask for."""
        votes = Counter(member.assignor for member in members if member.assignor is not None)
        return votes.most_common(1)[0][0] if votes else default

    # --- members that speak the classic protocol ---

    def classic_members(self) -> list[ConsumerMember]:
        """Return the members that joined with JoinGroup."""
        return [member for member in self.members.values() if member.uses_classic_protocol]

    def supports_classic(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a member with these classic protocols is compatible with the classic members."""
        if protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        classic = self.classic_members()
        offered = Counter(name for member in classic for name, _ in member.classic_protocols)
        return any(offered[name] == len(classic) for name in names)
