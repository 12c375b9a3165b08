"""The same log from a local directory, memory, an archive and an object store; what drivers raise."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import LogError
from kwire.log import LogDirectory, plan_splits, read_split
from kwire.log.open_store import open_store
from kwire.log.store import LocalStore, parent_of
from kwire.records.columns import COLUMNS
from tests.log.expected import ISOLATIONS, read_arrow, read_objects, rows_of

PARTITIONS = ("txn-0", "trimmed-0", "__cluster_metadata-0")


@pytest.fixture
def source(kafka_logs: dict[str, Path]) -> Path:
    return kafka_logs["modern"] / "data"


def files(source: Path) -> Iterator[tuple[str, Path]]:
    """(name below the log directory, path) of the checkpoints and of PARTITIONS."""
    for path in sorted(source.iterdir()):
        if path.is_file():
            yield path.name, path
    for partition in PARTITIONS:
        for path in sorted((source / partition).iterdir()):
            yield f"{partition}/{path.name}", path


def check_same(url: str, source: Path, **options: Any) -> None:
    """A copy of the directory at url gives what the local one gives, whole and by splits that went through pickle."""
    local, copy = LogDirectory(source), LogDirectory(url, **options)
    assert [f"{topic}-{partition}" for topic, partition in copy] == sorted(PARTITIONS)
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
            splits = pickle.loads(pickle.dumps(plan_splits(log, isolation=isolation, split_bytes=6000)))
            assert [row for split in splits for row in rows_of(read_split(split, COLUMNS))] == rows
        middle = read_objects(log)[len(rows) // 2].timestamp
        assert log.offset_for_time(middle) == local[key].offset_for_time(middle)
    partition = LogDirectory(f"{url.rstrip('/')}/trimmed-0" if "::" not in url else inside(url, "trimmed-0"), **options)
    assert partition["trimmed", 0].log_start_offset == 555


def inside(url: str, name: str) -> str:
    head, _, tail = url.partition("::")
    return f"{head}{'' if head.endswith('/') else '/'}{name}::{tail}"


def test_memory_gives_the_same(source: Path) -> None:
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


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_gives_the_same(source: Path, tmp_path: Path, compression: int) -> None:
    for below in ("", "backup/data/"):
        archive = tmp_path / f"backup{compression}{len(below)}.zip"
        with zipfile.ZipFile(archive, "w", compression) as target:
            for name, path in files(source):
                target.write(path, below + name)
        check_same(f"zip://{below.rstrip('/')}::{archive}", source)


@pytest.mark.filterwarnings("ignore")  # of boto and its server, not of kwire
def test_an_object_store_gives_the_same(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moto = pytest.importorskip("moto.server", reason="needs moto[server] for S3 on loopback")
    pytest.importorskip("s3fs", reason="needs kwire[s3]")
    import fsspec

    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {"endpoint_url": f"http://{host}:{port}", "key": "test", "secret": "test"}
        fs = fsspec.filesystem("s3", **options)
        fs.mkdir("backups")
        for name, path in files(source):
            fs.pipe_file(f"backups/broker-1/{name}", path.read_bytes())
        check_same("s3://backups/broker-1", source, **options)
        assert "test" not in repr(plan_splits(LogDirectory("s3://backups/broker-1", **options))[0])
        with pytest.raises(LogError, match="no such file or directory"):
            LogDirectory("s3://backups/broker-2", **options)
        with pytest.raises(LogError, match=r"no such file or directory|cannot"):
            LogDirectory("s3://nowhere/broker-2", **options)
    finally:
        server.stop()


def test_a_file_url_is_a_local_path(source: Path) -> None:
    assert isinstance(open_store(f"file://{source}"), LocalStore)
    assert list(LogDirectory(f"file://{source}")) == list(LogDirectory(source))


def test_a_relative_path_becomes_absolute(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source.parent)
    (split, *_) = plan_splits(LogDirectory("data")["txn", 0])
    monkeypatch.chdir("/")
    assert split.url == str(source / split.path)
    assert sum(batch.num_rows for batch in read_split(split)) > 0


def test_unknown_and_missing_drivers_are_named() -> None:
    with pytest.raises(LogError, match=r"cannot be opened: .*[Pp]rotocol"):
        LogDirectory("nosuch://bucket/path")


def test_the_directory_above_is_found_in_any_url() -> None:
    assert parent_of("/data/kafka/orders-0") == ("/data/kafka", "orders-0")
    assert parent_of("/orders-0") == ("/", "orders-0")
    assert parent_of("s3://bucket/data/orders-0/") == ("s3://bucket/data", "orders-0")
    assert parent_of("zip://data/orders-0::s3://bucket/x.zip") == ("zip://data::s3://bucket/x.zip", "orders-0")
    assert parent_of("zip://orders-0::/x.zip") == ("zip://::/x.zip", "orders-0")
    assert parent_of("zip://::/x.zip") is None
    assert parent_of("/") is None


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    os.mkfifo(folder / "00000000000000000000.log")  # opening it would wait for a writer
    (folder / "00000000000000000005.log").symlink_to(tmp_path / "nowhere")
    log = LogDirectory(tmp_path)["t", 0]
    assert (log.segments, list(log.read())) == ([], [])
    with pytest.raises(LogError):
        LogDirectory(folder / "00000000000000000000.log").values()
    (folder / "00000000000000000007.log").mkdir()
    assert LogDirectory(tmp_path)["t", 0].segments == []


def test_an_unreadable_directory_is_named(source: Path) -> None:
    store = LocalStore(str(source))
    with pytest.raises(LogError, match="cannot list this directory: Not a directory"):
        store.list("meta.properties")
    with pytest.raises(LogError, match="cannot be read: No such file or directory"):
        store.read_all("missing")
    with store.open("txn-0") as directory, pytest.raises(LogError, match="at byte 7: Is a directory"):
        directory.pread(7, 1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    segment = folder / "00000000000000000000.log"
    segment.write_bytes(b"")
    segment.chmod(0)
    with pytest.raises(LogError, match="Permission denied") as caught:
        list(LogDirectory(tmp_path)["t", 0].read())
    assert caught.value.file == str(segment)
