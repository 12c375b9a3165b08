"""Sync files in a background thread, so that rolling a segment does not wait for the disk.

The thread receives file descriptors only and the files are held until it is done; all other state stays with the
thread that owns the log.
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
    """A sync in progress. up_to: the offset that is durable once it has finished."""

    def __init__(self, files: Sequence[OpenFile], up_to: int, executor: Executor) -> None:
        self.up_to = up_to
        self._files = files
        self._future = executor.submit(sync_all, [(file.hold(), file.url) for file in files])

    @property
    def is_done(self) -> bool:
        """Whether the background thread has finished."""
        return self._future.done()

    def finish(self) -> None:
        """Wait for the sync to finish and release the files. Raises LogError when a file cannot be synced."""
        try:
            self._future.result()
        finally:
            for file in self._files:
                file.release()


def sync_all(files: Sequence[tuple[int, str]]) -> None:
    """Sync (descriptor, path) pairs; the path is for error messages. Raises LogError."""
    for fd, path in files:
        try:
            os.fsync(fd)
        except OSError as error:
            raise LogError(f"cannot be synced: {cause(error)}", path) from error
