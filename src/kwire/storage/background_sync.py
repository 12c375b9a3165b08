"""Files synced in another thread: the disk may take seconds for a segment, and whoever owns a log must not wait.

The other thread sees descriptors only, which are held meanwhile; everything else stays with the owner, who asks later.
Source: the "flush-log" task of kafka.log.UnifiedLog.roll.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor

from kwire.errors import LogError
from kwire.storage.driver_errors import cause
from kwire.storage.file_system import OpenFile

__all__ = ["BackgroundSync"]


class BackgroundSync:
    """A sync under way. up_to: what its owner wants to remember."""

    def __init__(self, files: Sequence[OpenFile], up_to: int, executor: Executor) -> None:
        self.up_to = up_to
        self._files = files
        self._future = executor.submit(sync_all, [(file.hold(), file.url) for file in files])

    @property
    def is_done(self) -> bool:
        """Whether the other thread has come to an end."""
        return self._future.done()

    def finish(self) -> None:
        """Wait for it and let the files go. Raises LogError when one could not be synced."""
        try:
            self._future.result()
        finally:
            for file in self._files:
                file.release()


def sync_all(files: Sequence[tuple[int, str]]) -> None:
    """Sync descriptors, each with the path for the error."""
    for fd, path in files:
        try:
            os.fsync(fd)
        except OSError as error:
            raise LogError(f"cannot be synced: {cause(error)}", path) from error
