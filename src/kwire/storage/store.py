"""Where files are: local directories through `os.pread`, everything else through fsspec.

One small interface, so that the rest of the package does not know the difference:

    store.list(path) -> [Entry]        names below a directory, with sizes
    store.open(path) -> StoredFile     size(), pread(position, n), readinto(position, view), window_bytes
    store.read_all(path) -> bytes      small files

Paths are relative to the store's root and use `/`. Files are never mapped into memory: a broker that truncates a
segment while it is read would end the process with SIGBUS. Whatever a driver raises leaves as LogError with the URL of
the file. fsspec is imported only for URLs, so local use stays on the standard library.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kwire.errors import LogError
from kwire.storage.driver_errors import cause, explain

LOCAL_WINDOW_BYTES = 4096
REMOTE_WINDOW_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a directory.

    size_bytes: as listed, 0 for directories. modified_ms: modification time in ms since the epoch; None where the store
    only knows when the object was uploaded, which says nothing about the log. version: of an object's content, another
    one when the object is written again; None where the store has none.
    """

    name: str
    is_directory: bool
    size_bytes: int = 0
    modified_ms: int | None = None
    version: str | None = None


Listing = dict[str, list[Entry]]  # by directory, "" for the root


class StoredFile(Protocol):
    """A file opened for reading at any position; `with` closes it.

    url: for messages. window_bytes: what one look at a header should fetch: a page of a local file, more where every
    request costs a round trip.
    """

    url: str
    window_bytes: int

    def size(self) -> int:
        """Bytes the file has now."""

    def pread(self, position: int, n: int) -> bytes:
        """Up to n bytes from position; fewer only where the file ends."""

    def readinto(self, position: int, view: memoryview) -> int:
        """Fill view from position; returns the bytes read, fewer than its length only where the file ends."""

    def close(self) -> None:
        """Release the file."""

    def __enter__(self) -> StoredFile: ...

    def __exit__(self, *exc: object) -> None: ...


class Store(Protocol):
    """A root directory, local or behind a URL.

    url, options: what kwire.storage.open_store takes to open the same place in another process or on another machine.
    """

    url: str
    options: Mapping[str, Any]

    def url_of(self, path: str) -> str:
        """The name of path for people and error messages."""

    def list(self, path: str) -> list[Entry]:
        """What is in a directory, in name order. Raises LogError when it cannot be read or is no directory."""

    def open(self, path: str) -> StoredFile:
        """Open a file for reading. Raises LogError when it is gone or unreadable."""

    def read_all(self, path: str) -> bytes:
        """A whole small file. Raises LogError."""

    def is_file(self) -> bool:
        """Whether the root itself is a file. Raises LogError when there is nothing at all."""


def open_files(url: str, options: Mapping[str, Any]) -> Store:
    """The store at a local path, `file://` URL or any other URL fsspec knows (`options`: its storage options).

    Raises LogError when the URL's driver is unknown or not installed.
    """
    if "::" not in url and (url.startswith("file://") or "://" not in url):
        return LocalStore(url.removeprefix("file://"))
    return FsspecStore(url, options)


def parent_of(url: str) -> tuple[str, str] | None:
    """(URL of the directory above, last name); None with nothing above. Keeps what follows `::` in a chain."""
    head, separator, tail = url.partition("::")
    scheme, mark, path = head.rpartition("://")
    above, slash, name = path.rstrip("/").rpartition("/")
    if not name:
        return None
    if not mark:
        return (above or slash or ".") + separator + tail, name
    return f"{scheme}://{above}{separator}{tail}", name


