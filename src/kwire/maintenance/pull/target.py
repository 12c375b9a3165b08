"""Where a copy of a cluster is written.

read_manifest, begin, open      an earlier copy is recognized by its manifest; a new one begins with one
copy, set_aside, truncate       partitions
appended, checkpoint, close     what was copied becomes durable, and then part of the manifest
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.log.reading.paths import StorageOptions
from kwire.log.writing.log_config import LogConfig
from kwire.maintenance.pull.cluster import Bounds
from kwire.maintenance.pull.manifest import MANIFEST, Manifest, SegmentEntry
from kwire.maintenance.pull.partition_copy import PartitionCopy

__all__ = ["COPY_NODE_ID", "MakeManifest", "Target", "check_manifest", "known_segments"]

COPY_NODE_ID = 1

MakeManifest = Callable[[], Manifest]


class Target(ABC):
    """The target of a run of pull(). url, options: to open it. Methods raise LogError if it cannot be written."""

    url: str
    options: StorageOptions

    @abstractmethod
    def read_manifest(self, cluster_id: str | None) -> Manifest | None:
        """Return the manifest of an earlier copy; None for a new one.

        Raises OptionError for a target that is not a copy of this cluster, LogError for an invalid manifest.
        """

    @abstractmethod
    def begin(self, manifest: Manifest) -> None:
        """Create a new copy with an incomplete manifest, which a later run recognizes."""

    @abstractmethod
    def open(self, *, cluster_id: str | None, configs: Mapping[str, LogConfig], earlier: Manifest | None) -> None:
        """Open the copy to write it. configs: of topics. Raises LogError if another process writes it."""

    @abstractmethod
    def set_config(self, topic: str, config: LogConfig) -> None:
        """Set the configs of a topic."""

    @abstractmethod
    def topic_id(self, key: TopicPartition) -> uuid.UUID | None:
        """Return the topic id of a partition in the copy; None if it has none, or the partition is missing."""

    @abstractmethod
    def set_aside(self, key: TopicPartition) -> int:
        """Keep a partition in a directory that ends with -stray; return its log end offset."""

    @abstractmethod
    def copy(
        self,
        key: TopicPartition,
        bounds: Bounds,
        *,
        topic_id: uuid.UUID | None,
        now_ms: int,
    ) -> PartitionCopy:
        """Open the copy of a partition, or create it. bounds: of the leader's log."""

    @abstractmethod
    def truncate(self, key: TopicPartition, offset: int, *, now_ms: int) -> PartitionCopy:
        """Remove what the leader does not have from offset on; return the copy to continue with."""

    @abstractmethod
    def appended(self, key: TopicPartition) -> None:
        """Handle what was appended to the copy of a partition."""

    @abstractmethod
    def checkpoint(self, manifest: MakeManifest, *, now_ms: int) -> None:
        """Write what is due, and then the manifest."""

    @abstractmethod
    def close(self, manifest: MakeManifest, *, clean: bool) -> None:
        """Write everything, and then the manifest; with clean=False leave the copy as a crash would."""


def check_manifest(data: bytes, url: str, cluster_id: str | None) -> Manifest:
    """Parse the manifest of an earlier copy. Raises OptionError for the copy of another cluster, LogError."""
    manifest = Manifest.parse(data, f"{url}/{MANIFEST}")
    if manifest.cluster_id != cluster_id:
        raise OptionError(f"{url}: a copy of cluster {manifest.cluster_id}, not of {cluster_id}")
    return manifest


def known_segments(manifest: Manifest | None, key: TopicPartition) -> dict[int, SegmentEntry]:
    """Return the segments of a partition in a manifest, by base offset."""
    topic = None if manifest is None else manifest.topics.get(key[0])
    partition = None if topic is None else topic.partitions.get(key[1])
    return {} if partition is None else {each.base_offset: each for each in partition.segments}
