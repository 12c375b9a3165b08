"""The `.lock` file, which lets one process at a time write to a log directory, be it kwire or Kafka.

Java's FileLock is a POSIX record lock on the whole file, and so is this one. The kernel releases it when the process
ends, even after a crash. Record locks are per process: the same process would be granted the lock twice, and closing
any descriptor of the file would release it, so a set tracks what this process has locked.
Source: Kafka's FileLock, LogManager.lockLogDirs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys

from kwire.errors import DirectoryInUse, LogError
from kwire.storage.driver_errors import cause
from kwire.storage.links import refuse_links

__all__ = ["DirectoryLock", "is_held"]

LOCK_FILE = ".lock"
FLOCK = struct.Struct("hhqqi4x")  # type, whence, start, length, process: struct flock on Linux
locked_here: set[str] = set()


class DirectoryLock:
    """The lock of a log directory, held from construction until release(). path: the directory."""

    def __init__(self, path: str) -> None:
        """Acquire the lock.

        Raises DirectoryInUse when it is held already; LogError when the file cannot be created, or links lead out of
        the directory.
        """
        self.path = os.path.realpath(path)
        file = os.path.join(self.path, LOCK_FILE)
        if self.path in locked_here:
            raise DirectoryInUse("log directory is already open in this process; close it there first", file)
        try:
            self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise LogError("a symbolic link; remove it", file) from error
            raise LogError(f"cannot be created: {cause(error)}", file) from error
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise DirectoryInUse(
                "log directory is locked by another process, such as Kafka, `kwire serve` or `kwire log pull`; "
                "stop it first",
                file,
            ) from error
        try:
            refuse_links(self.path)
        except LogError:
            os.close(self._fd)
            raise
        locked_here.add(self.path)

    def release(self) -> None:
        """Release the lock; the file stays."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            locked_here.discard(self.path)


def is_held(path: str) -> bool:
    """Return whether any process holds the lock of a local log directory; False where that cannot be determined.

    Does not acquire the lock.
    """
    file = os.path.join(os.path.realpath(path), LOCK_FILE)
    if os.path.realpath(path) in locked_here:
        return True  # closing a descriptor of the file here would drop the lock
    if sys.platform != "linux":
        return False  # struct flock differs between operating systems
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        state = fcntl.fcntl(fd, fcntl.F_GETLK, FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return bool(FLOCK.unpack(state)[0] != fcntl.F_UNLCK)
    except OSError:
        return False
    finally:
        os.close(fd)
