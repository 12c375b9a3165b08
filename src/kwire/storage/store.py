"""Stores: files to read in local directories, through `os.pread`, and in any place that fsspec supports.

    store.list(path) -> [Entry]        the entries of a directory, with sizes
    store.open(path) -> StoredFile     size(), pread(position, n), readinto(position, view), window_bytes
    store.read_all(path) -> bytes      a whole small file

Paths are relative to the store's root and use `/`. Files are never memory-mapped: a broker that truncates a segment
during a read would kill the process with SIGBUS. Exceptions of drivers are raised as LogError with the file's URL.
fsspec is imported for URLs only; local stores need the standard library alone.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from kwire.errors import LogError
from kwire.extras import needing
from kwire.storage.driver_calls import LISTING_S, call, read_version
from kwire.storage.driver_errors import cause, explain, is_replaced

T = TypeVar("T")
R = TypeVar("R")

LOCAL_WINDOW_BYTES = 4096
REMOTE_WINDOW_BYTES = 1 << 20
REMOTE_MOST_WINDOW_BYTES = 8 << 20
PARALLEL = 16  # requests at a time
LISTINGS = 100  # of a directory that changes, before it is given up
NAMES_OF_ONE_CALL = 256  # of a local directory


class Entry(NamedTuple):
    """An entry of a directory. Give its fields by name.

    size_bytes: 0 for directories. modified_ms: modification time in ms since the epoch; None for object stores, which
    record the upload time only. version: changes with the object's content; None where the store has no versions.
    is_link: whether it is a symbolic link, of a local store.
    """

    name: str
    is_directory: bool
    size_bytes: int = 0
    modified_ms: int | None = None
    version: str | None = None
    is_link: bool = False


Listing = dict[str, list[Entry]]  # by directory, "" for the root


class StoredFile(Protocol):
    """A file opened for reading at any position; a context manager that closes it.

    url: for messages. window_bytes: how much to read when looking at a batch header: a page of a local file, more where
    each request costs a round trip. most_window_bytes: what it grows to while one header after the other is read.
    """

    url: str
    window_bytes: int
    most_window_bytes: int = 0

    def size(self) -> int:
        """Return the current size in bytes."""

    def pread(self, position: int, n: int) -> bytes:
        """Read up to n bytes from position; fewer only at the end of the file. Raises LogError."""

    def readinto(self, position: int, view: memoryview) -> int:
        """Fill view from position; return the number of bytes read, fewer only at the end of the file."""
        data = self.pread(position, len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Release the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Store(Protocol):
    """A root directory, local or at a URL.

    url, options: the arguments of `open_store` that open the same place in another process or on another machine.
    """

    url: str
    options: Mapping[str, Any]

    def url_of(self, path: str) -> str:
        """Return the path or URL of a file for messages."""

    def list(self, path: str) -> list[Entry]:
        """List a directory in name order. Raises LogError when it is not a directory or cannot be read."""

    def list_files(self, path: str, measured: tuple[str, ...]) -> dict[str, Entry | None]:
        """List the files of a directory by name; entries may be None for names without one of the endings `measured`.

        A local store saves the system call for the size and time of each of those. Raises LogError like list.
        """
        return {entry.name: entry for entry in self.list(path) if not entry.is_directory}

    def open(self, path: str, *, is_closed: bool = False) -> StoredFile:
        """Open a file for reading. Raises LogError when it is missing or unreadable.

        is_closed: it does not grow. Reads raise LogError after an object in S3 was replaced, by anything or, if it may
        grow, by a smaller one.
        """

    def read_all(self, path: str) -> bytes:
        """Read a whole small file. Raises LogError."""
        with self.open(path) as file:
            return file.pread(0, file.size())

    def is_file(self) -> bool:
        """Return whether the root itself is a file. Raises LogError when it does not exist."""

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
        """Return the function's result for each item; for PARALLEL items at a time where requests are slow."""
        return [function(item) for item in items]


def open_files(url: str, options: Mapping[str, Any]) -> Store:
    """Open the store at a local path, `file://` URL or any other URL that fsspec supports, with storage options.

    Raises LogError when the URL's driver is unknown or not installed, and for a cluster.
    """
    if "::" not in url and (url.startswith("file://") or "://" not in url):
        return LocalStore(url.removeprefix("file://"))
    if url.startswith("kafka://"):
        raise LogError("a running cluster has no files to open; copy it with kwire log pull", url)
    return FsspecStore(url, options)


