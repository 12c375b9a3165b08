"""A store that caches listings and reads: it gives the results of its store with fewer requests."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import fsspec
import pytest

from kwire.errors import LogError
from kwire.storage import cached_store
from kwire.storage.cached_store import CachedStore, StoreCache
from kwire.storage.open_store import open_store
from kwire.storage.store import Entry, FsspecStore, Listing, LocalStore, StoredFile
from tests.object_store import ObjectStore

pytestmark = pytest.mark.filterwarnings("ignore")  # of boto and its server, not of kwire


@pytest.fixture
def cached(object_store: ObjectStore) -> CachedStore:
    object_store.fs.mkdir("cached")
    for name, data in (("a-0/x", bytes(range(256)) * 40), ("a-1/x", b"one"), ("top", b"2"), ("a-1/deep/y", b"3")):
        object_store.fs.pipe_file(f"cached/data/{name}", data)
    store = StoreCache().open("s3://cached/data", object_store.options)
    assert isinstance(store, CachedStore)
    return store


class CountedStore(FsspecStore):
    """Files in memory with versions, as object stores have them. requests: those that an object store would get."""

    def __init__(self, name: str, files: Mapping[str, bytes]) -> None:
        super().__init__(f"memory://{name}", {})
        self.requests: list[str] = []
        for path, data in files.items():
            self.write(path, data)

    def write(self, path: str, data: bytes) -> None:
        """Replace a file."""
        self._fs.pipe_file(f"{self._root}/{path}", data)

    def _versioned(self, directory: str, entries: Iterable[Entry]) -> list[Entry]:
        def version(entry: Entry) -> str | None:
            path = "/".join(part for part in (self._root, directory, entry.name) if part)
            return None if entry.is_directory else str(zlib.crc32(self._fs.cat_file(path)))

        return [entry._replace(version=version(entry)) for entry in entries]

    def list(self, path: str) -> list[Entry]:
        self.requests.append(f"list {path}")
        return self._versioned(path, super().list(path))

    def list_all(self) -> Listing:
        self.requests.append("list all")
        return {path: self._versioned(path, entries) for path, entries in super().list_all().items()}

    def read_all(self, path: str) -> bytes:
        self.requests.append(f"read {path}")
        return super().read_all(path)

    def open_sized(self, path: str, size: int, version: str | None = None, *, is_closed: bool = False) -> StoredFile:
        self.requests.append(f"read {path}")
        return super().open_sized(path, size, version, is_closed=is_closed)


@pytest.fixture
def counted() -> Iterator[Callable[[Mapping[str, bytes]], CountedStore]]:
    fs = fsspec.filesystem("memory")
    yield partial(CountedStore, "counted")
    fs.rm("/counted", recursive=True)


Counted = Callable[[Mapping[str, bytes]], CountedStore]


def test_any_range_of_a_file_is_read_and_each_block_once(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_store, "BLOCK_BYTES", 10)
    for size in (0, 1, 9, 10, 11, 20, 35):
        store = counted({"x": bytes(range(size)), "y": b"y"})
        for position in range(size + 2):
            for n in (0, 1, 9, 10, 11, 40):
                with CachedStore(store).open("x") as file:
                    assert file.pread(position, n) == bytes(range(size))[position : position + n]
        once = CachedStore(store)
        store.requests.clear()
        with once.open("x") as file:
            for position in range(size):
                assert file.pread(position, 1) == bytes([position])
        assert store.requests.count("read x") == -(-size // 10)


def test_blocks_between_those_that_are_cached_are_fetched_in_one_request(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_store, "BLOCK_BYTES", 10)
    store = counted({"x": bytes(range(50)), "y": b"y"})
    with CachedStore(store).open("x") as file:
        assert (file.pread(0, 1), file.pread(49, 1)) == (b"\x00", b"\x31")
        store.requests.clear()
        assert file.pread(5, 40) == bytes(range(5, 45))
        assert file.pread(0, 50) == bytes(range(50))
    assert store.requests == ["read x"]


@pytest.mark.parametrize("size", [1, 9, 10])
def test_a_file_of_one_block_that_is_replaced_is_read_whole(
    size: int, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_store, "BLOCK_BYTES", 10)
    store = counted({"x": b"1" * size, "y": b"y"})
    cached = CachedStore(store)
    assert len(cached.list("")) == 2
    store.write("x", b"2" * 25)
    assert cached.read_all("x") == b"2" * 25


@pytest.mark.parametrize(("files", "requests"), [(3, 1), (4, 1), (5, 3)])
def test_directories_are_listed_at_once_after_a_refresh_if_that_takes_fewer_pages(
    files: int, requests: int, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two directories: 2 entries of the root and `files` in each are 2, 2 and 3 pages; one by one, they are 3 lists."""
    monkeypatch.setattr(cached_store, "PAGE_ENTRIES", 5)
    names = ("", "a", "b")
    store = counted({f"{directory}/{i}": b"x" for directory in "ab" for i in range(files)})
    cached = CachedStore(store)
    listed = {name: cached.list(name) for name in names}
    cached.refresh()
    store.requests.clear()
    assert {name: cached.list(name) for name in names} == listed
    assert len(store.requests) == requests


