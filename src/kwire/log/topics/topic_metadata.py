"""Topic ids and cleanup policies from the metadata log of a directory, read on first use."""

from __future__ import annotations

import threading
import uuid
from functools import cached_property
from typing import TYPE_CHECKING

from kwire.errors import KwireError

if TYPE_CHECKING:
    from kwire.internal_topics.cluster_state import ClusterState
    from kwire.log.reading.readable_log import ReadableLog

__all__ = ["TopicMetadata"]

CLEANUP_POLICY, BROKER_CLEANUP_POLICY = "cleanup.policy", "log.cleanup.policy"


class TopicMetadata:
    """Topic ids and cleanup policies from the metadata log of a directory; everything is unknown without one.

    Thread-safe and picklable. metadata_log: of the directory; its files may be missing.
    """

    def __init__(self, metadata_log: ReadableLog) -> None:
        self._metadata_log = metadata_log
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[TopicMetadata], tuple[ReadableLog]]:
        return TopicMetadata, (self._metadata_log.reopened(),)

    @cached_property
    def _cluster(self) -> ClusterState | None:
        from kwire.log.topics.cluster_metadata import replay_cluster

        try:
            return replay_cluster(self._metadata_log)
        except KwireError:
            return None  # no metadata log, or a damaged one, which is reported elsewhere

    def _known(self) -> ClusterState | None:
        with self._lock:
            return self._cluster

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """Return the id of a topic; None if the metadata log does not contain it."""
        cluster = self._known()
        entry = None if cluster is None else cluster.topics.get(topic)
        return None if entry is None else entry.topic_id

    def is_compacted(self, topic: str) -> bool | None:
        """Return whether a topic's cleanup.policy contains `compact`; None if the metadata log does not contain it.

        Defaults in server.properties are unknown; cleaner-offset-checkpoint shows which partitions were compacted.
        """
        cluster = self._known()
        if cluster is None or topic not in cluster.topics:
            return None
        policy = cluster.configs.get(("topic", topic), {}).get(CLEANUP_POLICY)
        if policy is not None:
            return "compact" in policy
        brokers = (settings for (kind, _), settings in cluster.configs.items() if kind == "broker")
        return any("compact" in settings.get(BROKER_CLEANUP_POLICY, "") for settings in brokers)
