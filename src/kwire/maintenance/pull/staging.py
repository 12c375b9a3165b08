"""The local directory where segments are written before they are uploaded.

It holds the open segment of each partition, and closed ones until they are in the store. Nothing there outlives a run:
a later run continues from the store. So files are not synced.
"""

from __future__ import annotations

import hashlib
import os
import tempfile

from kwire.errors import DirectoryInUse, LogError
from kwire.storage.directory_lock import DirectoryLock
from kwire.storage.driver_errors import cause
from kwire.storage.staged_directory import remove_tree
from kwire.storage.unsynced_files import UnsyncedFileSystem

__all__ = ["Staging"]


class Staging:
    """A private directory below TMPDIR for one target, locked until close(). path, files: to write there."""

    def __init__(self, url: str) -> None:
        """Create it, and remove what a killed run left there. url: of the target.

        Raises OptionError if another process on this machine pulls into the target, LogError.
        """
        name = hashlib.sha256(url.encode()).hexdigest()[:16]
        self.path = f"{tempfile.gettempdir()}/kwire-pull-{os.getuid()}-{name}"
        self.files = UnsyncedFileSystem()
        self.files.make_directory(self.path)
        try:
            status = os.lstat(self.path)
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", self.path) from error
        if os.path.islink(self.path) or status.st_uid != os.getuid():
            raise LogError("belongs to another user; set TMPDIR to a directory of your own", self.path)
        try:
            self._lock = DirectoryLock(self.path)
        except DirectoryInUse as error:
            raise DirectoryInUse("another process on this machine is pulling into it; stop it first", url) from error
        for name in self.files.list(self.path):
            if self.files.is_directory(f"{self.path}/{name}"):
                remove_tree(self.files, f"{self.path}/{name}")

    def directory(self, name: str) -> str:
        """Create and return an empty directory."""
        path = f"{self.path}/{name}"
        self.remove(name)
        self.files.make_directory(path)
        return path

    def remove(self, name: str) -> None:
        """Remove a directory with its files."""
        path = f"{self.path}/{name}"
        if self.files.is_directory(path):
            remove_tree(self.files, path)

    def close(self) -> None:
        """Remove everything."""
        try:
            remove_tree(self.files, self.path)
        finally:
            self._lock.release()
