"""Members of groups in one form for all kinds: identity, subscription and assignment.

    kind       identity and subscription       assignment                   target assignment
    classic    the group's own record          ConsumerProtocolAssignment   -
    consumer   MemberMetadata                  CurrentMemberAssignment      TargetAssignmentMember
    share      MemberMetadata                  CurrentMemberAssignment      TargetAssignmentMember
    streams    MemberMetadata                  tasks instead of partitions

A classic group of another type than `consumer` (Kafka Connect uses `connect`) holds bytes that only its members read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, cast
from uuid import UUID

import msgspec

from kwire.errors import DecodeError
from kwire.internal_topics.consumer_protocol import PROTOCOL_TYPE, read_assignment, read_subscription
from kwire.internal_topics.enums import StateNumber, label

if TYPE_CHECKING:
    from kwire import messages as m
    from kwire.messages.base import Message
    from kwire.messages.group_metadata_value import MemberMetadata

    IdentityValue = (
        m.ConsumerGroupMemberMetadataValue | m.ShareGroupMemberMetadataValue | m.StreamsGroupMemberMetadataValue
    )
    TargetValue = (
        m.ConsumerGroupTargetAssignmentMemberValue
        | m.ShareGroupTargetAssignmentMemberValue
        | m.StreamsGroupTargetAssignmentMemberValue
    )
    CurrentValue = (
        m.ConsumerGroupCurrentMemberAssignmentValue
        | m.ShareGroupCurrentMemberAssignmentValue
        | m.StreamsGroupCurrentMemberAssignmentValue
    )

__all__ = ["AssignedPartitions", "Member", "MemberState", "Tasks", "changed_member", "classic_member"]


class TopicPartitions(Protocol):
    """Partitions of a topic in a record."""

    topic_id: UUID
    partitions: list[int]


class TaskIds(Protocol):
    """Tasks of a subtopology in a record."""

    subtopology_id: str
    partitions: list[int]


class MemberState(StateNumber):
    """How far a member has come towards its target assignment.

    state                  the member has to                                then
    STABLE                 do nothing until there is a new target           -
    UNREVOKED_PARTITIONS   confirm that it revoked partitions               move to the next epoch
    UNRELEASED_PARTITIONS  wait until other members release partitions      become STABLE
    UNKNOWN                rejoin: a newer broker wrote the state           -

    Source: org.apache.kafka.coordinator.group.modern.MemberState.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


STABLE = MemberState.STABLE

Tasks = dict[str, tuple[int, ...]]  # subtopology -> partitions


class AssignedPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions of one topic, which classic groups identify by name and other groups by id."""

    topic: str | None = None
    topic_id: UUID | None = None
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a group. Members are values: a record makes a new one.

    epoch, previous_epoch: -1 in classic groups, whose generation applies to all members. state: of the assignment.
    assigned: the current assignment. revoking: partitions that the member has to revoke first. target: its target
    assignment, None without one. owned: the partitions it owned when it joined. *_tasks: of a member of a streams
    group. classic_protocols: of a member of a consumer group that uses the classic protocol; session_timeout_ms is -1
    for the other members of such a group. subscription, assignment: the raw bytes of a member of a classic group.
    """

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    subscribed_topics: tuple[str, ...] = ()
    subscribed_regex: str | None = None
    assignor: str | None = None
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    epoch: int = -1
    previous_epoch: int = -1
    state: MemberState | int = STABLE
    assigned: tuple[AssignedPartitions, ...] = ()
    revoking: tuple[AssignedPartitions, ...] = ()
    target: tuple[AssignedPartitions, ...] | None = None
    owned: tuple[AssignedPartitions, ...] = ()
    process_id: str | None = None
    active_tasks: Tasks = field(default_factory=dict)
    standby_tasks: Tasks = field(default_factory=dict)
    warmup_tasks: Tasks = field(default_factory=dict)
    classic_protocols: tuple[tuple[str, bytes], ...] = ()
    subscription: bytes = b""
    assignment: bytes = b""

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether a member of a consumer group joined with JoinGroup."""
        return self.session_timeout_ms != -1

    def is_at(self, assignment_epoch: int) -> bool:
        """Return whether the member has its target assignment of an epoch."""
        return self.state == STABLE and self.epoch == assignment_epoch

    @property
    def state_name(self) -> str:
        """The state's name; its number for an unknown one."""
        return label(self.state)