def parent_of(url: str) -> tuple[str, str] | None:
    """Return (URL of the parent directory, last name), or None at the root. A chain after `::` is kept."""
    head, separator, tail = url.partition("::")
    scheme, mark, path = head.rpartition("://")
    above, slash, name = path.rstrip("/").rpartition("/")
    if not name:
        return None
    if not mark:
        return (above or slash or ".") + separator + tail, name
    return f"{scheme}://{above}{separator}{tail}", name


class LocalStore(Store):
    """Local directories, read with the standard library alone."""

    def __init__(self, root: str) -> None:
        self.options: Mapping[str, Any] = {}
        self.url = os.path.abspath(root)  # a Spark worker has another working directory

    def url_of(self, path: str) -> str:
        """Return the absolute path."""
        return os.path.join(self.url, path) if path else self.url

    def list(self, path: str) -> list[Entry]:
        """List files and directories; pipes, sockets and dangling links are skipped. Raises LogError."""
        entries = _listed(self.url_of(path), _entry)
        return sorted(entries, key=lambda entry: entry.name)

    def list_files(self, path: str, measured: tuple[str, ...]) -> dict[str, Entry | None]:
        """List files like list, in no order, with entries for the endings `measured` only. Raises LogError."""

        def file(each: os.DirEntry[str]) -> tuple[str, Entry | None] | None:
            if not each.is_file():
                return None
            return each.name, _entry(each) if each.name.endswith(measured) else None

        return dict(_listed(self.url_of(path), file))

    def open(self, path: str, *, is_closed: bool = False) -> StoredFile:
        """Open a file. Raises LogError."""
        return LocalFile(self.url_of(path))

    def read_all(self, path: str) -> bytes:
        """Read a whole small file. Raises LogError."""
        url = self.url_of(path)
        try:
            return Path(url).read_bytes()
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", url) from error

    def is_file(self) -> bool:
        """Return whether the root is a file. Raises LogError when it does not exist."""
        if not os.path.exists(self.url):
            raise LogError("no such file or directory", self.url)
        return os.path.isfile(self.url)


def _listed(url: str, convert: Callable[[os.DirEntry[str]], R | None]) -> list[R]:
    """Return what is not None of the converted entries of a local directory. Raises LogError.

    A broker renames files meanwhile. The names of a small directory are read in one system call; a file that is gone
    when it is measured may have another name by then, which is not among them. So they are listed again.
    """
    try:
        for _ in range(LISTINGS):
            with os.scandir(url) as found:
                entries = list(found)
            converted = _converted(entries, convert)
            is_whole = len(entries) <= NAMES_OF_ONE_CALL or {each.name for each in entries} == set(os.listdir(url))
            if converted is not None and is_whole:
                return converted
    except OSError as error:
        raise LogError(f"cannot list this directory: {cause(error)}", url) from error
    raise LogError("cannot list this directory: its files are renamed or removed all the time", url)


def _converted(entries: list[os.DirEntry[str]], convert: Callable[[os.DirEntry[str]], R | None]) -> list[R] | None:
    """Return what is not None of the converted entries; None if one is gone."""
    converted = []
    for each in entries:
        try:
            converted.append(convert(each))
        except FileNotFoundError:
            return None
        except OSError:
            continue  # such as a link to itself
    return [each for each in converted if each is not None]


def _entry(name: os.DirEntry[str]) -> Entry | None:
    """Return a file or directory; None for others: a pipe or socket would block the reader. Raises OSError."""
    is_directory = name.is_dir()
    if not is_directory and not name.is_file():
        return None
    stat = name.stat()
    return Entry(
        name=name.name,
        is_directory=is_directory,
        size_bytes=0 if is_directory else stat.st_size,
        modified_ms=stat.st_mtime_ns // 1_000_000,
        is_link=name.is_symlink(),
    )


