"""Names of the topic ids that records of newer groups have in place of names."""

from __future__ import annotations

import contextlib
from uuid import UUID

from kwire.errors import LogError
from kwire.log.internal.cluster_metadata import replay_cluster
from kwire.log.internal.history import Source
from kwire.log.internal.metadata_records import METADATA_TOPIC
from kwire.log.partition_log import PartitionLog

__all__ = ["topic_names"]


def topic_names(source: Source) -> dict[UUID, str]:
    """Topic id -> name, by the metadata log and the partitions' own `partition.metadata`, as far as they can be read.

    Reads one small file a topic, and the metadata log where there is one.
    """
    if isinstance(source, PartitionLog):
        return {}
    names: dict[UUID, str] = {}
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
