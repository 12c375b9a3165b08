"""The directory and files of a broker without a data directory.

The directory is removed when it is no longer used, at the latest when the process ends. A process that is killed cannot
do that, so a later one does: each directory has a marker that its process holds a lock on.

Files are not synced. Other processes see every change immediately; only a crash of the machine can lose data.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
import weakref
from pathlib import Path

__all__ = ["TemporaryDirectory"]

PREFIX = "kwire-broker-"
MARKER = "kwire-temporary"


class TemporaryDirectory:
    """A directory `path` for one broker. Only the process that created it removes it, not a fork of that process."""

    def __init__(self) -> None:
        remove_abandoned()
        top = tempfile.mkdtemp(prefix=PREFIX)
        self.path = Path(top, "data")
        lock = os.open(f"{top}/{MARKER}.new", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(f"{top}/{MARKER}.new", f"{top}/{MARKER}")  # so nobody sees a marker without its lock
        self.remove = weakref.finalize(self, remove, top, lock, os.getpid())


def remove(top: str, lock: int, process_id: int) -> None:
    """Remove a directory and release its lock."""
    if os.getpid() == process_id:
        shutil.rmtree(top, ignore_errors=True)
    os.close(lock)


@functools.cache
def remove_abandoned() -> None:
    """Remove the directories of this user's processes that were killed; once in a process."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        names = [each.path for each in entries if each.name.startswith(PREFIX) and each.is_dir(follow_symlinks=False)]
    for top in names:
        with contextlib.suppress(OSError):  # removed meanwhile, in use, of another user, or without a marker
            lock = os.open(f"{top}/{MARKER}", os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.stat(top).st_uid == os.getuid():
                    shutil.rmtree(top, ignore_errors=True)
            finally:
                os.close(lock)
