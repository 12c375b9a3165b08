"""A directory that is built under a temporary name and gets its own name once it is complete and durable.

DIR.part    the directory while it is built
DIR         the same directory, renamed
"""

from __future__ import annotations

import os

from kwire.errors import LogError, OptionError
from kwire.storage.file_system import FileSystem

__all__ = ["StagedDirectory", "check_empty", "check_target", "check_writable", "remove_tree"]


class StagedDirectory:
    """A directory under construction. target: its final path. part: its path until publish()."""

    def __init__(self, files: FileSystem, target: str) -> None:
        self.files, self.target, self.part = files, target, f"{target}.part"

    @property
    def exists(self) -> bool:
        """Whether a previous run left the directory unfinished."""
        return self.files.exists(self.part)

    def create(self) -> None:
        """Create the directory, or continue in an unfinished one."""
        self.files.make_directory(self.part)

    def publish(self) -> None:
        """Make the entries durable and rename the directory, replacing an empty one. Raises LogError."""
        self.files.sync_directory(self.part)
        self.files.rename(self.part, self.target)
        self.files.sync_directory(os.path.dirname(os.path.abspath(self.target)))

    def discard(self) -> None:
        """Remove the unfinished directory. Raises LogError."""
        remove_tree(self.files, self.part)


def check_target(directory: str) -> None:
    """Raise OptionError unless a directory can be created: it is missing or empty, and its parent exists."""
    check_empty(directory)
    parent = os.path.dirname(os.path.abspath(directory))
    if not os.path.isdir(parent):
        raise OptionError(f"{parent}: no such directory")
    check_writable(parent)


def check_empty(directory: str) -> None:
    """Raise OptionError unless a directory is missing or empty, and can be created."""
    if os.path.lexists(directory) and not (os.path.isdir(directory) and not os.listdir(directory)):
        raise OptionError(f"{directory}: not an empty directory")
    check_writable(directory)


def check_writable(path: str) -> None:
    """Raise OptionError unless a directory can be written, or created if it is missing."""
    place = os.path.abspath(path)
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        raise OptionError(f"{path}: cannot be created: {place} is not a directory")
    if not os.access(place, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise OptionError(f"{path}: cannot be written: no permission to write in {place}")


def remove_tree(files: FileSystem, directory: str) -> None:
    """Remove a directory and everything in it. Raises LogError."""
    for name in files.list(directory):
        path = f"{directory}/{name}"
        if files.is_directory(path):
            remove_tree(files, path)
        else:
            files.remove(path)
    files.remove(directory)
    if files.exists(directory):
        raise LogError("cannot be removed", directory)
