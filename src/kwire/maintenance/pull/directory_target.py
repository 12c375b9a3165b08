"""A copy in a local log directory."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.log.reading.paths import StorageOptions
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.log_manager import LogManager
from kwire.maintenance.pull.cluster import Bounds
from kwire.maintenance.pull.manifest import MANIFEST, Manifest
from kwire.maintenance.pull.partition_copy import PartitionCopy
from kwire.maintenance.pull.target import COPY_NODE_ID, MakeManifest, Target, check_manifest, known_segments
from kwire.storage.file_system import FileSystem

__all__ = ["DirectoryTarget"]


class DirectoryTarget(Target):
    """A log directory, which one process writes at a time. url: its path."""

    _manager: LogManager

    def __init__(self, path: str, files: FileSystem, now_ms: int) -> None:
        self.url, self._files, self._now_ms = path, files, now_ms
        self.options: StorageOptions = {}
        self._earlier: Manifest | None = None
        self._copies: dict[TopicPartition, PartitionCopy] = {}

    def read_manifest(self, cluster_id: str | None) -> Manifest | None:
        """Return the manifest of an earlier copy; None for a new one: see Target."""
        if self._files.exists(self.url) and not self._files.is_directory(self.url):
            raise OptionError(f"{self.url}: a file; a copy is a directory")
        path = f"{self.url}/{MANIFEST}"
        unfinished = {f"{MANIFEST}.tmp"}  # of a run that was killed as it began
        if not self._files.is_directory(self.url) or unfinished.issuperset(self._files.list(self.url)):
            return None
        if not self._files.exists(path):
            raise OptionError(f"{self.url}: not empty, and not a copy: it has no {MANIFEST}")
        return check_manifest(self._files.read_all(path), self.url, cluster_id)

    def begin(self, manifest: Manifest) -> None:
        """Create the directory with an incomplete manifest."""
        if not self._files.is_directory(self.url):
            self._files.make_directory(self.url)
        self._write(manifest)

    def _write(self, manifest: Manifest) -> None:
        self._files.write_atomically(f"{self.url}/{MANIFEST}", manifest.render())

    def open(self, *, cluster_id: str | None, configs: Mapping[str, LogConfig], earlier: Manifest | None) -> None:
        """Lock and open the directory; recover it after a crash."""
        self._earlier = earlier
        self._manager = LogManager.open(
            self.url,
            now_ms=self._now_ms,
            file_system=self._files,
            configs=configs,
            node_id=COPY_NODE_ID,
            cluster_id=cluster_id,
        )

    def set_config(self, topic: str, config: LogConfig) -> None:
        """Set the configs of a topic."""
        self._manager.set_config(topic, config)

    def topic_id(self, key: TopicPartition) -> uuid.UUID | None:
        """Return the topic id in partition.metadata."""
        log = self._manager.logs.get(key)
        return None if log is None else log.topic_id

    def set_aside(self, key: TopicPartition) -> int:
        """Rename the partition's directory; return its log end offset."""
        end = self._manager.logs[key].log_end_offset
        self._manager.set_aside(*key)
        return end

    def copy(
        self,
        key: TopicPartition,
        bounds: Bounds,
        *,
        topic_id: uuid.UUID | None,
        now_ms: int,
    ) -> PartitionCopy:
        """Open the copy of a partition, or create it."""
        log = self._manager.logs.get(key)
        if log is None:
            log = self._manager.create(*key, now_ms=now_ms, topic_id=topic_id)
        copy = self._copies[key] = PartitionCopy(log, bounds, known=known_segments(self._earlier, key))
        return copy

    def truncate(self, key: TopicPartition, offset: int, *, now_ms: int) -> PartitionCopy:
        """Truncate the log, and checkpoint that at once."""
        copy = self._copies[key]
        copy.truncate_to(offset, now_ms=now_ms)
        self._manager.write_checkpoints()
        return copy

    def appended(self, key: TopicPartition) -> None:
        """Do nothing: appends are in the files."""

    def checkpoint(self, manifest: MakeManifest, *, now_ms: int) -> None:
        """Sync what is due; write the checkpoints and the manifest."""
        self._manager.flush_due(now_ms)
        self._manager.write_checkpoints()
        self._write(manifest())

    def close(self, manifest: MakeManifest, *, clean: bool) -> None:
        """Close the directory as after a clean shutdown, or as after a crash."""
        self._manager.close(clean=clean)
        if clean:
            self._write(manifest())