class LocalStore:
    """Directories of this machine, standard library only."""

    def __init__(self, root: str) -> None:
        self.options: Mapping[str, Any] = {}
        self.url = os.path.abspath(root)  # a Spark worker has another working directory

    def url_of(self, path: str) -> str:
        return os.path.join(self.url, path) if path else self.url

    def list(self, path: str) -> list[Entry]:
        url = self.url_of(path)
        found = []
        try:
            with os.scandir(url) as names:
                for name in names:
                    try:
                        directory = name.is_dir()
                        if not directory and not name.is_file():
                            continue  # a pipe or socket would block the reader
                        stat = name.stat()
                    except OSError:
                        continue  # gone since the listing began, or a dangling link
                    found.append(
                        Entry(
                            name=name.name,
                            is_directory=directory,
                            size_bytes=0 if directory else stat.st_size,
                            modified_ms=stat.st_mtime_ns // 1_000_000,
                        )
                    )
        except OSError as error:
            raise LogError(f"cannot list this directory: {cause(error)}", url) from error
        return sorted(found, key=lambda entry: entry.name)

    def open(self, path: str) -> StoredFile:
        return LocalFile(self.url_of(path))

    def read_all(self, path: str) -> bytes:
        url = self.url_of(path)
        try:
            return Path(url).read_bytes()
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", url) from error

    def is_file(self) -> bool:
        if not os.path.exists(self.url):
            raise LogError("no such file or directory", self.url)
        return os.path.isfile(self.url)


class DescriptorFile(ABC):
    """What is read with pread, so that threads may share it and truncation is a short read. url: its path."""

    url: str
    window_bytes = LOCAL_WINDOW_BYTES

    @abstractmethod
    def fileno(self) -> int:
        """Return the file descriptor."""

    def pread(self, position: int, n: int) -> bytes:
        """Up to n bytes from position; fewer only where the file ends."""
        try:
            return os.pread(self.fileno(), n, position)
        except OSError as error:
            raise LogError(f"cannot be read at byte {position}: {cause(error)}", self.url) from error

    def readinto(self, position: int, view: memoryview) -> int:
        """Fill view from position; returns the bytes read, fewer than its length only where the file ends."""
        done = 0
        try:
            while done < len(view):
                n = os.preadv(self.fileno(), [view[done:]], position + done)
                if n == 0:
                    break
                done += n
        except OSError as error:
            raise LogError(f"cannot be read at byte {position + done}: {cause(error)}", self.url) from error
        return done