class DescriptorFile(StoredFile, ABC):
    """A file read with pread: threads can share it, and truncation shows as a short read. url: its path."""

    window_bytes = LOCAL_WINDOW_BYTES

    @abstractmethod
    def fileno(self) -> int:
        """Return the file descriptor."""

    def pread(self, position: int, n: int) -> bytes:
        """Read up to n bytes from position; fewer only at the end of the file. Raises LogError."""
        try:
            return os.pread(self.fileno(), n, position)
        except OSError as error:
            raise LogError(f"cannot be read at byte {position}: {cause(error)}", self.url) from error

    def readinto(self, position: int, view: memoryview) -> int:
        """Fill view from position; return the number of bytes read, fewer only at the end of the file."""
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
    """A local file opened read-only."""

    def __init__(self, path: str) -> None:
        self.url = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise LogError(f"cannot be opened: {cause(error)}", path) from error

    def size(self) -> int:
        """Return the current size in bytes. Raises LogError."""
        try:
            return os.fstat(self._fd).st_size
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", self.url) from error

    def fileno(self) -> int:
        """Return the file descriptor, -1 after `close`."""
        return self._fd

    def close(self) -> None:
        """Close the descriptor."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class FsspecStore(Store):
    """Any place that fsspec supports: memory, archives, object stores and chains of them."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        with needing(url):
            import fsspec

        self.url, self.options = url, options
        try:
            self._fs, root = fsspec.core.url_to_fs(url, **options)
        except (ImportError, ValueError) as error:  # the driver is unknown or not installed
            raise LogError(f"cannot be opened: {cause(error)}", url) from error
        except Exception as error:  # drivers share no base class of exceptions
            raise LogError(f"cannot be opened: {explain(error)}", url) from error
        self._root = root.rstrip("/")

    @property
    def is_concurrent(self) -> bool:
        """Whether several threads can use the driver at once: drivers of object stores run requests in a loop."""
        return bool(getattr(self._fs, "async_impl", False))

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
        """Return the function's result for each item; with a driver that permits it, for PARALLEL items at a time."""
        if len(items) < 2 or not self.is_concurrent:
            return super().map(function, items)
        with ThreadPoolExecutor(min(PARALLEL, len(items))) as pool:
            return list(pool.map(function, items))

    def url_of(self, path: str) -> str:
        """Return the URL of a path, with the rest of the chain."""
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
        """List a directory, bypassing fsspec's cache. Raises LogError."""
        full = self._full(path)
        try:
            self._fs.invalidate_cache(full)
            listed = call(self._fs, "ls", full, limit_s=LISTING_S, detail=True)
        except Exception as error:
            raise LogError(f"cannot list this directory: {self._explain(error)}", self.url_of(path)) from error
        entries = []
        for info in listed:
            name = str(info["name"]).rstrip("/").rpartition("/")[2]
            if not name or str(info["name"]).rstrip("/") == full:
                continue  # object stores list a directory's own marker
            entries.append(entry_of(name, info))
        return sorted(entries, key=lambda entry: entry.name)

    def list_all(self) -> Listing:
        """List all directories below the root, by path; object stores do that in one call.

        Directories without files are omitted. Raises LogError.
        """
        try:
            self._fs.invalidate_cache()
            listed = call(self._fs, "find", self._root, limit_s=LISTING_S, detail=True)
        except Exception as error:
            raise LogError(f"cannot list this directory: {self._explain(error)}", self.url) from error
        directories: dict[str, dict[str, Entry]] = {"": {}}
        for full, info in listed.items():
            path = str(full).removeprefix(self._root).strip("/")
            directory, _, name = path.rpartition("/")
            directories.setdefault(directory, {})[name] = entry_of(name, info)
            while directory:
                above, _, name = directory.rpartition("/")
                directories.setdefault(above, {})[name] = Entry(name=name, is_directory=True)
                directory = above
        return {path: [entries[name] for name in sorted(entries)] for path, entries in directories.items()}

    def _explain(self, error: Exception) -> str:
        return explain(error, type(self._fs))

    def open(self, path: str, *, is_closed: bool = False) -> StoredFile:
        """Open a file. Raises LogError."""
        return FsspecFile(self._fs, self._full(path), self.url_of(path), is_closed=is_closed)

    def read_all(self, path: str) -> bytes:
        """Read a whole small file in one request: one that is replaced meanwhile is not torn. Raises LogError."""
        try:
            return bytes(unlisted(self._fs, self._full(path), partial(call, self._fs, "cat_file", limit_s=LISTING_S)))
        except Exception as error:
            raise LogError(f"cannot be opened: {self._explain(error)}", self.url_of(path)) from error

    def open_sized(self, path: str, size: int, version: str | None = None, *, is_closed: bool = False) -> StoredFile:
        """Open a file of known size, which saves a request. Raises LogError."""
        return FsspecFile(self._fs, self._full(path), self.url_of(path), size, version, is_closed=is_closed)

    def is_file(self) -> bool:
        """Return whether the root is a file. Raises LogError when it does not exist."""
        try:
            if not self._root:  # the root of an archive
                return False
            return bool(call(self._fs, "info", self._root)["type"] != "directory")
        except Exception as error:
            what = self._explain(error)
            raise LogError(
                what if isinstance(error, FileNotFoundError) else f"cannot be read: {what}", self.url
            ) from error


