"""A file system for directories that nobody needs after the process: its files are not synced."""

from __future__ import annotations

from kwire.storage.file_system import FileSystem, OpenFile

__all__ = ["UnsyncedFileSystem"]


class UnsyncedFile(OpenFile):
    """A file whose bytes need not be durable."""

    def sync(self) -> None:
        """Do nothing."""


class UnsyncedFileSystem(FileSystem):
    """A file system without fsync, which takes most of the time in which small files are written."""

    open_file_class = UnsyncedFile

    def sync_directory(self, path: str) -> None:
        """Do nothing."""
