"""A member's next step from its assignment to its target assignment.

Partitions in both stay. Partitions that are not in the target are revoked first, at the old epoch. Then the member gets
free partitions, at the new epoch, and waits for those that other members still own.

Source: KIP-848; org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from kwire.broker.groups.consumer_group import Assignment, to_assignment, to_partitions
from kwire.internal_topics.group_members import Member, MemberState
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["reconcile"]

NONE: frozenset[int] = frozenset()


def reconcile(
    member: Member,
    target_epoch: int,
    target: Assignment,
    is_owned: Callable[[UUID, int], bool],
    owned: Assignment | None,
) -> Member:
    """Return the member after its next step; the same object if no step is possible.

    owned: the partitions that the member reports, None if it reports none. is_owned: whether a member owns a partition.
    Raises BrokerError: FENCED_MEMBER_EPOCH for a state that only a newer broker knows.
    """
    match member.state:
        case MemberState.STABLE:
            if member.epoch == target_epoch:
                return member
            return _next(member, member.epoch, target_epoch, target, is_owned, owned)
        case MemberState.UNREVOKED_PARTITIONS:
            if _owns_any(owned, to_assignment(member.revoking)):
                return member
            return _next(member, member.epoch + 1, target_epoch, target, is_owned, owned)
        case MemberState.UNRELEASED_PARTITIONS:
            return _next(member, member.epoch, target_epoch, target, is_owned, owned)
        case _:  # of a newer broker
            if owned is None or owned:
                raise refusal(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. "
                    "The member must abandon all its partitions and rejoin.",
                )
            return _next(member, target_epoch, target_epoch, target, is_owned, owned)


def _owns_any(owned: Assignment | None, revoked: Assignment) -> bool:
    """Return whether the member still owns any of these partitions; a member that does not report is assumed to."""
    if owned is None:
        return True
    return any(not partitions.isdisjoint(revoked.get(topic_id, NONE)) for topic_id, partitions in owned.items())


def _next(
    member: Member,
    epoch: int,
    target_epoch: int,
    target: Assignment,
    is_owned: Callable[[UUID, int], bool],
    owned: Assignment | None,
) -> Member:
    """Return the step of a member at an epoch."""
    waits = False
    kept: dict[UUID, frozenset[int]] = {}
    to_revoke: dict[UUID, frozenset[int]] = {}
    to_assign: dict[UUID, frozenset[int]] = {}
    now = to_assignment(member.assigned)
    for topic_id in dict.fromkeys((*now, *target)):
        expected, current = target.get(topic_id, NONE), now.get(topic_id, NONE)
        missing = expected - current
        free = frozenset(partition for partition in missing if not is_owned(topic_id, partition))
        waits = waits or len(free) < len(missing)
        for into, partitions in ((kept, current & expected), (to_revoke, current - expected), (to_assign, free)):
            if partitions:
                into[topic_id] = partitions
    if to_revoke and _owns_any(owned, to_revoke):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, epoch, kept, to_revoke)
    assigned = {t: kept.get(t, NONE) | to_assign.get(t, NONE) for t in dict.fromkeys((*kept, *to_assign))}
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return _moved(member, state, target_epoch, assigned, {})


def _moved(member: Member, state: MemberState, epoch: int, assigned: Assignment, revoking: Assignment) -> Member:
    return replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=to_partitions(assigned),
        revoking=to_partitions(revoking),
    )
