"""`.lock`: one process at a time writes to a log directory, ours or Kafka's.

Kafka takes Java's FileLock, which is a POSIX record lock on the whole file; the same is taken here. Such a lock belongs
to a process and goes with it, so nothing is left after a crash. Within the process a list says what is locked: the
operating system would let it in twice, and would drop the lock when any descriptor of the file is closed.
Source: Kafka's FileLock, LogManager.lockLogDirs.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys

from kwire.errors import LogError
from kwire.storage.driver_errors import cause

__all__ = ["DirectoryLock", "is_held"]

LOCK_FILE = ".lock"
FLOCK = struct.Struct("hhqqi4x")  # type, whence, start, length, process: struct flock on Linux
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
            self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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


def is_held(path: str) -> bool:
    """Whether a process has the lock of a local log directory; False where nobody can tell. Takes nothing."""
    file = os.path.join(os.path.realpath(path), LOCK_FILE)
    if os.path.realpath(path) in locked_here:
        return True  # closing a descriptor of the file here would drop the lock
    if sys.platform != "linux":
        return False  # the question's layout is the operating system's
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return bool(FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
    except OSError:
        return False
    finally:
        os.close(fd)
