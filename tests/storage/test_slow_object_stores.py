"""An object store that sends a byte at a time, each well within the timeout of a read, ends every request in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kwire.errors import LogError
from kwire.maintenance.from_parquet.parquet_input import Input, open_input
from kwire.storage import driver_calls
from kwire.storage.open_store import open_store
from kwire.storage.writable_store import open_writable_store
from tests.dripping_server import DrippingServer
from tests.object_store import ObjectStore

REQUESTS: dict[str, Callable[[Any], object]] = {
    "list": lambda store: store.list("a"),
    "list_all": lambda store: store.list_all(),
    "read_all": lambda store: store.read_all("a/0.log"),
    "open": lambda store: store.open("a/0.log"),
    "pread": lambda store: store.open_sized("a/0.log", 1_000_000).pread(0, 1000),
    "is_file": lambda store: store.is_file(),
    "write": lambda store: store.write("a", b"data"),
    "create": lambda store: store.create("a", b"data"),
    "copy": lambda store: store.copy("a", "b"),
    "remove": lambda store: store.remove("a"),
    "find": lambda store: store.find("a"),
}


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_calls, "REQUEST_S", 0.6)
    for module in ("storage.store", "storage.writable_store", "maintenance.from_parquet.parquet_input"):
        monkeypatch.setattr(f"kwire.{module}.LISTING_S", 0.6)


def options_of(object_store: ObjectStore, server: DrippingServer) -> dict[str, Any]:
    """Return the options of a driver whose client is made already, which takes longer than the limits of this test."""
    import fsspec

    options = {**object_store.options, "endpoint_url": f"http://127.0.0.1:{server.port}"}
    fsspec.filesystem("s3", **options).connect()
    return options


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore")  # of boto, not of kwire
@pytest.mark.parametrize("name", REQUESTS)
def test_headers_of_every_response_have_a_deadline(name: str, object_store: ObjectStore) -> None:
    check(name, b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n", object_store)


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["list", "list_all", "read_all", "pread", "find"])
def test_bodies_of_responses_have_a_deadline(name: str, object_store: ObjectStore) -> None:
    check(name, b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: 1000000\r\n\r\n', b"a", object_store)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_parquet_files_are_found_and_read_with_a_deadline(object_store: ObjectStore, tmp_path: Path) -> None:
    import fsspec

    target = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"topic": ["t"], "partition": [0], "value": [b"v"]}), target)
    object_store.fs.mkdir("bucket")
    object_store.fs.pipe_file("bucket/in/rows.parquet", target.read_bytes())
    found = open_input(["s3://bucket/in"], None, object_store.options)
    assert [rows.column("value").to_pylist() for rows in found.read(0, 0)] == [[b"v"]]
    head = b'HTTP/1.1 206 Partial Content\r\nETag: "a"\r\nContent-Length: 1000000\r\n'
    with DrippingServer(head, b"x-a: b\r\n") as server, pytest.raises(LogError, match="no whole response within"):
        open_input(["s3://bucket/in"], None, options_of(object_store, server))
    with DrippingServer(head + b"\r\n", b"a") as server:
        fs = fsspec.filesystem("s3", **options_of(object_store, server))
        with pytest.raises(LogError, match=r"cannot be read at byte .*no whole response within"):
            list(Input(fs, found.files, None).read(0, 0))


def check(name: str, whole: bytes, slow: bytes, object_store: ObjectStore) -> None:
    with DrippingServer(whole, slow) as server:
        store = open_writable_store("s3://bucket/logs", options_of(object_store, server))
        for _ in range(5):  # on a busy machine, the driver's first calls may take longer than the limits
            start = time.monotonic()
            with pytest.raises(LogError, match=r"s3://bucket/logs.*no whole response within [0-9]+ s"):
                REQUESTS[name](store)
            assert time.monotonic() - start < 10
            if server.requests:
                return
        pytest.fail("no request reached the server")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_deadline_grows_with_the_size(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that sends slowly, and fast enough, is read."""
    monkeypatch.setattr(driver_calls, "SLOWEST_BYTES_S", 10.0)
    whole = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-29/1000\r\nContent-Length: 30\r\n\r\n"
    with DrippingServer(whole, b"a", byte_s=0.05) as server:  # 30 bytes in 1.5 s, within 3.6
        store: Any = open_store("s3://bucket/logs", options_of(object_store, server))
        with store.open_sized("0.log", 1000) as file:
            assert file.pread(0, 30) == b"a" * 30
    with DrippingServer(whole, b"a", byte_s=0.2) as server:  # 6 s
        store = open_store("s3://bucket/logs", options_of(object_store, server))
        with store.open_sized("0.log", 1000) as file, pytest.raises(LogError, match=r"byte 0: .*response within 4 s"):
            file.pread(0, 30)


def test_drivers_without_a_loop_are_called_as_they_are() -> None:
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.pipe_file("/kwire-calls/a", b"data")
    try:
        assert driver_calls.call(fs, "cat_file", "/kwire-calls/a", size_bytes=2, start=1, end=3) == b"at"
    finally:
        fs.rm("/kwire-calls", recursive=True)
