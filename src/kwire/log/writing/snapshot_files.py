"""Take, load and remove the producer snapshots of a partition.

    <offset>.snapshot     state of the producers before that offset: at each segment's base offset and, after a clean
                          shutdown, at the log end offset

Source: rules F-42 to F-44; Kafka's ProducerStateManager, SnapshotFile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kwire.errors import Malformed
from kwire.log.files.file_names import SEGMENT_FILE, segment_file
from kwire.log.writing.producer_state import ProducerStates
from kwire.storage.file_system import FileSystem, OpenFile

__all__ = ["SnapshotFiles"]


class SnapshotFiles:
    """The snapshots of one partition. directory: the partition's."""

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._file_system, self._directory = file_system, directory
        self._listed: set[int] | None = None

    @property
    def _offsets(self) -> set[int]:
        if self._listed is None:
            self._listed = self._list()
        return self._listed

    def reload(self) -> None:
        """List the directory again, at the next use."""
        self._listed = None

    def _list(self) -> set[int]:
        matches = (SEGMENT_FILE.fullmatch(name) for name in self._file_system.list(self._directory))
        return {
            int(match["base"]) for match in matches if match and match["kind"] == "snapshot" and not match["suffix"]
        }

    def path(self, offset: int) -> str:
        """Return the path of the snapshot at offset."""
        return f"{self._directory}/{segment_file(offset, 'snapshot')}"

    @property
    def offsets(self) -> list[int]:
        """Offsets of all snapshots, ascending."""
        return sorted(self._offsets)

    @property
    def latest(self) -> int | None:
        """Offset of the newest snapshot, None without one."""
        return max(self._offsets, default=None)

    def take(self, producers: ProducerStates, *, sync: bool = True) -> int | None:
        """Write a snapshot at producers.end_offset and return that offset; None if the last one is as recent (F-43).

        sync=False: the caller calls sync(offset) later.
        """
        offset = producers.end_offset
        if offset <= producers.snapshot_offset:
            return None
        with self._file_system.open(self.path(offset), create=True) as file:
            file.truncate(0)
            file.append(producers.snapshot())
            if sync:
                file.sync()
        self._offsets.add(offset)
        producers.snapshot_offset = offset
        return offset

    def sync(self, offset: int) -> None:
        """Make the snapshot at offset durable, if it still exists."""
        for file in self.opened([offset]):
            with file:
                file.sync()

    def opened(self, offsets: Iterable[int]) -> list[OpenFile]:
        """Open the snapshots that still exist."""
        return [self._file_system.open(self.path(offset)) for offset in offsets if offset in self._offsets]

    def load_latest(self, producers: ProducerStates, log_start_offset: int, now_ms: int) -> None:
        """Load the newest valid snapshot into producers, removing invalid ones (F-42).

        Without one, the state is empty at log_start_offset.
        """
        while (offset := self.latest) is not None:
            try:
                producers.load(self._file_system.read_all(self.path(offset)), now_ms)
            except Malformed:
                producers.clear()
                self.remove(offset)
                continue
            producers.snapshot_offset = producers.end_offset = offset
            return
        producers.snapshot_offset = producers.end_offset = log_start_offset

    def truncate_and_reload(
        self, producers: ProducerStates, log_start_offset: int, log_end_offset: int, now_ms: int
    ) -> None:
        """Remove snapshots outside of (log start, log end], and reset producers to the newest remaining one (G-13)."""
        for offset in self.offsets:
            if not log_start_offset < offset <= log_end_offset:
                self.remove(offset)
        if log_end_offset != producers.end_offset:
            producers.clear()
            self.load_latest(producers, log_start_offset, now_ms)
        else:
            self.start_incremented(producers, log_start_offset)

    def start_incremented(self, producers: ProducerStates, log_start_offset: int) -> None:
        """Handle an advanced log start offset."""
        producers.replicated_to(log_start_offset)
        producers.end_offset = max(producers.end_offset, log_start_offset)
        latest = self.latest
        producers.snapshot_offset = log_start_offset if latest is None else latest

    def remove_stray(self, base_offsets: Collection[int]) -> None:
        """Remove snapshots that are not at a segment's base offset, except one above all segments (F-44)."""
        self.reload()
        stray = sorted(self._offsets - set(base_offsets))
        keep = stray[-1] if stray and base_offsets and stray[-1] >= max(base_offsets) else None
        for offset in stray:
            if offset != keep and (base_offsets or offset != stray[-1]):
                self.remove(offset)

    def remove(self, offset: int) -> None:
        """Remove the snapshot at offset."""
        self._offsets.discard(offset)
        self._file_system.remove(self.path(offset))

    def remove_all(self) -> None:
        """Remove every snapshot."""
        for offset in self.offsets:
            self.remove(offset)

    def mark_deleted(self, offset: int) -> str | None:
        """Rename the snapshot at offset to `.deleted` and return that path; None without one."""
        if offset not in self._offsets:
            return None
        self._offsets.discard(offset)
        marked = f"{self.path(offset)}.deleted"
        if not self._file_system.exists(self.path(offset)):
            return None
        self._file_system.rename(self.path(offset), marked)
        return marked
