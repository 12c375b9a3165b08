"""Maintain leader-epoch-checkpoint, the start offset of each leader epoch, while a log is written.

Source: rules F-04, F-05, A-08; Kafka's LeaderEpochFileCache.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from kwire.errors import Malformed
from kwire.storage.checkpoints import (
    LEADER_EPOCHS,
    LeaderEpoch,
    parse_leader_epochs,
    render_leader_epochs,
)
from kwire.storage.file_system import FileSystem

__all__ = ["LeaderEpochs"]


class LeaderEpochs:
    """The leader epochs of one partition. Epochs of records are written immediately, as in Kafka; others with flush().

    directory: the partition's. An unreadable file counts as empty; recovery restores the epochs.
    """

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._file_system, self._path = file_system, str(PurePosixPath(directory) / LEADER_EPOCHS)
        self._entries: list[LeaderEpoch] = []
        self._is_written = True  # what the file has; a missing one has no entries
        if file_system.exists(self._path):
            try:
                self._entries = parse_leader_epochs(file_system.read_all(self._path))
            except Malformed:
                self._is_written = False

    @property
    def entries(self) -> Sequence[LeaderEpoch]:
        """Oldest first."""
        return self._entries

    @property
    def latest(self) -> int | None:
        """The latest epoch, None without any."""
        return self._entries[-1].leader_epoch if self._entries else None

    @property
    def earliest(self) -> LeaderEpoch | None:
        """The oldest entry, None without any."""
        return self._entries[0] if self._entries else None

    def assign(self, leader_epoch: int, start_offset: int) -> None:
        """Record that leader_epoch begins at start_offset, writing the file if that is new (F-04)."""
        self.begin(leader_epoch, start_offset)
        self.flush()

    def begin(self, leader_epoch: int, start_offset: int) -> None:
        """Record that leader_epoch begins at start_offset without a record yet.

        The file is written with the first record or with flush(): without a record, nothing is lost in between, and
        the start of a node with many partitions need not wait for the disk.
        """
        last = self._entries[-1] if self._entries else None
        if last is not None and last.leader_epoch == leader_epoch and start_offset >= last.start_offset:
            return
        if leader_epoch < 0:
            return
        while self._entries and (
            self._entries[-1].leader_epoch >= leader_epoch or self._entries[-1].start_offset >= start_offset
        ):
            self._entries.pop()
        self._entries.append(LeaderEpoch(leader_epoch=leader_epoch, start_offset=start_offset))
        self._is_written = False

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove entries that begin at or after end_offset."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        if len(kept) != len(self._entries) and end_offset >= 0:
            self._entries, self._is_written = kept, False

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove entries below start_offset; the newest of them then begins there."""
        below = [entry for entry in self._entries if entry.start_offset <= start_offset]
        if not below or (len(below) == 1 and below[0].start_offset == start_offset):
            return
        moved = LeaderEpoch(leader_epoch=below[-1].leader_epoch, start_offset=start_offset)
        self._entries, self._is_written = [moved, *self._entries[len(below) :]], False

    def clear(self) -> None:
        """Remove all entries and write the file."""
        if self._entries:
            self._entries = []
            self._write()

    def discard(self) -> None:
        """Remove all entries and the file: a log below magic 2 has none."""
        self._entries, self._is_written = [], True
        self._file_system.remove(self._path)

    def flush(self) -> None:
        """Write the file if it lacks changes."""
        if not self._is_written:
            self._write()

    def _write(self) -> None:
        self._is_written = False  # if it fails, flush() tries again
        self._file_system.write_atomically(self._path, render_leader_epochs(self._entries))
        self._is_written = True
