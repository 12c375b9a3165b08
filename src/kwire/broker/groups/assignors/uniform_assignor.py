"""The uniform assignor: as even as possible, with as few moves as possible.

When all members subscribe to the same topics, each gets the same number of partitions, give or take one. It keeps its
partitions up to that number, and the remaining ones go to members with fewer. Otherwise partitions are assigned one at
a time to the member with the fewest, and then moved until no move makes the assignment more even.

Where several choices are equally even, Kafka's depends on the order of a hash table. Here the extra partition stays
with a member that had it; otherwise the order of members and topics decides, so assignments are reproducible.

Source: org.apache.kafka.coordinator.group.assignor.UniformAssignor, UniformHomogeneousAssignmentBuilder,
UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

from kwire.broker.groups.assignors.specification import GroupToAssign
from kwire.broker.groups.consumer_group import Assignment

__all__ = ["assign_uniformly"]

TopicIdPartition = tuple[UUID, int]


def assign_uniformly(group: GroupToAssign) -> dict[str, Assignment]:
    """Assign partitions evenly."""
    owned = _assign_alike(group) if group.is_homogeneous else _Mixed(group).assign()
    return {member_id: _by_topic(partitions) for member_id, partitions in owned.items()}


def _by_topic(partitions: list[TopicIdPartition]) -> Assignment:
    grouped: defaultdict[UUID, list[int]] = defaultdict(list)
    for topic_id, partition in partitions:
        grouped[topic_id].append(partition)
    return {topic_id: frozenset(numbers) for topic_id, numbers in grouped.items()}


def _kept(group: GroupToAssign, taken: set[TopicIdPartition]) -> dict[str, list[TopicIdPartition]]:
    """Return the partitions that members keep, each with its first owner; collect them in taken."""
    kept: dict[str, list[TopicIdPartition]] = {}
    for member_id, member in group.members.items():
        partitions = [
            (topic_id, partition)
            for topic_id in member.topic_ids
            for partition in sorted(member.target.get(topic_id, ()))
            if partition < group.partition_counts[topic_id] and (topic_id, partition) not in taken
        ]
        taken.update(partitions)
        kept[member_id] = partitions
    return kept


def _assign_alike(group: GroupToAssign) -> dict[str, list[TopicIdPartition]]:
    """Assign to members that subscribe to the same topics."""
    taken: set[TopicIdPartition] = set()
    owned = _kept(group, taken)
    first = next(iter(group.members.values()), None)
    everything = [(t, p) for t in (first.topic_ids if first else ()) for p in range(group.partition_counts[t])]
    free = [partition for partition in everything if partition not in taken]
    quota, extra = divmod(len(everything), len(owned) or 1)
    with_extra = set(sorted(owned, key=lambda member_id: len(owned[member_id]) <= quota)[:extra])
    below: list[tuple[str, int]] = []
    for member_id, partitions in owned.items():
        limit = quota + (member_id in with_extra)
        free.extend(partitions[limit:])
        del partitions[limit:]
        below.append((member_id, limit - len(partitions)))
    rest = iter(free)
    for member_id, missing in below:
        owned[member_id].extend(partition for _, partition in zip(range(missing), rest, strict=False))
    return owned


class _Mixed:
    """Assignment to members that subscribe to different topics."""

    def __init__(self, group: GroupToAssign) -> None:
        self.group = group
        self.subscribers: defaultdict[UUID, list[str]] = defaultdict(list)
        for member_id, member in group.members.items():
            for topic_id in member.topic_ids:
                self.subscribers[topic_id].append(member_id)
        taken: set[TopicIdPartition] = set()
        self.owned = {member_id: set(partitions) for member_id, partitions in _kept(group, taken).items()}
        self.owner = {partition: member_id for member_id, partitions in self.owned.items() for partition in partitions}
        self.rank = {member_id: index for index, member_id in enumerate(group.members)}

    def assign(self) -> dict[str, list[TopicIdPartition]]:
        """Assign the free partitions, then balance."""
        order = self._scarcest_first()
        for partition in order:
            if partition not in self.owner:
                self._assign(partition, self._least_loaded(partition))
        moved = True
        while moved:
            moved = False
            for partition in order:
                owner, other = self.owner[partition], self._least_loaded(partition)
                if len(self.owned[owner]) > len(self.owned[other]) + 1:
                    self.owned[owner].discard(partition)
                    self._assign(partition, other)
                    moved = True
        return {member_id: sorted(partitions) for member_id, partitions in self.owned.items()}

    def _assign(self, partition: TopicIdPartition, member_id: str) -> None:
        self.owned[member_id].add(partition)
        self.owner[partition] = member_id

    def _least_loaded(self, partition: TopicIdPartition) -> str:
        return min(self.subscribers[partition[0]], key=lambda member: (len(self.owned[member]), self.rank[member]))

    def _scarcest_first(self) -> list[TopicIdPartition]:
        """Return all partitions; topics with the most partitions per subscriber come first."""
        counts = self.group.partition_counts
        topics = sorted(
            self.subscribers, key=lambda t: (-counts[t] / len(self.subscribers[t]), len(self.subscribers[t]))
        )
        return [(topic_id, partition) for topic_id in topics for partition in range(counts[topic_id])]
