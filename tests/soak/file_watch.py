"""Files of a directory tree as they appear, told by Linux (inotify(7)), so that waiting for them costs no CPU."""

from __future__ import annotations

import ctypes
import os
import select
import struct
from collections.abc import Iterator
from pathlib import Path

__all__ = ["FileWatch"]

CREATE, MOVED_TO, IS_DIRECTORY = 0x100, 0x80, 0x40000000
EVENT = struct.Struct("iIII")  # watch, mask, cookie, bytes of the name


class FileWatch:
    """The tree below a directory, which may not exist yet, as a context manager."""

    def __init__(self, directory: str, existing: Path) -> None:
        """existing: a directory above it that exists."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK)
        self._directory, self._paths = directory, dict[int, str]()
        self._add(str(existing))

    def __enter__(self) -> FileWatch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def new_files(self, timeout_s: float) -> Iterator[str]:
        """Return the paths of files that have appeared, as of the directory; waits for one, or until a timeout."""
        select.select([self._descriptor], [], [], timeout_s)
        try:
            events = os.read(self._descriptor, 1 << 20)
        except BlockingIOError:
            return
        at = 0
        while at < len(events):
            watch, mask, _, length = EVENT.unpack_from(events, at)
            at += EVENT.size + length
            path = f"{self._paths[watch]}/{os.fsdecode(events[at - length : at].rstrip(bytes(1)))}"
            yield from self._add(path) if mask & IS_DIRECTORY else self._within(path)

    def _add(self, folder: str) -> list[str]:
        """Watch a directory and those below it; return files that are there already."""
        found: list[str] = []
        if not self._directory.startswith(folder) and not folder.startswith(self._directory):
            return found  # beside the one to watch
        watch = self._libc.inotify_add_watch(self._descriptor, folder.encode(), CREATE | MOVED_TO)
        self._paths[watch] = folder
        try:
            for entry in os.scandir(folder):
                found += self._add(entry.path) if entry.is_dir() else self._within(entry.path)
        except FileNotFoundError:
            pass
        return found

    def _within(self, path: str) -> list[str]:
        start = f"{self._directory}/"
        return [path.removeprefix(start)] if path.startswith(start) else []