def entry_of(name: str, info: Mapping[str, Any]) -> Entry:
    """Build an Entry from fsspec's info about a file."""
    if info["type"] == "directory":
        return Entry(name=name, is_directory=True)
    return Entry(name=name, is_directory=False, size_bytes=int(info["size"] or 0), version=version_of(info))


def version_of(info: Mapping[str, Any]) -> str | None:
    """Return the version in fsspec's info about a file, as s3fs, adlfs and gcsfs name it."""
    return next((str(info[key]) for key in ("ETag", "etag", "generation") if info.get(key)), None)


def unlisted(fs: Any, path: str, request: Callable[[str], T]) -> T:
    """Return request(path); a missing file is looked for again if the driver has a cached listing of its directory.

    Drivers answer from that: for s3fs, a file that was written after it does not exist.
    """
    directory = path.rpartition("/")[0]
    is_listed = directory in getattr(fs, "dircache", ())
    try:
        return request(path)
    except FileNotFoundError:
        if not is_listed:
            raise
        fs.invalidate_cache(directory)
        return request(path)


class FsspecFile(StoredFile):
    """A file read through fsspec, with range requests where the driver supports them.

    Drivers without range reads (archives) would reopen the file and skip to the position in each call. For those, one
    handle stays open, which makes sequential reads cheap.
    """

    window_bytes = REMOTE_WINDOW_BYTES
    most_window_bytes = REMOTE_MOST_WINDOW_BYTES

    def __init__(
        self,
        fs: Any,
        path: str,
        url: str,
        size: int | None = None,
        version: str | None = None,
        *,
        is_closed: bool = False,
    ) -> None:
        """version: goes with size. is_closed: see Store.open."""
        from fsspec import AbstractFileSystem

        self.url, self._fs, self._path, self._is_closed = url, fs, path, is_closed
        self._handle = None
        ranged = getattr(fs, "async_impl", False) or type(fs).cat_file is not AbstractFileSystem.cat_file
        try:
            if size is None:
                info = unlisted(fs, path, partial(call, fs, "info"))
                size, version = int(info["size"]), version_of(info)
            if not ranged:
                self._handle = fs.open(path, "rb")
        except Exception as error:
            raise LogError(f"cannot be opened: {explain(error, type(fs))}", url) from error
        self._size = size
        has_conditions = "s3" in fs.protocol and not getattr(fs, "local_expiry_check", False)
        self._version = version if has_conditions else None

    def size(self) -> int:
        """Return the size when the file was opened."""
        return self._size

    def pread(self, position: int, n: int) -> bytes:
        """Read up to n bytes from position; fewer only at the end of the file. Raises LogError."""
        end = min(position + n, self._size)
        if position >= end:
            return b""
        try:
            if self._handle is None:
                return self._fetch(position, end)
            self._handle.seek(position)
            return bytes(self._handle.read(end - position))
        except Exception as error:
            raise LogError(f"cannot be read at byte {position}: {explain(error, type(self._fs))}", self.url) from error

    def _fetch(self, start: int, end: int) -> bytes:
        """Read bytes [start, end) of the version that was opened, or that has grown from it."""
        if self._version is None:
            return bytes(call(self._fs, "cat_file", self._path, size_bytes=end - start, start=start, end=end))
        try:
            return read_version(self._fs, self._path, self._version, start, end)
        except Exception as error:
            if self._is_closed or not is_replaced(error):
                raise
            self._fs.invalidate_cache(self._path.rpartition("/")[0])
            info = call(self._fs, "info", self._path)
            if int(info["size"]) < self._size:  # a copy that is continued replaces the newest segment by longer ones
                raise
            self._version = version_of(info)
            return self._fetch(start, end)

    def close(self) -> None:
        """Close the open handle, if any."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None
