"""`cleaner-offset-checkpoint` of a log directory: the first dirty offset of each log.

Source: rules X-01, X-36, F-02, F-03; kafka.log.LogCleanerManager.updateCheckpoints, maybeTruncateCheckpoint.
"""

from __future__ import annotations

from contextlib import suppress

from kwire.errors import Malformed
from kwire.identifiers import TopicPartition
from kwire.storage.checkpoints import CLEANER_OFFSETS, parse_offset_checkpoint, render_offset_checkpoint
from kwire.storage.file_system import FileSystem

__all__ = ["CleanerCheckpoints"]


class CleanerCheckpoints:
    """First dirty offset by (topic, partition). directory: the log directory.

    An unreadable file counts as empty. Entries without a partition are removed, so a later partition of the same name
    is dirty from its start.
    """

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._files, self._directory = file_system, directory
        self._path = f"{directory}/{CLEANER_OFFSETS}"
        self._offsets: dict[TopicPartition, int] = {}
        if file_system.exists(self._path):
            with suppress(Malformed):  # F-03: all logs count as dirty from their start
                self._offsets = self._of_partitions(parse_offset_checkpoint(file_system.read_all(self._path)))

    def get(self, key: TopicPartition) -> int | None:
        """Return the first dirty offset, None for a log that was never cleaned."""
        return self._offsets.get(key)

    def put(self, key: TopicPartition, offset: int) -> None:
        """Set the first dirty offset of a log, and remove entries of deleted partitions."""
        self._offsets[key] = offset
        self._write()

    def truncate(self, key: TopicPartition, offset: int) -> None:
        """Lower the first dirty offset after a truncation to offset."""
        if self._offsets.get(key, 0) > offset:
            self.put(key, offset)

    def remove(self, key: TopicPartition) -> None:
        """Remove the entry of a deleted log."""
        if self._offsets.pop(key, None) is not None:
            self._write()

    def _write(self) -> None:
        self._offsets = self._of_partitions(self._offsets)
        self._files.write_atomically(self._path, render_offset_checkpoint(self._offsets))

    def _of_partitions(self, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the entries whose partition has a directory."""
        return {
            (topic, partition): offset
            for (topic, partition), offset in offsets.items()
            if self._files.is_directory(f"{self._directory}/{topic}-{partition}")
        }
