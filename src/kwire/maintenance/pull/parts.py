"""A pull by several processes: one chooses what to copy, others copy a partition each, and the first one finishes.

plan     the driver: the partitions and their offsets, those of groups first; recreated topics are set aside
copy     a process: one partition into the store, with its own lease
finish   the driver: the manifest
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kwire.client.client import Client
from kwire.client.cluster import Cluster, Topic
from kwire.client.fetcher import Fetcher
from kwire.errors import KwireError
from kwire.identifiers import TopicPartition, render_uuid
from kwire.log.writing.log_config import LogConfig
from kwire.maintenance.pull.cluster import Bounds, PulledTopic, SourceCluster
from kwire.maintenance.pull.manifest import Event, Manifest, PartitionEntry, TopicEntry
from kwire.maintenance.pull.run import Pull, PullOptions, copy_all, log_config, now
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
    """What a process has copied."""

    entry: PartitionEntry
    events: list[Event]
    copied_bytes: int


def plan_parts(run: Pull, target: StoreTarget, topics: Sequence[Topic]) -> list[Part]:
    """Return the partitions to copy; those of which there is nothing new are done.

    Raises BrokerError, ConnectionFailed, LogError.
    """
    parts = []
    for key, bounds in run.bounds(topics).items():
        run.set_aside_recreated(key)
        known, topic = target.known(key), run.topics[key[0]]
        if known is not None and known.log_end_offset == bounds.high_watermark:
            run.done[key] = PartitionEntry(
                log_start_offset=known.log_start_offset,
                log_end_offset=known.log_end_offset,
                high_watermark=bounds.high_watermark,
                segments=known.segments,
            )
            continue
        parts.append(
            Part(
                cluster_id=run.cluster.cluster_id,
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
    config: LogConfig = log_config(part.topic.configs)
    target.open(cluster_id=part.cluster_id, configs={name: config}, earlier=earlier)
    run = Pull(
        client=client,
        source=SourceCluster(client=client, patterns=[name], with_groups=False),
        target=target,
        options=PullOptions(topics=[name], partitions=[part.number], groups=False, cluster=False),
        cluster=Cluster(brokers={}, cluster_id=part.cluster_id, topics={name: topic}),
        earlier=earlier,
        began_ms=now(),
        fetcher=Fetcher(client),
        topics={name: part.topic},
    )
    is_clean = False
    try:
        run.open(part.key, part.bounds)
        run.checkpoint()
        copy_all(run, lambda: False, lambda n: None)
        is_clean = True
    finally:
        run.fetcher.close()
        target.close(run.manifest, clean=is_clean)
    failure: KwireError | None = run.failures.get(part.key)
    if failure is not None:
        raise failure
    return CopiedPart(run.copies[part.key].entry(), run.events, run.copied_bytes)