class LocalFile(DescriptorFile):
    """A local file that is only read."""

    def __init__(self, path: str) -> None:
        self.url = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise LogError(f"cannot be opened: {cause(error)}", path) from error

    def size(self) -> int:
        try:
            return os.fstat(self._fd).st_size
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", self.url) from error

    def fileno(self) -> int:
        """Return the file descriptor, -1 after `close`."""
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> LocalFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class FsspecStore:
    """Any place fsspec reaches: memory, archives, object stores, chains of them."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        import fsspec

        self.url, self.options = url, options
        try:
            self._fs, root = fsspec.core.url_to_fs(url, **options)
        except (ImportError, ValueError) as error:  # of the URL: fsspec has no such driver, or it is not installed
            raise LogError(f"cannot be opened: {cause(error)}", url) from error
        except Exception as error:  # drivers raise what they like
            raise LogError(f"cannot be opened: {explain(error)}", url) from error
        self._root = root.rstrip("/")

    def url_of(self, path: str) -> str:
        if not path:
            return self.url
        head, separator, tail = self.url.partition("::")
        if separator and "://" not in head:  # a cache in front (simplecache::s3://...) has no path of its own
            return f"{self.url.rstrip('/')}/{path}"
        return (
            f"{head.rstrip('/') if not head.endswith('://') else head}{'' if head.endswith('://') else '/'}{path}"
            + (separator + tail)
        )

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path and self._root else path or self._root

    def list(self, path: str) -> list[Entry]:
        full = self._full(path)
        try:
            self._fs.invalidate_cache(full)
            listed = self._fs.ls(full, detail=True)
        except Exception as error:
            raise LogError(f"cannot list this directory: {self._explain(error)}", self.url_of(path)) from error
        found = []
        for info in listed:
            name = str(info["name"]).rstrip("/").rpartition("/")[2]
            if not name or str(info["name"]).rstrip("/") == full:
                continue  # object stores list a directory's own marker
            found.append(entry_of(name, info))
        return sorted(found, key=lambda entry: entry.name)

    def list_all(self) -> Listing:
        """What is in each directory from the root down, by its path; object stores list it all in one go.

        Directories without a file below them are left out. Raises LogError.
        """
        try:
            self._fs.invalidate_cache()
            listed = self._fs.find(self._root, detail=True)
        except Exception as error:
            raise LogError(f"cannot list this directory: {self._explain(error)}", self.url) from error
        found: dict[str, dict[str, Entry]] = {"": {}}
        for full, info in listed.items():
            path = str(full).removeprefix(self._root).strip("/")
            directory, _, name = path.rpartition("/")
            found.setdefault(directory, {})[name] = entry_of(name, info)
            while directory:
                above, _, name = directory.rpartition("/")
                found.setdefault(above, {})[name] = Entry(name=name, is_directory=True)
                directory = above
        return {path: [entries[name] for name in sorted(entries)] for path, entries in found.items()}

    def _explain(self, error: Exception) -> str:
        return explain(error, type(self._fs))

    def open(self, path: str) -> StoredFile:
        return FsspecFile(self._fs, self._full(path), self.url_of(path))

    def open_sized(self, path: str, size: int) -> StoredFile:
        """Open a file whose size a listing has shown, without asking for it. Raises LogError."""
        return FsspecFile(self._fs, self._full(path), self.url_of(path), size)

    def read_all(self, path: str) -> bytes:
        with self.open(path) as file:
            return file.pread(0, file.size())

    def is_file(self) -> bool:
        try:
            if not self._root:  # the root of an archive
                return False
            return bool(self._fs.info(self._root)["type"] != "directory")
        except Exception as error:
            what = self._explain(error)
            raise LogError(
                what if isinstance(error, FileNotFoundError) else f"cannot be read: {what}", self.url
            ) from error


def entry_of(name: str, info: Mapping[str, Any]) -> Entry:
    """A name in a listing, from what fsspec says of it."""
    if info["type"] == "directory":
        return Entry(name=name, is_directory=True)
    # the names that s3fs, gcsfs and adlfs have for it
    version = next((str(info[key]) for key in ("ETag", "etag", "generation") if info.get(key)), None)
    return Entry(name=name, is_directory=False, size_bytes=int(info["size"] or 0), version=version)


class FsspecFile:
    """A file behind fsspec, by range requests where the driver has them.

    A driver without a range read of its own (archives) would open and skip to the position for every call, so one open
    handle is kept for it: going forward costs nothing extra.
    """

    window_bytes = REMOTE_WINDOW_BYTES

    def __init__(self, fs: Any, path: str, url: str, size: int | None = None) -> None:
        from fsspec import AbstractFileSystem

        self.url, self._fs, self._path = url, fs, path
        self._handle = None
        ranged = getattr(fs, "async_impl", False) or type(fs).cat_file is not AbstractFileSystem.cat_file
        try:
            self._size = int(fs.info(path)["size"]) if size is None else size
            if not ranged:
                self._handle = fs.open(path, "rb")
        except Exception as error:
            raise LogError(f"cannot be opened: {explain(error, type(fs))}", url) from error

    def size(self) -> int:
        return self._size

    def pread(self, position: int, n: int) -> bytes:
        end = min(position + n, self._size)
        if position >= end:
            return b""
        try:
            if self._handle is None:
                return bytes(self._fs.cat_file(self._path, start=position, end=end))
            self._handle.seek(position)
            return bytes(self._handle.read(end - position))
        except Exception as error:
            raise LogError(f"cannot be read at byte {position}: {explain(error, type(self._fs))}", self.url) from error

    def readinto(self, position: int, view: memoryview) -> int:
        data = self.pread(position, len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def __enter__(self) -> FsspecFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
