"""A pull by several processes: one chooses what to copy, others copy a partition each, and the first one finishes.

plan     the driver: the partitions and their offsets, groups' partitions first; recreated topics are set aside
copy     a process: one partition into the store, with its own lease
finish   the driver: the manifest
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kwire.client.client import Client
from kwire.client.cluster import Topic
from kwire.errors import KwireError
from kwire.identifiers import TopicPartition, render_uuid
from kwire.maintenance.pull.cluster import Bounds, PulledTopic, SourceCluster
from kwire.maintenance.pull.copier import Copier
from kwire.maintenance.pull.manifest import Event, Manifest, PartitionEntry, TopicEntry, now
from kwire.maintenance.pull.run import Pull, servers_of
from kwire.maintenance.pull.state import CopyState
from kwire.maintenance.pull.store_target import StoreTarget
from kwire.storage.writable_store import WritableStore

__all__ = ["CopiedPart", "Part", "copy_part", "plan_parts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A partition to copy up to bounds.high_watermark. known: what an earlier run has copied."""

    cluster_id: str | None
    topic: PulledTopic
    number: int
    bounds: Bounds
    known: PartitionEntry | None

    @property
    def key(self) -> TopicPartition:
        """The topic's name and the partition's number."""
        return self.topic.topic.name, self.number


class CopiedPart(NamedTuple):
    """Result of a process that copied a part."""

    entry: PartitionEntry
    events: list[Event]
    copied_bytes: int


def plan_parts(run: Pull, target: StoreTarget, topics: Sequence[Topic]) -> list[Part]:
    """Return the partitions to copy; partitions without new records are done.

    Raises BrokerError, ConnectionFailed, LogError.
    """
    parts = []
    for key, bounds in run.bounds(topics).items():
        run.set_aside(key)
        known, topic = target.known(key), run.state.topics[key[0]]
        if known is not None and known.log_end_offset == bounds.high_watermark:
            run.state.done[key] = PartitionEntry(
                log_start_offset=known.log_start_offset,
                log_end_offset=known.log_end_offset,
                high_watermark=bounds.high_watermark,
                segments=known.segments,
            )
            continue
        parts.append(
            Part(
                cluster_id=run.state.cluster_id,
                topic=replace(topic, topic=replace(topic.topic, partitions={})),
                number=key[1],
                bounds=bounds,
                known=known,
            )
        )
    return parts


def copy_part(client: Client, store: WritableStore, part: Part) -> CopiedPart:
    """Copy a partition. Raises KwireError if it cannot be copied to its end; what was copied is kept."""
    name, topic = part.topic.topic.name, part.topic.topic
    target = StoreTarget(store, part=part.key)
    entries = {} if part.known is None else {part.number: part.known}
    topic_id = None if topic.topic_id is None else render_uuid(topic.topic_id)
    known = TopicEntry(id=topic_id, configs=part.topic.configs, partitions=entries)
    earlier = Manifest.begun(part.cluster_id, [], now(), {name: known})
    target.open(cluster_id=part.cluster_id, configs={name: part.topic.log_config}, earlier=earlier)
    state = CopyState(
        cluster_id=part.cluster_id, servers=servers_of(client), earlier=earlier, topics={name: part.topic}
    )
    copier = Copier(client, SourceCluster(client=client, patterns=[name], with_groups=False), target, state)
    is_clean = False

    def checkpoint() -> None:
        target.checkpoint(state.manifest, now_ms=now())

    try:
        copier.open(part.key, part.bounds)
        checkpoint()
        copier.run(checkpoint=checkpoint)
        is_clean = True
    finally:
        copier.close()
        target.close(state.manifest, clean=is_clean)
    failure: KwireError | None = state.failures.get(part.key)
    if failure is not None:
        raise failure
    return CopiedPart(state.copies[part.key].entry(), state.events, state.copied_bytes)
