"""The range assignor: each member gets a run of neighbouring partitions of each topic.

Members are ordered by instance id, then member id, so partition p of topics with the same number of partitions and
subscribers is assigned to the same member, as joins of two topics require. Earlier assignments do not count.

Source: org.apache.kafka.coordinator.group.assignor.RangeAssignor.
"""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from kwire.broker.groups.assignors.specification import GroupToAssign
from kwire.broker.groups.consumer_group import Assignment

__all__ = ["assign_ranges"]


def assign_ranges(group: GroupToAssign) -> dict[str, Assignment]:
    """Assign ranges; the first members of a topic get one partition more if it does not divide evenly."""
    subscribers = Counter(topic_id for member in group.members.values() for topic_id in member.topic_ids)
    next_partition: Counter[UUID] = Counter()
    next_member: Counter[UUID] = Counter()
    assignments: dict[str, Assignment] = {}
    for member_id, member in sorted(group.members.items(), key=lambda item: _order(item[0], item[1].instance_id)):
        assignment = {}
        for topic_id in member.topic_ids:
            quota, extra = divmod(group.partition_counts[topic_id], subscribers[topic_id])
            start = next_partition[topic_id]
            end = start + quota + (next_member[topic_id] < extra)
            next_member[topic_id] += 1
            next_partition[topic_id] = end
            if start < end:
                assignment[topic_id] = frozenset(range(start, end))
        assignments[member_id] = assignment
    return assignments


def _order(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    """Order static members first."""
    return (True, member_id) if instance_id is None else (False, instance_id)
