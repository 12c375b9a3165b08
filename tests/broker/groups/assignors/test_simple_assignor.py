"""The assignor of share groups."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from uuid import UUID

import pytest

from kwire.broker.groups.assignors import MemberToAssign, assign_simply
from kwire.broker.groups.consumer_group import Assignment

A, B = UUID(int=1), UUID(int=2)


def assign(
    subscriptions: Mapping[str, tuple[UUID, ...]],
    counts: Mapping[UUID, int],
    before: Mapping[str, Assignment] | None = None,
) -> dict[str, Assignment]:
    members = {
        name: MemberToAssign(instance_id=None, topic_ids=topics, target=(before or {}).get(name, {}))
        for name, topics in subscriptions.items()
    }
    return assign_simply(members, {topic: frozenset(range(count)) for topic, count in counts.items()})


def sizes(assignment: Mapping[str, Assignment]) -> list[int]:
    return sorted(sum(map(len, each.values())) for each in assignment.values())


@pytest.mark.parametrize(
    ("members", "partitions", "expected"),
    [(1, 3, [3]), (2, 3, [1, 2]), (3, 3, [1, 1, 1]), (4, 3, [1, 1, 2, 2]), (6, 3, [1] * 6), (2, 0, [0, 0])],
)
def test_partitions_are_shared_evenly(members: int, partitions: int, expected: list[int]) -> None:
    found = assign({f"m{i}": (A,) for i in range(members)}, {A: partitions})
    assert sizes(found) == expected
    shared = Counter(index for each in found.values() for index in each.get(A, ()))
    assert set(shared.values()) <= {-(-members // partitions) if partitions else 0}


def test_members_keep_what_they_had() -> None:
    before = assign({"a": (A,), "b": (A,)}, {A: 4})
    assert assign({"a": (A,), "b": (A,)}, {A: 4}, before) == before
    after = assign({"a": (A,), "b": (A,), "c": (A,)}, {A: 4}, before)
    assert sizes(after) == [1, 1, 2]
    assert all(after[name][A] <= before[name][A] for name in ("a", "b"))


def test_each_topic_goes_to_its_subscribers() -> None:
    found = assign({"a": (A,), "b": (A, B), "c": (B,)}, {A: 2, B: 2})
    assert {name: set(each) for name, each in found.items()} == {"a": {A}, "b": {A, B}, "c": {B}}


def test_every_partition_has_a_member() -> None:
    rng = random.Random(1)
    before: dict[str, Assignment] = {}
    for _ in range(200):
        names = [f"m{i}" for i in range(rng.randint(1, 7))]
        counts = {A: rng.randint(1, 5), B: rng.randint(1, 5)}
        both = rng.random() < 0.5
        subscriptions = {name: (A, B) if both else rng.choice([(A,), (B,), (A, B)]) for name in names}
        before = assign(subscriptions, counts, before)
        for topic, count in counts.items():
            if any(topic in topics for topics in subscriptions.values()):
                assert {index for each in before.values() for index in each.get(topic, ())} == set(range(count))
        assert all(set(each) <= set(subscriptions[name]) for name, each in before.items())
