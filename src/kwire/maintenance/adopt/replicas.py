"""Replicas, in-sync replicas and epochs of a partition, from the replicas that were found.

The replica with the highest leader epoch, and of those the longest one, has every record that was acknowledged: a
leader is elected from the in-sync replicas, which have all of them, and its epoch's records are a prefix of its log on
every follower. Only replicas that are equal to it are in sync. The others follow: Kafka truncates what the leader does
not have and copies the rest, then adds them to the ISR itself.
Source: KIP-101, KIP-279; kafka.cluster.Partition, ReplicaFetcherThread 3.9.1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kwire.internal_topics.cluster_values import Partition
from kwire.maintenance.adopt.inventory import Replica
from kwire.messages.base import ZERO_UUID

__all__ = ["AdoptedPartition", "place_partition", "place_without_log"]

UNASSIGNED = ZERO_UUID
"""The directory of a replica whose broker has to choose one."""


@dataclass(slots=True, kw_only=True)
class AdoptedPartition:
    """A partition as it will be. replicas: in the directories, the leader's first. notes: what is missing."""

    partition: Partition
    replicas: Sequence[Replica] = ()
    notes: list[str] = field(default_factory=list)


def place_partition(
    index: int, replicas: Sequence[Replica], registered: Partition | None, given: Collection[int]
) -> AdoptedPartition:
    """Place a partition of which replicas were found.

    registered: the partition in the old metadata. given: nodes whose directories are adopted.
    """
    ordered = sorted(replicas, key=lambda each: (*(-value for value in each.progress), each.node_id))
    best = ordered[0].progress
    by_node = {each.node_id: each for each in ordered}
    in_sync = [each.node_id for each in ordered if each.progress == best]
    notes = []
    if registered is None:
        nodes = sorted(by_node)
        nodes = nodes[index % len(nodes) :] + nodes[: index % len(nodes)]  # so that not one node leads all
    else:
        nodes = list(registered.replicas)
        is_current = registered.leader_epoch >= best[0]
        for node in by_node:
            if node not in nodes and is_current and node not in in_sync:
                notes.append(f"the log on node {node} is not one of its replicas, and is not used")
            elif node not in nodes:
                nodes.append(node)
        if registered.isr and by_node.keys().isdisjoint(registered.isr):
            where = ", ".join(map(str, registered.isr))
            notes.append(f"its in-sync replicas were on nodes {where}, which have no log here: records may be missing")
    partition = Partition(
        partition=index,
        replicas=tuple(nodes),
        isr=tuple(node for node in nodes if node in in_sync),
        leader_epoch=max(0, *(each.highest_epoch for each in ordered), registered.leader_epoch if registered else 0),
        partition_epoch=registered.partition_epoch + 1 if registered else 0,
        directories=directories_of(nodes, by_node, registered, given),
    )
    return AdoptedPartition(partition=partition, replicas=ordered, notes=notes)


def place_without_log(
    index: int, registered: Partition | None, given: Collection[int], others: Sequence[int]
) -> AdoptedPartition:
    """Place a partition of which no replica was found. others: nodes with partitions of its topic, at least one."""
    if registered is not None and registered.replicas:
        nodes, isr = list(registered.replicas), list(registered.isr or registered.replicas)
        absent = sorted(set(isr) - set(given))
        if absent:
            note = f"no log found; offline until one of nodes {', '.join(map(str, absent))} starts"
            isr = [node for node in isr if node in absent]  # an empty replica must not be elected
        else:
            note = "no log found; it will be empty"
    else:
        nodes = list(others[index % len(others) :]) + list(others[: index % len(others)])
        isr, note = nodes, "no log found; it will be empty"
    partition = Partition(
        partition=index,
        replicas=tuple(nodes),
        isr=tuple(isr),
        leader_epoch=registered.leader_epoch if registered else 0,
        partition_epoch=registered.partition_epoch + 1 if registered else 0,
        directories=directories_of(nodes, {}, registered, given),
    )
    return AdoptedPartition(partition=partition, notes=[note])


def directories_of(
    nodes: Sequence[int], replicas: dict[int, Replica], registered: Partition | None, given: Collection[int]
) -> tuple[UUID, ...]:
    """Return the directory of each replica; for nodes that are not adopted, as registered."""
    known = {}
    if registered is not None and len(registered.directories) == len(registered.replicas):
        known = dict(zip(registered.replicas, registered.directories, strict=True))
    return tuple(
        replicas[node].directory_id
        if node in replicas
        else UNASSIGNED
        if node in given
        else known.get(node, UNASSIGNED)
        for node in nodes
    )
