"""Placement of the replicas of new partitions.

Nodes are put in an order that changes the rack from one to the next where possible; each partition takes the nodes
that follow the first one of the partition before it. So leaders are spread evenly, and replicas over racks.

Source: org.apache.kafka.metadata.placement.StripedReplicaPlacer 3.9.1. Kafka begins at a random node; here that is the
first one, unless a seed is given.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict

from kwire.broker.replication.members import Members

__all__ = ["Placement"]


class Placement:
    """Chooses replicas for new partitions. seed: of the random order of nodes; None for the order of their ids."""

    def __init__(self, members: Members, seed: int | None = None) -> None:
        self._members, self._seed = members, seed
        self.start_again()

    def start_again(self) -> None:
        """Draw the random order from its beginning."""
        self._random = None if self._seed is None else random.Random(self._seed)

    def place(self, partition_count: int, replication_factor: int, first: int = 0) -> list[list[int]]:
        """Return the replicas of each new partition, the preferred leader first. first: number of the first one.

        A stopped node is chosen only if too few are running, and never as the first replica if one is running.
        """
        nodes = self._in_order()
        start = first if self._random is None else self._random.randrange(len(nodes))
        placed = []
        for index in range(start, start + partition_count):
            rotated = [nodes[(index + step) % len(nodes)] for step in range(len(nodes))]
            rotated.sort(key=lambda each: each not in self._members.running)  # stable
            placed.append(rotated[:replication_factor])
        return placed

    def _in_order(self) -> list[int]:
        by_rack: defaultdict[str | None, list[int]] = defaultdict(list)
        for node_id, member in self._members.all.items():
            by_rack[member.rack].append(node_id)
        racks = list(by_rack.values())
        if self._random is not None:
            for rack in racks:
                self._random.shuffle(rack)
            self._random.shuffle(racks)
        return [each for row in itertools.zip_longest(*racks) for each in row if each is not None]
