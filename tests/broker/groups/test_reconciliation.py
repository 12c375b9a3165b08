"""A member's steps to its target assignment, with the values of Kafka's CurrentAssignmentBuilderTest."""

from __future__ import annotations

from uuid import UUID

import pytest

from kwire.broker.groups.consumer_group import Assignment, to_assignment, to_partitions
from kwire.broker.groups.reconciliation import reconcile
from kwire.internal_topics.group_members import Member, MemberState

A, B = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)
Both = tuple[set[int], set[int]]
NOTHING: Both = (set(), set())


def of(both: Both) -> Assignment:
    return {topic: frozenset(numbers) for topic, numbers in zip((A, B), both, strict=True) if numbers}


def step(
    state: MemberState,
    epoch: int,
    assigned: Both,
    revoking: Both,
    target: tuple[int, Both],
    owned: Both | None,
    others: Both = NOTHING,
) -> tuple[MemberState, int, int, Assignment, Assignment] | None:
    """Return the member's state, epoch, previous epoch, partitions and those to revoke; None if it stays as it is."""
    member = Member(
        member_id="m",
        epoch=epoch,
        previous_epoch=epoch,
        state=state,
        assigned=to_partitions(of(assigned)),
        revoking=to_partitions(of(revoking)),
    )
    of_others = of(others)
    found = reconcile(
        member,
        target[0],
        of(target[1]),
        lambda topic_id, number: number in of_others.get(topic_id, ()),
        None if owned is None else of(owned),
    )
    if found is member:
        return None
    return found.state, found.epoch, found.previous_epoch, to_assignment(found.assigned), to_assignment(found.revoking)


def test_a_stable_member_moves_to_the_new_epoch() -> None:
    has: Both = {1, 2, 3}, {4, 5, 6}
    assert step(STABLE, 11, has, NOTHING, (11, has), None) is None
    assert step(STABLE, 10, has, NOTHING, (11, has), None) == (STABLE, 11, 10, of(has), {})
    more: Both = {1, 2, 3, 4}, {4, 5, 6, 7}
    assert step(STABLE, 10, has, NOTHING, (11, more), None) == (STABLE, 11, 10, of(more), {})


def test_partitions_that_others_own_are_waited_for_at_the_new_epoch() -> None:
    has: Both = {1, 2, 3}, {4, 5, 6}
    target = 11, ({1, 2, 3, 4}, {4, 5, 6, 7})
    found = step(STABLE, 10, has, NOTHING, target, None, others=({4}, set()))
    assert found == (UNRELEASED, 11, 10, of(({1, 2, 3}, {4, 5, 6, 7})), {})
    still = step(UNRELEASED, 11, ({1, 2, 3}, {4, 5, 6, 7}), NOTHING, target, None, others=({4}, set()))
    assert still == (UNRELEASED, 11, 11, of(({1, 2, 3}, {4, 5, 6, 7})), {})
    last = step(UNRELEASED, 11, ({1, 2, 3}, {4, 5, 6, 7}), NOTHING, target, None)
    assert last == (STABLE, 11, 11, of(target[1]), {})


def test_partitions_are_revoked_at_the_old_epoch() -> None:
    has: Both = {1, 2, 3}, {4, 5, 6}
    target = 11, ({2, 3, 4}, {5, 6, 7})
    for reported in (None, has):  # a member that reports nothing may still own them
        found = step(STABLE, 10, has, NOTHING, target, reported)
        assert found == (UNREVOKED, 10, 10, of(({2, 3}, {5, 6})), of(({1}, {4})))
    has_not: Both = {2, 3}, {5, 6}
    assert step(STABLE, 10, has, NOTHING, target, has_not) == (STABLE, 11, 10, of(target[1]), {})


@pytest.mark.parametrize("reported", [None, ({1, 2, 3}, {4, 5, 6}), ({1}, set()), (set(), {4})])
def test_a_member_that_still_owns_what_it_must_revoke_stays(reported: Both | None) -> None:
    target = 12, ({2, 3}, {5, 6})
    assert step(UNREVOKED, 10, ({2, 3}, {5, 6}), ({1}, {4}), target, reported) is None


def test_a_member_that_revoked_takes_the_next_epoch_and_no_later_one_while_it_has_to_revoke_more() -> None:
    """The target has moved on to epoch 12 meanwhile, where it loses more: it is at epoch 11 until it has done so."""
    has: Both = {2, 3}, {5, 6}
    more = step(UNREVOKED, 10, has, ({1}, {4}), (12, ({3}, {6})), has)
    assert more == (UNREVOKED, 11, 10, of(({3}, {6})), of(({2}, {5})))
    nothing_more = step(UNREVOKED, 10, has, ({1}, {4}), (12, has), has)
    assert nothing_more == (STABLE, 12, 10, of(has), {})
    waits = step(UNREVOKED, 10, has, ({1}, {4}), (12, ({2, 3, 4}, {5, 6, 7})), has, others=({4}, set()))
    assert waits == (UNRELEASED, 12, 10, of(({2, 3}, {5, 6, 7})), {})


def test_a_waiting_member_may_have_to_revoke_first() -> None:
    has: Both = {2, 3}, {5, 6}
    found = step(UNRELEASED, 11, has, NOTHING, (12, ({3}, {6})), has)
    assert found == (UNREVOKED, 11, 11, of(({3}, {6})), of(({2}, {5})))
