"""A file system that stops at any step and can then lose unsynced data, like a machine after a power loss.

Every change counts as a step: appends (half of the bytes may be written), truncations, syncs, and created, renamed and
removed names. `lose_unsynced` undoes changes of names since the last sync of their directory, in reverse order down to
a random one, and truncates files, or fills them with zeros, after the bytes of their last sync.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from kwire.storage.file_system import Data, FileSystem, OpenFile


class Stopped(BaseException):
    """The process ends here. Not an Exception, so that code under test does not catch it."""


class StoppingFile(OpenFile):
    """A file of a StoppingFileSystem."""

    _file_system: StoppingFileSystem

    def append(self, data: Data | Sequence[Data]) -> int:
        whole = data if isinstance(data, (bytes, bytearray, memoryview)) else b"".join(data)

        def torn() -> None:
            OpenFile.append(self, memoryview(whole)[: len(whole) // 2])

        self._file_system.step(f"append {self.url}", torn)
        self._file_system.changed(self.url, self.end)
        return super().append(data)

    def truncate(self, size_bytes: int) -> None:
        self._file_system.step(f"truncate {self.url}")
        self._file_system.changed(self.url, min(size_bytes, self.end))
        super().truncate(size_bytes)

    def allocate(self, size_bytes: int) -> None:
        self._file_system.step(f"allocate {self.url}")
        self._file_system.changed(self.url, self.end)
        super().allocate(size_bytes)

    def trim(self) -> None:
        self._file_system.step(f"trim {self.url}")
        self._file_system.changed(self.url, self.end)
        super().trim()

    def sync(self) -> None:
        self._file_system.step(f"sync {self.url}")
        self._file_system.saved(self.url)


class StoppingFileSystem(FileSystem):
    """Stops before step number `stop_at` (from 0), or never if it is None. steps: number so far, by name.

    Nothing is really synced, since the machine that runs the tests does not lose power.
    """

    open_file_class = StoppingFile

    def __init__(self, stop_at: int | None = None, *, torn: bool = False) -> None:
        """Create the file system. torn: an interrupted append writes half of its bytes."""
        super().__init__()
        self.stop_at, self.torn = stop_at, torn
        self.steps: list[str] = []
        self._unsaved: dict[str, int] = {}  # file -> bytes that are surely on the disk
        self._undo: dict[str, list[Callable[[], None]]] = {}  # directory -> how to undo its changes since a sync

    def step(self, what: str, torn: Callable[[], None] | None = None) -> None:
        """Count a change before it is made."""
        if self.stop_at is not None and len(self.steps) >= self.stop_at:
            if self.torn and torn is not None and len(self.steps) == self.stop_at:
                self.steps.append(what)
                torn()
            raise Stopped(what)
        self.steps.append(what)

    def changed(self, path: str, kept_bytes: int) -> None:
        """Record that a file has unsynced data from kept_bytes."""
        self._unsaved[path] = min(kept_bytes, self._unsaved.get(path, kept_bytes))

    def saved(self, path: str) -> None:
        """Record that a file is synced."""
        self._unsaved.pop(path, None)

    def _note(self, path: str, undo: Callable[[], None]) -> None:
        self._undo.setdefault(os.path.dirname(path), []).append(undo)

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        if create and not os.path.exists(path):
            self.step(f"create {path}")
            self._note(path, lambda: Path(path).unlink(missing_ok=True))
        return super().open(path, create=create)

    def rename(self, old: str, new: str) -> None:
        self.step(f"rename {old} {new}")
        replaced = Path(new).read_bytes() if os.path.isfile(new) else None

        def undo() -> None:
            if os.path.exists(new):
                os.rename(new, old)
                if replaced is not None:
                    Path(new).write_bytes(replaced)

        self._note(new, undo)
        super().rename(old, new)
        if old in self._unsaved:
            self._unsaved[new] = self._unsaved.pop(old)

    def remove(self, path: str) -> None:
        if os.path.exists(path):
            self.step(f"remove {path}")
            if os.path.isfile(path):
                data = Path(path).read_bytes()
                self._note(path, lambda: _put_back(path, data))
        super().remove(path)

    def make_directory(self, path: str) -> None:
        self.step(f"mkdir {path}")
        super().make_directory(path)

    def sync_directory(self, path: str) -> None:
        self.step(f"sync {path}")
        self._undo.pop(path, None)

    def lose_unsynced(self, source: random.Random) -> None:
        """Change the directories to a possible state after a power loss."""
        for path, kept_bytes in self._unsaved.items():
            if os.path.isfile(path):
                size = os.path.getsize(path)
                kept = min(kept_bytes, size)
                cut = source.randint(kept, size)
                with open(path, "r+b") as file:
                    file.truncate(cut)
                    if source.random() < 0.3:  # the length was written and the bytes were not
                        file.truncate(size)
        for changes in self._undo.values():
            for undo in reversed(changes[source.randint(0, len(changes)) :]):
                undo()


def _put_back(path: str, data: bytes) -> None:
    if os.path.isdir(os.path.dirname(path)):
        Path(path).write_bytes(data)
