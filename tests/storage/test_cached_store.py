"""A store that caches listings and reads: it gives the results of its store with fewer requests."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kwire.errors import LogError
from kwire.storage import cached_store
from kwire.storage.cached_store import CachedStore, StoreCache
from kwire.storage.open_store import open_store
from kwire.storage.store import LocalStore
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


def test_bytes_equal_the_files_and_are_read_once(
    cached: CachedStore, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_store, "BLOCK_BYTES", 1000)
    whole, draw = bytes(range(256)) * 40, random.Random(1)
    with cached.open("a-0/x") as file:
        assert file.size() == len(whole)
        for _ in range(200):
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
def test_a_torn_read_is_not_served_again(
    cached: CachedStore, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """The response ends early, as of an object that is replaced by a shorter one while it is read."""
    monkeypatch.setattr(cached_store, "BLOCK_BYTES", 1000)
    whole, object_fs = bytes(range(256)) * 40, object_store.fs
    with cached.open("a-0/x") as file:
        object_fs.pipe_file("cached/data/a-0/x", whole[: 3500 - lost])
        assert file.pread(1500, 2000) == whole[1500 : 3500 - lost]
        object_fs.pipe_file("cached/data/a-0/x", whole)
        assert file.pread(1500, 2000) == whole[1500:3500]
        assert file.pread(0, len(whole)) == whole


def test_a_small_file_that_was_read_in_part_is_read_again(cached: CachedStore, object_store: ObjectStore) -> None:
    assert [entry.size_bytes for entry in cached.list("a-1") if entry.name == "x"] == [3]
    for data in (b"on", b"", b"ones", b"one"):
        object_store.fs.pipe_file("cached/data/a-1/x", data)
        assert cached.read_all("a-1/x") == data
    object_store.requests.clear()
    assert cached.read_all("a-1/x") == b"one"
    assert object_store.requests == []


def test_the_cache_is_bounded(cached: CachedStore, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_store, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(cached_store, "MOST_BYTES", 3500)
    with cached.open("a-0/x") as file:
        for position in range(0, 10_000, 1000):
            file.pread(position, 1000)
    assert cached.cached_bytes <= 3500
    object_store.requests.clear()
    with cached.open("a-0/x") as file:
        file.pread(8000, 2000)
        assert object_store.requests == []
        file.pread(0, 1)
    assert len(object_store.requests) == 1


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
