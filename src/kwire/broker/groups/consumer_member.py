"""A member of a consumer group: its subscription, its assignment, and its progress towards the target assignment.

Members are values. A change makes a new one, which joins the group when its record has been written.

Source: KIP-848; org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember, MemberState.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from kwire.internal_topics.group_members import Member, MemberState

__all__ = ["LEAVE_EPOCH", "LEAVE_STATIC_EPOCH", "Assignment", "ConsumerMember", "to_assignment"]

LEAVE_EPOCH = -1
"""Member epoch of a heartbeat that leaves the group."""
LEAVE_STATIC_EPOCH = -2
"""Member epoch of a heartbeat that leaves for a while: the instance's partitions stay with it."""

Assignment = Mapping[UUID, frozenset[int]]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """A member of a consumer group. state: see MemberState.

    epoch: the group's epoch that the member has reached. previous_epoch: the one before, which a heartbeat still
    carries if its response was lost. classic_session_timeout_ms, classic_protocols: of a member that uses the classic
    protocol, else None and empty.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = None
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assignment = dataclasses.field(default_factory=dict)
    pending_revocation: Assignment = dataclasses.field(default_factory=dict)
    classic_session_timeout_ms: int | None = None
    classic_protocols: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def of(cls, member: Member) -> ConsumerMember:
        """Return the member that the records of `__consumer_offsets` describe."""
        return cls(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topic_names=frozenset(member.subscribed_topics),
            topic_regex=member.subscribed_regex,
            assignor=member.assignor,
            epoch=member.epoch,
            previous_epoch=member.previous_epoch,
            state=member.state if isinstance(member.state, MemberState) else MemberState.UNKNOWN,
            assigned=to_assignment(member.assigned),
            pending_revocation=to_assignment(member.revoking),
            classic_session_timeout_ms=None if member.session_timeout_ms == -1 else member.session_timeout_ms,
            classic_protocols=member.classic_protocols,
        )

    def replace(self, **changes: Any) -> ConsumerMember:
        """Return a copy of the member with other values."""
        return dataclasses.replace(self, **changes)

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether the member joined with JoinGroup."""
        return self.classic_session_timeout_ms is not None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Return whether the member has its target assignment of an epoch."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch
