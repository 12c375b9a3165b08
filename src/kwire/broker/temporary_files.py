"""A file system without fsync, for a broker whose directory is deleted when it stops.

Other processes see every change immediately; only a crash of the machine can lose data.
"""

from __future__ import annotations

from kwire.storage.file_system import FileSystem, OpenFile

__all__ = ["TemporaryFiles"]


class TemporaryFile(OpenFile):
    """A file without fsync."""

    def sync(self) -> None:
        """Do nothing."""


class TemporaryFiles(FileSystem):
    """A file system without fsync."""

    open_file_class = TemporaryFile

    def sync_directory(self, path: str) -> None:
        """Do nothing."""
