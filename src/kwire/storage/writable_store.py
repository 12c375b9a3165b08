"""Stores that files are written to, each replaced atomically: readers find the old or the new bytes of a file.

A PUT to an object store is atomic. Local files are written beside their place, synced and renamed. Other drivers of
fsspec, such as sftp, replace a file in place, and are not supported.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from kwire.errors import LogError, OptionError
from kwire.storage.driver_calls import LISTING_S, call
from kwire.storage.file_system import FileSystem
from kwire.storage.store import Entry, FsspecStore, LocalStore, Store

__all__ = ["WritableStore", "is_local", "open_writable_store"]

MEMORY = "memory"


class WritableStore(Store, Protocol):
    """A store whose files are written whole. Methods raise LogError with the file's URL; threads can share it."""

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file."""

    @abstractmethod
    def create(self, path: str, data: bytes) -> bool:
        """Create a file; return False if it exists already."""

    @abstractmethod
    def copy(self, path: str, new: str) -> None:
        """Copy a file."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file; a missing one is ignored."""

    @abstractmethod
    def remove_directory(self, path: str) -> None:
        """Remove an empty directory, where the store has directories."""

    @abstractmethod
    def find(self, path: str) -> dict[str, Entry]:
        """Return the entries of a directory by name; {} for a missing one."""


def is_local(url: str) -> bool:
    """Return whether a URL is a local path, or a file URL."""
    return "::" not in url and (url.startswith("file://") or "://" not in url)


def open_writable_store(url: str, options: Mapping[str, Any]) -> WritableStore:
    """Open the store at a local path, `file://` URL, or URL of an object store, with storage options.

    Raises LogError when the URL's driver is unknown or not installed, OptionError for one that does not replace files
    atomically.
    """
    if is_local(url):
        return WritableLocalStore(url.removeprefix("file://"))
    store = WritableObjectStore(url, options)
    if "::" in url or not store.is_atomic:
        raise OptionError(f"{url}: not supported as a target; use a directory, or a URL of S3, GCS or Azure")
    return store


class WritableLocalStore(LocalStore, WritableStore):
    """A local directory, which other machines may share."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._files = FileSystem()

    def write(self, path: str, data: bytes) -> None:
        """Write, sync and rename a file, in a directory that is created if necessary."""
        url = self.url_of(path)
        self._files.make_directory(os.path.dirname(url))
        self._files.write_atomically(url, data)

    def create(self, path: str, data: bytes) -> bool:
        """Create a file; return False if it exists already."""
        if os.path.exists(self.url_of(path)):
            return False
        self.write(path, data)
        return True

    def copy(self, path: str, new: str) -> None:
        """Copy a file."""
        self.write(new, self.read_all(path))

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._files.remove(self.url_of(path))

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        self._files.remove(self.url_of(path))

    def find(self, path: str) -> dict[str, Entry]:
        """Return the entries of a directory by name."""
        if not os.path.isdir(self.url_of(path)):
            return {}
        return {entry.name: entry for entry in self.list(path) if not entry.name.endswith(".tmp")}


class WritableObjectStore(FsspecStore, WritableStore):
    """An object store."""

    @property
    def is_atomic(self) -> bool:
        """Whether the driver is that of an object store."""
        protocol = self._fs.protocol
        return self.is_concurrent or MEMORY in ((protocol,) if isinstance(protocol, str) else protocol)

    def _failed(self, what: str, path: str, error: Exception) -> LogError:
        return LogError(f"{what}: {self._explain(error)}", self.url_of(path))

    def write(self, path: str, data: bytes) -> None:
        """Put an object."""
        try:
            call(self._fs, "pipe_file", self._full(path), data, size_bytes=len(data))
        except Exception as error:  # drivers share no base class of exceptions
            raise self._failed("cannot be written", path, error) from error

    def create(self, path: str, data: bytes) -> bool:
        """Put an object that does not exist; without conditional writes a race is possible."""
        try:
            call(self._fs, "pipe_file", self._full(path), data, size_bytes=len(data), mode="create")
        except Exception as error:
            if self._exists(path):
                return False
            raise self._failed("cannot be written", path, error) from error
        return True

    def _exists(self, path: str) -> bool:
        full = self._full(path)
        try:
            self._fs.invalidate_cache(full.rpartition("/")[0])
            return bool(call(self._fs, "exists", full))
        except Exception:  # the caller has a better error
            return False

    def copy(self, path: str, new: str) -> None:
        """Copy an object inside the store."""
        try:
            call(self._fs, "cp_file", self._full(path), self._full(new), limit_s=LISTING_S)
        except Exception as error:
            raise self._failed(f"cannot be copied to {self.url_of(new)}", path, error) from error

    def remove(self, path: str) -> None:
        """Delete an object."""
        try:
            call(self._fs, "rm_file", self._full(path))
        except FileNotFoundError:
            pass
        except Exception as error:
            raise self._failed("cannot be removed", path, error) from error

    def remove_directory(self, path: str) -> None:
        """Do nothing: object stores have no directories."""

    def find(self, path: str) -> dict[str, Entry]:
        """Return the entries of a directory by name."""
        try:
            return {entry.name: entry for entry in self.list(path)}
        except LogError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return {}
            raise
