"""`.lock`: one process at a time writes to a log directory, ours or Kafka's.

Kafka takes Java's FileLock, which is a POSIX record lock on the whole file; the same is taken here. Such a lock belongs
to a process and goes with it, so nothing is left after a crash. Within the process a list says what is locked: the
operating system would let it in twice, and would drop the lock when any descriptor of the file is closed.
Source: Kafka's FileLock, LogManager.lockLogDirs.
"""

from __future__ import annotations

import fcntl
import os

from kwire.errors import LogError
from kwire.log.store import cause

__all__ = ["DirectoryLock"]

LOCK_FILE = ".lock"
locked_here: set[str] = set()


class DirectoryLock:
    """The lock of a log directory, taken; release() gives it back. path: the directory."""

    def __init__(self, path: str) -> None:
        """Raises LogError when somebody else has it, or the file cannot be made."""
        self.path = os.path.realpath(path)
        file = os.path.join(self.path, LOCK_FILE)
        if self.path in locked_here:
            raise LogError("this process has opened the log directory already; close it there first", file)
        try:
            self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise LogError(f"cannot be created: {cause(error)}", file) from error
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            what = (
                "another process has locked the log directory, such as a Kafka broker or `kwire serve`; stop it first"
            )
            raise LogError(what, file) from error
        locked_here.add(self.path)

    def release(self) -> None:
        """Give the lock back; the file stays."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            locked_here.discard(self.path)
