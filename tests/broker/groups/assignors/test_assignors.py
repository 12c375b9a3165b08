"""Both assignors: the cases of Kafka's own tests, and invariants of every assignment."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.broker.groups.assignors import (
    Assignor,
    GroupToAssign,
    MemberToAssign,
    assign_ranges,
    assign_uniformly,
)

TOPICS = [uuid.UUID(int=number + 1) for number in range(4)]


def group(members: dict[str, list[int]], counts: list[int], targets: dict[str, Any] | None = None) -> GroupToAssign:
    """Members by the numbers of their topics; counts: partitions of each topic."""
    return GroupToAssign(
        members={
            name: MemberToAssign(
                instance_id=name if name.startswith("static") else None,
                topic_ids=tuple(TOPICS[number] for number in topics),
                target=(targets or {}).get(name, {}),
            )
            for name, topics in members.items()
        },
        partition_counts={TOPICS[number]: count for number, count in enumerate(counts)},
    )


def by_number(assignment: dict[str, Any]) -> dict[str, dict[int, set[int]]]:
    return {name: {TOPICS.index(t): set(p) for t, p in topics.items()} for name, topics in assignment.items()}


# Of RangeAssignorTest: (members, partition counts, assignment)
RANGES = [
    ({"a": [0, 2], "b": [0, 2]}, [3, 0, 2], {"a": {0: {0, 1}, 2: {0}}, "b": {0: {2}, 2: {1}}}),
    (
        {"a": [0, 1], "b": [2], "c": [1, 2]},
        [3, 3, 2],
        {"a": {0: {0, 1, 2}, 1: {0, 1}}, "b": {2: {0}}, "c": {1: {2}, 2: {1}}},
    ),
    (
        {"a": [0, 2], "b": [0, 2], "c": [0, 2], "d": [0, 2]},
        [3, 0, 2],
        {"a": {0: {0}, 2: {0}}, "b": {0: {1}, 2: {1}}, "c": {0: {2}}, "d": {}},
    ),
    ({"b": [0], "static-z": [0]}, [3], {"static-z": {0: {0, 1}}, "b": {0: {2}}}),
]


@pytest.mark.parametrize(("members", "counts", "expected"), RANGES)
def test_range_assignments_equal_kafkas(members: dict[str, list[int]], counts: list[int], expected: Any) -> None:
    assert by_number(assign_ranges(group(members, counts))) == expected


def test_assignments_are_sticky_when_members_join_and_leave() -> None:
    two = assign_uniformly(group({"a": [0], "b": [0]}, [6]))
    three = assign_uniformly(group({"a": [0], "b": [0], "c": [0]}, [6], two))
    for name in ("a", "b"):
        assert set(three[name][TOPICS[0]]) < set(two[name][TOPICS[0]])
    again = assign_uniformly(group({"a": [0], "b": [0]}, [6], three))
    for name in ("a", "b"):
        assert set(again[name][TOPICS[0]]) > set(three[name][TOPICS[0]])


def test_the_owner_of_the_odd_partition_keeps_it() -> None:
    targets = {"a": {TOPICS[0]: frozenset({0})}, "b": {TOPICS[0]: frozenset({1, 2})}}
    assert assign_uniformly(group({"a": [0], "b": [0]}, [3], targets)) == targets


def test_partitions_move_between_members_to_balance_the_group() -> None:
    targets = {"a": {TOPICS[0]: frozenset(range(2)), TOPICS[1]: frozenset(range(3))}}
    assignment = assign_uniformly(group({"a": [0, 1], "b": [1], "c": [1]}, [2, 3], targets))
    assert {name: sum(map(len, topics.values())) for name, topics in assignment.items()} == {"a": 2, "b": 2, "c": 1}
    assert assignment["a"] == {TOPICS[0]: frozenset({0, 1})}


@pytest.mark.parametrize("assignor", [assign_ranges, assign_uniformly])
def test_a_group_without_members_or_topics_has_an_empty_assignment(assignor: Assignor) -> None:
    assert assignor(group({}, [3])) == {}
    assert assignor(group({"a": []}, [3])) == {"a": {}}
    assert assignor(group({"a": [0]}, [0])) == {"a": {}}


groups = st.builds(
    group,
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d", "e", "static-f"]), st.lists(st.integers(0, 3), unique=True), max_size=6
    ),
    st.lists(st.integers(0, 7), min_size=4, max_size=4),
)


def check(assigned: GroupToAssign, assignment: dict[str, Any]) -> None:
    """Check that every subscribed partition has one owner that subscribes to it, and that no other is owned."""
    owners = [(t, p) for topics in assignment.values() for t, partitions in topics.items() for p in partitions]
    subscribed = {topic for member in assigned.members.values() for topic in member.topic_ids}
    assert sorted(owners) == sorted((t, p) for t in subscribed for p in range(assigned.partition_counts[t]))
    for name, topics in assignment.items():
        assert set(topics) <= set(assigned.members[name].topic_ids)


@given(groups)
def test_the_range_assignor_assigns_every_partition_to_a_subscriber(assigned: GroupToAssign) -> None:
    assignment = assign_ranges(assigned)
    check(assigned, assignment)
    for topic, count in assigned.partition_counts.items():
        sizes = [len(assignment[n].get(topic, ())) for n, m in assigned.members.items() if topic in m.topic_ids]
        assert not sizes or max(sizes) - min(sizes) <= 1 or count == 0


@given(groups, groups)
def test_the_uniform_assignor_is_balanced_complete_and_idempotent(before: GroupToAssign, after: GroupToAssign) -> None:
    targets = assign_uniformly(before)
    assigned = GroupToAssign(
        members={
            name: MemberToAssign(
                instance_id=member.instance_id, topic_ids=member.topic_ids, target=targets.get(name, {})
            )
            for name, member in after.members.items()
        },
        partition_counts=after.partition_counts,
    )
    assignment = assign_uniformly(assigned)
    check(assigned, assignment)
    sizes = {name: sum(map(len, topics.values())) for name, topics in assignment.items()}
    for name, topics in assignment.items():  # no partition can move to bring two members nearer to each other
        for topic in topics:
            for other, member in assigned.members.items():
                assert topic not in member.topic_ids or sizes[name] <= sizes[other] + 1
    again = {
        n: MemberToAssign(instance_id=None, topic_ids=m.topic_ids, target=assignment[n])
        for n, m in after.members.items()
    }
    assert assign_uniformly(GroupToAssign(members=again, partition_counts=after.partition_counts)) == assignment
