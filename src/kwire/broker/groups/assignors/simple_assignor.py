"""The assignor of share groups: each partition is shared by as few members as keep all of them busy.

With as many members as partitions or fewer, each partition has one member. With more members, a partition has several.
Members keep what they had where that is possible. Topics are assigned one by one if subscriptions differ.

Source: org.apache.kafka.coordinator.group.assignor.SimpleAssignor 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from kwire.broker.groups.assignors.specification import MemberToAssign
from kwire.broker.groups.consumer_group import Assignment

__all__ = ["assign_simply"]

Partition = tuple[UUID, int]


def assign_simply(
    members: Mapping[str, MemberToAssign], assignable: Mapping[UUID, frozenset[int]]
) -> dict[str, Assignment]:
    """Return the target assignments by member id. assignable: the partitions of topics that can be assigned."""
    subscriptions = {frozenset(member.topic_ids) for member in members.values()}
    result: dict[str, set[Partition]] = {member_id: set() for member_id in members}
    if len(subscriptions) <= 1:
        topics = next(iter(subscriptions), frozenset())
        _share(list(members), topics, members, assignable, result)
    else:
        for topic in {topic: None for member in members.values() for topic in member.topic_ids}:
            readers = [member_id for member_id, member in members.items() if topic in member.topic_ids]
            _share(readers, (topic,), members, assignable, result)
    return {member_id: by_topic(partitions) for member_id, partitions in result.items()}


def _share(
    readers: Sequence[str],
    topics: Iterable[UUID],
    members: Mapping[str, MemberToAssign],
    assignable: Mapping[UUID, frozenset[int]],
    result: dict[str, set[Partition]],
) -> None:
    """Assign the partitions of topics to members that all subscribe to them."""
    partitions = [(topic, index) for topic in topics for index in sorted(assignable.get(topic, ()))]
    sharing = -(-len(readers) // len(partitions)) if partitions else 0  # members of each partition
    total = sharing * len(partitions)
    wanted = {
        member_id: -(-total * (i + 1) // len(readers)) - -(-total * i // len(readers))
        for i, member_id in enumerate(readers)
    }
    holders: dict[Partition, set[str]] = {each: set() for each in partitions}
    held: dict[str, set[Partition]] = {member_id: set() for member_id in readers}
    for member_id in readers:  # what they had, no more than they should
        for topic, indexes in members[member_id].target.items():
            for index in sorted(indexes):
                each = (topic, index)
                if each in holders and len(held[member_id]) < wanted[member_id] and len(holders[each]) < sharing:
                    holders[each].add(member_id)
                    held[member_id].add(each)
    unfilled = [member_id for member_id in readers if len(held[member_id]) < wanted[member_id]]
    turn = 0
    for each in partitions:
        tried = 0
        while unfilled and len(holders[each]) < sharing and tried < len(unfilled):
            turn %= len(unfilled)
            member_id = unfilled[turn]
            if member_id in holders[each]:
                turn, tried = turn + 1, tried + 1
                continue
            holders[each].add(member_id)
            held[member_id].add(each)
            tried = 0
            if len(held[member_id]) >= wanted[member_id]:
                del unfilled[turn]
            else:
                turn += 1
    for member_id, partitions_held in held.items():
        result[member_id] |= partitions_held


def by_topic(partitions: Iterable[Partition]) -> Assignment:
    """Return partitions by topic id."""
    topics: dict[UUID, set[int]] = {}
    for topic, index in sorted(partitions, key=lambda each: (each[0].bytes, each[1])):
        topics.setdefault(topic, set()).add(index)
    return {topic: frozenset(indexes) for topic, indexes in topics.items()}
