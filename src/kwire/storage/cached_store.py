"""A caching store for callers that list and read the same objects repeatedly: queries, streams and planners.

A request to an object store takes tens of milliseconds. Objects are immutable, so cached bytes stay valid while a
listing shows the same version: closed segments and their indexes are fetched once, and a log that has not grown costs
one listing.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeVar

from kwire.errors import LogError
from kwire.storage.open_store import open_store
from kwire.storage.store import REMOTE_MOST_WINDOW_BYTES, Entry, FsspecStore, Listing, Store, StoredFile

__all__ = ["CachedStore", "OpenStore", "StoreCache"]

T = TypeVar("T")
R = TypeVar("R")
OpenStore = Callable[[str, Mapping[str, Any]], Store]

BLOCK_BYTES = 128 << 10
MOST_BYTES = 64 << 20  # of one store
MOST_BYTES_OF_READS = 16 << 20  # of one that keeps no listings: a query's memory has other uses
PAGE_ENTRIES = 1000  # in one response to a listing of S3 and Google Cloud Storage


class StoreCache:
    """The stores of one query, each opened once. Local stores are not cached; the page cache does that."""

    def __init__(self, *, keeps_listings: bool = True) -> None:
        """keeps_listings: see CachedStore."""
        self._keeps_listings = keeps_listings
        self._stores: dict[str, CachedStore] = {}

    def open(self, url: str | os.PathLike[str], options: Mapping[str, Any]) -> Store:
        """Open a store like open_store; a URL must have the same options in each call. Raises LogError."""
        text = os.fspath(url)
        if text not in self._stores:
            store = open_store(text, options, self.open)
            if not isinstance(store, FsspecStore):
                return store
            self._stores[text] = CachedStore(store, keeps_listings=self._keeps_listings)
        return self._stores[text]

    def refresh(self) -> None:
        """Drop the cached listings of all stores."""
        for store in self._stores.values():
            store.refresh()


class CachedStore(Store):
    """A remote store that caches its listings until the next refresh, and the blocks read from its files.

    cached_bytes: size of the cached blocks. After a refresh all known directories are listed recursively in one call
    where that takes fewer requests than listing each.
    """

    def __init__(self, store: FsspecStore, *, keeps_listings: bool = True) -> None:
        """keeps_listings=False: list() asks the store each time; its last response still has the versions of files."""
        self.url, self.options = store.url, store.options
        self._store, self._keeps_listings = store, keeps_listings
        self._is_file: bool | None = None
        self._listed: Listing = {}
        self._listed_before: Listing = {}
        self._blocks = OrderedDict[tuple[str, str, int], bytes]()
        self.cached_bytes = 0
        self._lock = Lock()

    def refresh(self) -> None:
        """Drop the cached listings, so that changes become visible."""
        if self._listed:
            self._listed_before, self._listed = self._listed, {}

    def url_of(self, path: str) -> str:
        """Return the URL of a path."""
        return self._store.url_of(path)

    def is_file(self) -> bool:
        """Return whether the root is a file. Raises LogError."""
        if self._is_file is None:
            self._is_file = self._store.is_file()
        return self._is_file

    def list(self, path: str) -> list[Entry]:
        """List a directory, from the cache where possible. Raises LogError."""
        if not self._keeps_listings or (path not in self._listed and not (path == "" and self._list_all())):
            self._listed[path] = self._store.list(path)
        return self._listed[path]

    def list_soon(self, paths: Iterable[str]) -> None:
        """List directories that will be asked for: with one recursive listing, or several requests at a time.

        The recursive one returns all files of the store in pages of PAGE_ENTRIES. It is used where these are probably
        fewer than the directories, by the number of files in the first of them. Errors are left to list().
        """
        missing = [path for path in paths if path not in self._listed]
        if len(missing) < 2:
            return
        try:
            files = len(self.list(missing.pop(0)))
            directories = [entry.name for entry in self.list("") if entry.is_directory]
            if len(directories) * files // PAGE_ENTRIES < len(missing):
                listing = self._store.list_all()
                self._listed |= {path: listing[path] for path in missing if path in listing}
            else:
                self._listed |= dict(zip(missing, self.map(self._store.list, missing), strict=True))
        except LogError:
            return

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
        """Return the function's result for each item: see FsspecStore.map."""
        return self._store.map(function, items)

    def _list_all(self) -> bool:
        """List all directories known before the refresh recursively; return whether that was possible."""
        before = self._listed_before
        directories = {entry.name for entry in before.get("", ()) if entry.is_directory}
        pages = -(-sum(len(entries) for entries in before.values()) // PAGE_ENTRIES)
        if not directories or not directories < before.keys() or pages > len(directories):
            return False
        listing = self._store.list_all()
        if not directories <= listing.keys():  # one is empty now, which only a separate listing shows
            return False
        self._listed = listing
        return True

    def open(self, path: str, *, is_closed: bool = False) -> StoredFile:
        """Open a file whose blocks are cached when the store versions its objects. Raises LogError."""
        entry = self._entry(path)
        if entry is not None and entry.version is not None:
            return CachedFile(self, path, entry.size_bytes, entry.version, is_closed=is_closed)
        return self._store.open(path, is_closed=is_closed)

    def _entry(self, path: str) -> Entry | None:
        """Return a file as the last listing of its directory has it; None without one."""
        directory, _, name = path.rpartition("/")
        entries = self.list(directory) if self._keeps_listings else self._listed.get(directory, ())
        return next((each for each in entries if each.name == name), None)

    def read_all(self, path: str) -> bytes:
        """Read a whole small file, from the cache where possible. Raises LogError.

        One of up to BLOCK_BYTES that is replaced meanwhile is not torn.
        """
        entry = self._entry(path)
        if entry is None or entry.version is None:
            return self._store.read_all(path)
        if entry.size_bytes > BLOCK_BYTES:
            return super().read_all(path)
        if not entry.size_bytes:
            return b""
        key = path, entry.version, 0
        data = self.block(key)
        if data is None:
            data = self._store.read_all(path)
            if len(data) == entry.size_bytes:
                self.keep(key, data)
        return data

    def block(self, key: tuple[str, str, int]) -> bytes | None:
        """Return a cached block by (path, version, block number), or None."""
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
            return self._blocks.get(key)

    def keep(self, key: tuple[str, str, int], block: bytes) -> None:
        """Cache a block, evicting the least recently used ones."""
        with self._lock:
            self.cached_bytes += len(block) - len(self._blocks.get(key, b""))
            self._blocks[key] = block
            while self.cached_bytes > (MOST_BYTES if self._keeps_listings else MOST_BYTES_OF_READS):
                self.cached_bytes -= len(self._blocks.popitem(last=False)[1])

    def open_sized(self, path: str, size: int, version: str, *, is_closed: bool) -> StoredFile:
        """Open a version of a file without the cache. Raises LogError."""
        return self._store.open_sized(path, size, version, is_closed=is_closed)


class CachedFile(StoredFile):
    """One version of a remote file. Adjacent blocks that are not cached are fetched in one request."""

    window_bytes = BLOCK_BYTES // 8  # a block is fetched for it, which the next windows are in
    most_window_bytes = REMOTE_MOST_WINDOW_BYTES

    def __init__(self, store: CachedStore, path: str, size_bytes: int, version: str, *, is_closed: bool) -> None:
        self.url = store.url_of(path)
        self._store, self._path, self._size, self._version = store, path, size_bytes, version
        self._is_closed = is_closed

    def size(self) -> int:
        """Return the size in the listing."""
        return self._size

    def pread(self, position: int, n: int) -> bytes:
        """Read up to n bytes from position, through the cache. Raises LogError."""
        out = bytearray(max(min(n, self._size - position), 0))
        return bytes(memoryview(out)[: self.readinto(position, memoryview(out))])

    def readinto(self, position: int, view: memoryview) -> int:
        """Fill view from position, through the cache; return the number of bytes read. Raises LogError."""
        end = min(position + len(view), self._size)
        if position >= end:
            return 0
        numbers = range(position // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1)
        blocks = {number: self._store.block((self._path, self._version, number)) for number in numbers}
        missing = [number for number, block in blocks.items() if block is None]
        if missing:
            first, count = missing[0], missing[-1] - missing[0] + 1
            with self._store.open_sized(self._path, self._size, self._version, is_closed=self._is_closed) as file:
                data = file.pread(first * BLOCK_BYTES, count * BLOCK_BYTES)
            for i in range(count):
                block = data[i * BLOCK_BYTES : (i + 1) * BLOCK_BYTES]
                if blocks[first + i] is None and len(block) == min(BLOCK_BYTES, self._size - (first + i) * BLOCK_BYTES):
                    self._store.keep((self._path, self._version, first + i), block)
                blocks[first + i] = block
        done = 0
        for number, piece in blocks.items():
            assert piece is not None
            begin = position + done - number * BLOCK_BYTES
            part = memoryview(piece)[begin : begin + end - position - done]
            view[done : done + len(part)] = part
            done += len(part)
            if begin + len(part) < min(BLOCK_BYTES, end - number * BLOCK_BYTES):
                break  # the object is shorter than its listing says
        return done

    def close(self) -> None:
        """Do nothing: no connection is held."""
