"""Files renamed to `.deleted`, to be removed after `file.delete.delay.ms` (F-63). Open readers continue until then."""

from __future__ import annotations

from kwire.log.writing.segment_writer import SegmentWriter
from kwire.storage.file_system import FileSystem
from kwire.storage.staged_directory import remove_tree

__all__ = ["DelayedRemoval"]


class DelayedRemoval:
    """Segments and files to be removed later. After a crash, the next start removes them (G-02)."""

    def __init__(self, file_system: FileSystem) -> None:
        self._file_system = file_system
        self._waiting: list[tuple[int, SegmentWriter | str]] = []

    def add(self, what: SegmentWriter | str, due_ms: int) -> None:
        """Add a segment, file or directory that is renamed already."""
        self._waiting.append((due_ms, what))

    def is_due(self, now_ms: int) -> bool:
        """Return whether remove_due has anything to delete."""
        return any(due_ms <= now_ms for due_ms, _ in self._waiting)

    def remove_due(self, now_ms: int) -> None:
        """Delete the files whose delay has passed."""
        due = [what for due_ms, what in self._waiting if due_ms <= now_ms]
        self._waiting = [each for each in self._waiting if each[0] > now_ms]
        for what in due:
            self._remove(what)

    def bring_forward(self, ms: int) -> None:
        """Make all removals due earlier, when the clock has gone back."""
        self._waiting = [(due_ms - ms, what) for due_ms, what in self._waiting]

    def close(self) -> None:
        """Close the descriptors; the next start removes the files."""
        for _, what in self._waiting:
            if isinstance(what, SegmentWriter):
                what.close_files()
        self._waiting = []

    def _remove(self, what: SegmentWriter | str) -> None:
        if not isinstance(what, str):
            what.remove()
        elif self._file_system.is_directory(what):
            remove_tree(self._file_system, what)
        else:
            self._file_system.remove(what)
