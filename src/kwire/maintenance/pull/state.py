"""State of a copy of a cluster: from earlier runs, from this one, and from processes that copied parts of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kwire.errors import KwireError
from kwire.identifiers import TopicPartition, render_uuid
from kwire.maintenance.pull.cluster import PulledTopic
from kwire.maintenance.pull.manifest import ClusterEntry, Event, Manifest, PartitionEntry, TopicEntry, now
from kwire.maintenance.pull.partition_copy import PartitionCopy

__all__ = ["CopyState"]


@dataclass(slots=True, kw_only=True)
class CopyState:
    """The contents of the next manifest, and what is still missing from the copy.

    servers: bootstrap servers of the cluster. earlier: the last run's manifest. topics: of this run. described: the
    last description of the cluster. copies: open partitions. done: partitions that other processes have copied, or
    that had nothing new. failures: partitions that could not be copied to their end. events, copied_bytes: of this run.
    """

    cluster_id: str | None
    servers: Sequence[str]
    earlier: Manifest | None
    began_ms: int = field(default_factory=now)
    topics: dict[str, PulledTopic] = field(default_factory=dict)
    described: ClusterEntry | None = None
    copies: dict[TopicPartition, PartitionCopy] = field(default_factory=dict)
    done: dict[TopicPartition, PartitionEntry] = field(default_factory=dict)
    failures: dict[TopicPartition, KwireError] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    copied_bytes: int = 0

    def __post_init__(self) -> None:
        if self.earlier is not None:
            self.described = self.earlier.cluster

    def happened(self, kind: str, key: TopicPartition, first: int | None = None, end_offset: int | None = None) -> None:
        """Add an event of a partition."""
        self.events.append(
            Event(time_ms=now(), kind=kind, topic=key[0], partition=key[1], first_offset=first, end_offset=end_offset)
        )

    def entries(self) -> dict[TopicPartition, PartitionEntry]:
        """Return the entries of the partitions of this run."""
        return self.done | {key: copy.entry() for key, copy in sorted(self.copies.items())}

    def earlier_topic(self, name: str) -> TopicEntry | None:
        """Return a topic of the earlier manifest; None without it."""
        return None if self.earlier is None else self.earlier.topics.get(name)

    @property
    def is_complete(self) -> bool:
        """Whether the partitions are copied up to their high watermarks."""
        parts = [each.is_complete for each in self.copies.values()] + [each.is_complete for each in self.done.values()]
        return bool(parts) and not self.failures and all(parts)

    def manifest(self, hidden: Sequence[str] = ()) -> Manifest:
        """Return the manifest of the copy, with the topics of earlier runs. hidden: what could not be seen, and why."""
        earlier = self.earlier
        topics: dict[str, TopicEntry] = {} if earlier is None else dict(earlier.topics)
        entries = self.entries()
        by_topic: dict[str, dict[int, PartitionEntry]] = {name: {} for name in self.topics}
        for (name, number), entry in entries.items():
            by_topic[name][number] = entry
        for name, pulled in sorted(self.topics.items()):
            topic_id = None if pulled.topic.topic_id is None else render_uuid(pulled.topic.topic_id)
            before = topics.get(name)
            others = {} if before is None or before.id != topic_id else before.partitions
            topics[name] = TopicEntry(
                id=topic_id,
                configs=pulled.configs,
                partitions=dict(sorted((others | by_topic[name]).items())),
                made_from=list(pulled.made_from),
            )
        return Manifest(
            cluster_id=self.cluster_id,
            bootstrap_servers=list(self.servers),
            began_ms=self.began_ms,
            written_ms=now(),
            complete=self.is_complete and all(entry.is_complete for entry in entries.values()),
            topics=topics,
            hidden=list(hidden),
            events=[*(() if earlier is None else earlier.events), *self.events],
            cluster=self.described,
        )
