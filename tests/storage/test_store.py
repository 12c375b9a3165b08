"""The same log from a local directory, memory, an archive and an object store, and errors of drivers."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import threading
import zipfile
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import LogError
from kwire.log import LogDirectory, plan_splits, read_split
from kwire.records.columns.reader import COLUMNS
from kwire.storage.cached_store import StoreCache
from kwire.storage.open_store import open_store
from kwire.storage.store import NAMES_OF_ONE_CALL, LocalStore, parent_of
from tests.log.expected import ISOLATIONS, read_arrow, read_objects, rows_of
from tests.object_store import ObjectStore

PARTITIONS = ("txn-0", "trimmed-0", "__cluster_metadata-0")


@pytest.fixture
def source(kafka_logs: dict[str, Path]) -> Path:
    return kafka_logs["modern"] / "data"


def files(source: Path, partitions: Sequence[str] = PARTITIONS) -> Iterator[tuple[str, Path]]:
    """Return (name below the log directory, path) of the checkpoints and of partitions."""
    for path in sorted(source.iterdir()):
        if path.is_file():
            yield path.name, path
    for partition in partitions:
        for path in sorted((source / partition).iterdir()):
            yield f"{partition}/{path.name}", path


def check_same(
    url: str, source: Path, partitions: Sequence[str] = PARTITIONS, split_bytes: int = 6000, **options: Any
) -> None:
    """Check that a copy at a URL reads like the local directory, whole and by pickled splits."""
    local, copy = LogDirectory(source), LogDirectory(url, **options)
    assert [f"{topic}-{partition}" for topic, partition in copy] == sorted(partitions)
    assert copy.meta_properties == local.meta_properties
    for key, log in copy.items():
        assert (log.log_start_offset, log.log_end_offset, log.last_stable_offset, log.high_watermark) == (
            local[key].log_start_offset,
            local[key].log_end_offset,
            local[key].last_stable_offset,
            local[key].high_watermark,
        )
        assert (log.topic_id, log.leader_epochs, log.size_bytes) == (
            local[key].topic_id,
            local[key].leader_epochs,
            local[key].size_bytes,
        )
        for isolation in ISOLATIONS:
            rows = read_objects(local[key], isolation=isolation)
            assert read_objects(log, isolation=isolation) == rows
            assert read_arrow(log, isolation=isolation) == rows
            splits = pickle.loads(pickle.dumps(plan_splits(log, isolation=isolation, split_bytes=split_bytes)))
            assert [row for split in splits for row in rows_of(read_split(split, COLUMNS))] == rows
        middle = read_objects(log)[len(rows) // 2].timestamp
        assert log.offset_for_time(middle) == local[key].offset_for_time(middle)
    partition = LogDirectory(f"{url.rstrip('/')}/trimmed-0" if "::" not in url else inside(url, "trimmed-0"), **options)
    assert partition["trimmed", 0].log_start_offset == 555


def inside(url: str, name: str) -> str:
    head, _, tail = url.partition("::")
    return f"{head}{'' if head.endswith('/') else '/'}{name}::{tail}"


def test_a_memory_store_reads_the_same(source: Path) -> None:
    import fsspec

    fs = fsspec.filesystem("memory")
    for name, path in files(source):
        fs.pipe_file(f"/broker/data/{name}", path.read_bytes())
    try:
        check_same("memory://broker/data", source)
        with pytest.raises(LogError, match="cannot be opened"):
            open_store("memory://broker/data").open("missing")
    finally:
        fs.rm("/broker", recursive=True)


@pytest.mark.sampled
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_reads_the_same(source: Path, tmp_path: Path, compression: int) -> None:
    for below in ("", "backup/data/"):
        archive = tmp_path / f"backup{compression}{len(below)}.zip"
        with zipfile.ZipFile(archive, "w", compression) as target:
            for name, path in files(source):
                target.write(path, below + name)
        check_same(f"zip://{below.rstrip('/')}::{archive}", source)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of boto and its server, not of kwire
def test_an_object_store_reads_the_same(source: Path, object_store: ObjectStore) -> None:
    """With fewer requests than from memory: they take most of the time, and the rest is the same code."""
    partitions = ("trimmed-0", "__cluster_metadata-0")
    object_store.fs.mkdir("backups")
    for name, path in files(source, partitions):
        object_store.fs.pipe_file(f"backups/broker-1/{name}", path.read_bytes())
    options = object_store.options
    check_same("s3://backups/broker-1", source, partitions, split_bytes=60_000, **options)
    assert "hunter2" not in repr(plan_splits(LogDirectory("s3://backups/broker-1", **options))[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of boto and its server, not of kwire
def test_a_file_that_was_written_after_a_listing_is_found(object_store: ObjectStore) -> None:
    """s3fs said "no such file" from the listing that it had cached, without asking the store."""
    import fsspec

    other = fsspec.filesystem("s3", skip_instance_cache=True, **object_store.options)  # as in another process
    other.mkdir("logs")
    other.pipe_file("logs/a/0.log", b"first")
    store = open_store("s3://logs", object_store.options)
    assert [each.name for each in store.list("a")] == ["0.log"]
    other.pipe_file("logs/a/5.log", b"second")
    assert store.read_all("a/5.log") == b"second"
    assert [each.name for each in store.list("a")] == ["0.log", "5.log"]
    other.pipe_file("logs/a/9.log", b"third")
    with store.open("a/9.log") as file:
        assert file.pread(0, file.size()) == b"third"
    with pytest.raises(LogError, match="no such file"):
        store.read_all("a/12.log")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("url", "given", "expected"),
    [
        ("s3://backups/missing", {}, r"^s3://backups/missing: no such file or directory"),
        ("s3://nowhere/data", {}, r"no such file or directory: The specified bucket does not exist"),
        ("s3://backups/data", {"key": None, "secret": None}, r"no valid credentials: .*storage options \(for S3 key"),
        ("s3://backups/data", {"secret": None}, r"no valid credentials: Partial credentials.*aws_secret_access_key"),
        ("s3://backups/data", {"profile": "nobody"}, r"no valid credentials: .*\(nobody\) could not be found"),
        ("s3://backups/data", {"endpoint_url": "http://127.0.0.1:1"}, r"cannot connect to the server: .*endpoint_url"),
        ("s3://backups/data", {"endpoint_url": "127.0.0.1:1"}, r"wrong storage option or URL: Invalid endpoint"),
        (
            "s3://backups/data",
            {"endpoint_ur": "x"},
            r"unknown storage option 'endpoint_ur' \(did you mean 'endpoint_url'",
        ),
        ("s3://backups/data", {"client_kwargs": "x"}, r"wrong storage option or URL"),
    ],
)
def test_missing_objects_are_reported(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, url: str, given: dict[str, str | None], expected: str
) -> None:
    # All of them were "no such file or directory".
    object_store.fs.mkdir("backups")
    monkeypatch.setattr("s3fs.core.S3FileSystem.retries", 1)  # a dead endpoint is asked again and again, with pauses
    once = {"config_kwargs": {"retries": {"max_attempts": 0}}}
    options = {name: value for name, value in (object_store.options | once | given).items() if value is not None}
    with pytest.raises(LogError, match=expected):
        LogDirectory(url, **options)


@pytest.mark.filterwarnings("ignore")  # of boto and its server, not of kwire
@pytest.mark.parametrize("is_cached", [False, True])
@pytest.mark.parametrize(
    ("is_closed", "growth", "is_allowed"),
    [(True, 0, False), (True, 1, False), (True, -1, False), (False, 1, True), (False, -1, False)],
)
def test_an_object_that_is_replaced_while_it_is_read_is_not_mixed(
    object_store: ObjectStore, is_cached: bool, is_closed: bool, growth: int, is_allowed: bool
) -> None:
    # It was CorruptBatch, or rows of both were returned. The newest segment of a copy that is continued grows.
    object_store.fs.mkdir("backups")
    object_store.fs.pipe_file("backups/a/9.log", bytes(1 << 20))
    store = (StoreCache().open if is_cached else open_store)("s3://backups", object_store.options)
    assert [entry.name for entry in store.list("a")] == ["9.log"]
    with store.open("a/9.log", is_closed=is_closed) as file:
        assert file.pread(0, 9) == bytes(9)
        object_store.fs.pipe_file("backups/a/9.log", b"x" * ((1 << 20) + growth))
        if is_allowed:
            assert file.pread(1 << 19, 9) == file.pread(1 << 18, 9) == b"x" * 9
            assert file.size() == 1 << 20
        else:
            with pytest.raises(LogError, match=r"^s3://backups/a/9.log: .*byte 524288: the object changed during"):
                file.pread(1 << 19, 9)


def test_a_cluster_is_not_a_store() -> None:
    # It was "Protocol not known: kafka", or advice to install s3fs.
    with pytest.raises(
        LogError, match="kafka://h:1/orders: a running cluster has no files to open; copy it with kwire"
    ):
        open_store("kafka://h:1/orders")


@pytest.mark.filterwarnings("ignore")  # of boto and its server, not of kwire
def test_rejected_credentials_are_reported(object_store: ObjectStore) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = object_store.options | {"endpoint_url": f"http://127.0.0.1:{server.server_port}"}
        with pytest.raises(
            LogError, match=r"^s3://backups/data: cannot be read: access denied: .*check the credentials"
        ):
            LogDirectory("s3://backups/data", **options)
        server.shutdown()


def test_a_file_url_is_a_local_path(source: Path) -> None:
    assert isinstance(open_store(f"file://{source}"), LocalStore)
    assert list(LogDirectory(f"file://{source}")) == list(LogDirectory(source))


def test_a_relative_path_becomes_absolute(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source.parent)
    (split, *_) = plan_splits(LogDirectory("data")["txn", 0])
    monkeypatch.chdir("/")
    assert split.url == str(source / split.path)
    assert sum(batch.num_rows for batch in read_split(split)) > 0


def test_unknown_and_missing_drivers_are_reported() -> None:
    with pytest.raises(LogError, match=r"cannot be opened: .*[Pp]rotocol"):
        LogDirectory("nosuch://bucket/path")


def test_the_parent_of_any_url_is_found() -> None:
    assert parent_of("/data/kafka/orders-0") == ("/data/kafka", "orders-0")
    assert parent_of("/orders-0") == ("/", "orders-0")
    assert parent_of("s3://bucket/data/orders-0/") == ("s3://bucket/data", "orders-0")
    assert parent_of("zip://data/orders-0::s3://bucket/x.zip") == ("zip://data::s3://bucket/x.zip", "orders-0")
    assert parent_of("zip://orders-0::/x.zip") == ("zip://::/x.zip", "orders-0")
    assert parent_of("zip://::/x.zip") is None
    assert parent_of("/") is None


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    (tmp_path / "meta.properties").touch()
    os.mkfifo(folder / "00000000000000000000.log")  # opening it would wait for a writer
    (folder / "00000000000000000005.log").symlink_to(tmp_path / "nowhere")
    log = LogDirectory(tmp_path)["t", 0]
    assert (log.segments, list(log.read())) == ([], [])
    with pytest.raises(LogError, match="cannot list this directory: Not a directory"):
        LogDirectory(folder / "00000000000000000000.log").values()
    (folder / "00000000000000000007.log").mkdir()
    assert LogDirectory(tmp_path)["t", 0].segments == []


def test_an_unreadable_directory_is_reported(source: Path) -> None:
    store = LocalStore(str(source))
    with pytest.raises(LogError, match="cannot list this directory: Not a directory"):
        store.list("meta.properties")
    with pytest.raises(LogError, match="cannot be read: No such file or directory"):
        store.read_all("missing")
    with store.open("txn-0") as directory, pytest.raises(LogError, match="at byte 7: Is a directory"):
        directory.pread(7, 1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_reported(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    segment = folder / "00000000000000000000.log"
    segment.write_bytes(b"")
    segment.chmod(0)
    with pytest.raises(LogError, match="Permission denied") as caught:
        list(LogDirectory(tmp_path)["t", 0].read())
    assert caught.value.file == str(segment)


@pytest.mark.parametrize("others", [0, NAMES_OF_ONE_CALL])
def test_a_file_that_is_renamed_during_a_listing_is_in_it(
    others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a broker does after a compaction: a reader missed the segment, and took its offsets for compacted away."""
    for i in range(others):
        (tmp_path / f"other-{i}").touch()
    (tmp_path / "0.log.swap").write_bytes(b"data")
    real, renames = os.scandir, [("0.log.swap", "0.log"), ("0.log", "1.log")]

    @contextlib.contextmanager
    def scandir(path: str) -> Iterator[list[os.DirEntry[str]]]:
        with real(path) as entries:
            names = list(entries)
        if renames:
            old, new = renames.pop(0)
            (tmp_path / old).rename(tmp_path / new)
        yield names

    monkeypatch.setattr(os, "scandir", scandir)
    store = LocalStore(str(tmp_path))
    if others:
        assert "1.log" in store.list_files("", ())
        assert not renames
        renames += [("1.log", "2.log")]
    assert [each.name for each in store.list("") if each.size_bytes] == ["1.log" if not others else "2.log"]
    assert store.list_files("", (".log",)).keys() >= {"2.log" if others else "1.log"}


def test_a_directory_that_changes_all_the_time_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    @contextlib.contextmanager
    def scandir(path: str) -> Iterator[list[os.DirEntry[str]]]:
        (tmp_path / "0.log").touch()
        with real(path) as entries:
            names = list(entries)
        (tmp_path / "0.log").unlink()
        yield names

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(LogError, match="its files are renamed or removed all the time"):
        LocalStore(str(tmp_path)).list("")


def test_a_large_directory_that_is_removed_during_a_listing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(NAMES_OF_ONE_CALL + 1):
        (tmp_path / f"{i}").touch()
    real = os.listdir

    def listdir(path: str) -> list[str]:
        shutil.rmtree(tmp_path)
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    with pytest.raises(LogError, match="cannot list this directory: No such file or directory"):
        LocalStore(str(tmp_path)).list("")
