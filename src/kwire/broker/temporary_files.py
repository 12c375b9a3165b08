"""Files of a broker whose directory is removed when it stops: nothing waits for the disk.

What a crash of the machine would lose is lost anyway; other processes see every change at once, as ever.
"""

from __future__ import annotations

from kwire.storage.file_system import FileSystem, OpenFile

__all__ = ["TemporaryFiles"]


class TemporaryFile(OpenFile):
    """A file that the disk may take its time with."""

    def sync(self) -> None:
        """Nothing to wait for."""


class TemporaryFiles(FileSystem):
    """The file system without its waits."""

    open_file_class = TemporaryFile

    def sync_directory(self, path: str) -> None:
        """Nothing to wait for."""