def classic_member(member: MemberMetadata, protocol_type: str) -> Member:
    """Return a member from a GroupMetadataValue."""
    described = Member(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout,
        rebalance_timeout_ms=member.rebalance_timeout,
        subscription=bytes(member.subscription),
        assignment=bytes(member.assignment),
    )
    if protocol_type != PROTOCOL_TYPE:
        return described
    with contextlib.suppress(DecodeError):
        subscription = read_subscription(described.subscription)
        described = replace(
            described,
            subscribed_topics=tuple(subscription.topics),
            rack_id=subscription.rack_id,
            owned=tuple(_named(each.topic, each.partitions) for each in subscription.owned_partitions),
        )
    with contextlib.suppress(DecodeError):
        assigned = read_assignment(described.assignment).assigned_partitions
        described = replace(described, assigned=tuple(_named(each.topic, each.partitions) for each in assigned))
    return described


def changed_member(member: Member, kind: str, value: Message | None) -> Member:
    """Apply a record about a member of a consumer, share or streams group. value: None for a tombstone."""
    if kind.endswith("MemberMetadata"):
        return _identity(member, cast("IdentityValue", value))
    if kind.endswith("TargetAssignmentMember"):
        return _target(member, cast("TargetValue | None", value))
    return _current(member, cast("CurrentValue | None", value))


def _identity(member: Member, value: IdentityValue) -> Member:
    classic = getattr(value, "classic_member_metadata", None)
    return replace(
        member,
        instance_id=getattr(value, "instance_id", None),
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topics=tuple(getattr(value, "subscribed_topic_names", ())),
        subscribed_regex=getattr(value, "subscribed_topic_regex", None) or None,
        rebalance_timeout_ms=getattr(value, "rebalance_timeout_ms", -1),
        assignor=getattr(value, "server_assignor", None),
        process_id=getattr(value, "process_id", None),
        session_timeout_ms=-1 if classic is None else classic.session_timeout_ms,
        classic_protocols=()
        if classic is None
        else tuple((each.name, each.metadata) for each in classic.supported_protocols),
    )


def _target(member: Member, value: TargetValue | None) -> Member:
    if value is None:
        return replace(member, target=None)
    return replace(member, target=_by_id(value.topic_partitions)) if hasattr(value, "topic_partitions") else member


def _current(member: Member, value: CurrentValue | None) -> Member:
    if value is None:
        return replace(
            member,
            epoch=-1,
            previous_epoch=-1,
            state=STABLE,
            assigned=(),
            revoking=(),
            active_tasks={},
            standby_tasks={},
            warmup_tasks={},
        )
    member = replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState.of(value.state),
    )
    if hasattr(value, "active_tasks"):
        streams = cast("m.StreamsGroupCurrentMemberAssignmentValue", value)
        return replace(
            member,
            active_tasks=_tasks(streams.active_tasks),
            standby_tasks=_tasks(streams.standby_tasks),
            warmup_tasks=_tasks(streams.warmup_tasks),
        )
    revoking = _by_id(getattr(value, "partitions_pending_revocation", ()))
    return replace(member, assigned=_by_id(value.assigned_partitions), revoking=revoking)


def _named(topic: str, partitions: Iterable[int]) -> AssignedPartitions:
    return AssignedPartitions(topic=topic, partitions=tuple(partitions))


def _by_id(topics: Iterable[TopicPartitions]) -> tuple[AssignedPartitions, ...]:
    return tuple(AssignedPartitions(topic_id=each.topic_id, partitions=tuple(each.partitions)) for each in topics)


def _tasks(tasks: Iterable[TaskIds]) -> Tasks:
    return {each.subtopology_id: tuple(each.partitions) for each in tasks}