@pytest.mark.parametrize(("asked", "requests"), [(2, 3), (3, 4), (4, 3), (5, 3)])
def test_directories_that_are_needed_soon_are_listed_with_the_fewest_requests(
    asked: int, requests: int, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 24 files of 6 directories are two pages of ten."""
    monkeypatch.setattr(cached_store, "PAGE_ENTRIES", 10)
    store = counted({f"{directory}/{i}": b"x" for directory in "abcdef" for i in range(4)})
    cached, names = CachedStore(store), list("fedcba"[:asked])
    cached.list_soon(names)
    assert len(store.requests) == requests
    store.requests.clear()
    listed = [cached.list(name) for name in names]
    assert store.requests == []
    assert listed == [store.list(name) for name in names]


def test_bytes_equal_the_files_and_are_read_once(
    cached: CachedStore, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_store, "BLOCK_BYTES", 1000)
    whole, draw = bytes(range(256)) * 40, random.Random(1)
    with cached.open("a-0/x") as file:
        assert file.size() == len(whole)
        for _ in range(20):
            position, n = draw.randrange(len(whole) + 50), draw.randrange(3000)
            assert file.pread(position, n) == whole[position : position + n]
        object_store.requests.clear()
        assert file.pread(0, 1 << 20) == whole
        view = memoryview(bytearray(20))
        assert file.readinto(len(whole) - 12, view) == 12
        assert view[:12] == whole[-12:]
    cached.refresh()
    assert cached.read_all("a-0/x") == whole
    assert [each for each in object_store.requests if "?" not in each] == []


def test_a_rewritten_file_is_read_again(cached: CachedStore, object_store: ObjectStore) -> None:
    assert cached.read_all("a-1/x") == b"one"
    object_store.fs.pipe_file("cached/data/a-1/x", b"two")  # of the same size
    assert cached.read_all("a-1/x") == b"one"  # the listed version
    cached.refresh()
    assert cached.read_all("a-1/x") == b"two"
    object_store.fs.rm("cached/data/a-1/x")
    cached.refresh()
    with pytest.raises(LogError, match="a-1/x: cannot be opened: no such file"):
        cached.open("a-1/x")


@pytest.mark.parametrize("lost", [1, 999, 1000, 1001])
def test_a_torn_read_is_not_served_again(counted: Counted, monkeypatch: pytest.MonkeyPatch, lost: int) -> None:
    """The response ends early, as of an object that is replaced by a shorter one while it is read."""
    monkeypatch.setattr(cached_store, "BLOCK_BYTES", 1000)
    whole = bytes(range(256)) * 40
    store = counted({"x": whole, "y": b"y"})
    with CachedStore(store).open("x") as file:
        store.write("x", whole[: 3500 - lost])
        assert file.pread(1500, 2000) == whole[1500 : 3500 - lost]
        store.write("x", whole)
        assert file.pread(1500, 2000) == whole[1500:3500]
        assert file.pread(0, len(whole)) == whole


def test_a_small_file_that_was_read_in_part_is_read_again(counted: Counted) -> None:
    store = counted({"x": b"one", "y": b"y"})
    cached = CachedStore(store)
    assert [entry.size_bytes for entry in cached.list("")] == [3, 1]
    for data in (b"on", b"", b"ones", b"one"):
        store.write("x", data)
        assert cached.read_all("x") == data
    store.requests.clear()
    assert cached.read_all("x") == b"one"
    assert store.requests == []


@pytest.mark.parametrize(("most", "kept"), [(2999, 2), (3000, 3), (3500, 3)])
def test_the_cache_is_bounded(most: int, kept: int, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_store, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(cached_store, "MOST_BYTES", most)
    store = counted({"x": bytes(10_000), "y": b"y"})
    cached = CachedStore(store)
    with cached.open("x") as file:
        for position in range(0, 10_000, 1000):
            file.pread(position, 1000)
        assert cached.cached_bytes == 1000 * kept
        store.requests.clear()
        file.pread(10_000 - 1000 * kept, 1000 * kept)
        assert store.requests == []
        file.pread(0, 1)
    assert store.requests == ["read x"]


@pytest.mark.parametrize("names", [("", "a-0", "a-1"), ("", "a-0")])
def test_directories_are_listed_in_one_request_once_all_were_listed(
    cached: CachedStore, object_store: ObjectStore, names: tuple[str, ...]
) -> None:
    plain = open_store("s3://cached/data", object_store.options)
    assert not cached.is_file()
    for _ in range(3):
        assert {name: cached.list(name) for name in names} == {name: plain.list(name) for name in names}
        cached.refresh()
    object_store.requests.clear()
    for name in names:
        cached.list(name)
    assert len(object_store.requests) == (1 if "a-1" in names else len(names))
    object_store.fs.pipe_file("cached/data/b-0/x", b"new")
    object_store.fs.rm("cached/data/a-0", recursive=True)
    cached.refresh()
    assert [entry.name for entry in cached.list("")] == ["a-1", "b-0", "top"]
    assert [entry.name for entry in cached.list("b-0")] == ["x"]
    with pytest.raises(LogError, match="no such file or directory"):
        cached.list("a-0")


def test_local_directories_are_not_cached(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    store = StoreCache().open(tmp_path, {})
    assert isinstance(store, LocalStore)
    (tmp_path / "x").write_bytes(b"2")
    assert store.read_all("x") == b"2"
