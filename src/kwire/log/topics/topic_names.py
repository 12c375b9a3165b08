"""Names of the topic ids in records of newer groups."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from uuid import UUID

from kwire.errors import LogError
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.topics.cluster_metadata import (
    list_snapshots,
    read_cluster_records,
    read_snapshot_records,
    replay_cluster,
)
from kwire.log.topics.history import Source
from kwire.messages import TopicRecord

__all__ = ["topic_names"]


def topic_names(source: Source, *, deleted: bool = False) -> dict[UUID, str]:
    """Return topic id -> name from the metadata log and the partitions' `partition.metadata`, if readable.

    deleted: include topics that were deleted since, for past states. No two topics have the same id. Reads one small
    file per topic and the metadata log if there is one; with `deleted` all of it and all snapshots.
    """
    if not isinstance(source, Mapping):
        return {}
    names: dict[UUID, str] = {}
    if deleted and (METADATA_TOPIC, 0) in source:
        names.update(_created_topics(source))
    if (METADATA_TOPIC, 0) in source:
        with contextlib.suppress(LogError):  # a part of the log: the files beside the topics' own are still there
            names.update((topic.topic_id, topic.name) for topic in replay_cluster(source).topics.values())
    known = set(names.values())
    for (topic, _), log in source.items():
        if topic in known:
            continue
        try:
            topic_id = log.topic_id
        except LogError:
            continue
        if topic_id is not None:
            names[topic_id] = topic
            known.add(topic)
    return names


def _created_topics(source: Source) -> Iterator[tuple[UUID, str]]:
    """Yield (id, name) of every topic in a snapshot or the metadata log."""
    snapshots = (read_snapshot_records(source, snapshot) for snapshot in list_snapshots(source))
    for record in itertools.chain(*snapshots, read_cluster_records(source)):
        if isinstance(record.value, TopicRecord):
            yield record.value.topic_id, record.value.name
