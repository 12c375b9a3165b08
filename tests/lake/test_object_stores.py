"""Tables in S3, with the settings that reach kwire from Spark: names in lower case."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.lake import Layout, Mark, write_files
from tests.lake.tables import FORMATS, KAFKA, Tables, kafka_rows, write

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")


@pytest.fixture
def endpoint() -> Iterator[str]:
    """An S3 server in another process: delta-rs holds the interpreter lock in some requests."""
    pytest.importorskip("moto.server")
    from pyarrow.fs import S3FileSystem

    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        try:
            url = next(found[0] for line in server.stdout if (found := re.search(r"http://127\S+", line)))
            settings = {"access_key": "hunter2", "secret_key": "hunter2", "region": "us-east-1"}
            S3FileSystem(endpoint_override=url, allow_bucket_creation=True, **settings).create_dir("lake")
            yield url
        finally:
            server.kill()


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_in_s3(endpoint: str, tmp_path: Path, format: str) -> None:
    storage = {
        "iceberg": {
            "s3.endpoint": endpoint,
            "s3.access-key-id": "hunter2",
            "s3.secret-access-key": "hunter2",
            "s3.region": "us-east-1",
        },
        "delta": {
            "aws_endpoint_url": endpoint,
            "aws_access_key_id": "hunter2",
            "aws_secret_access_key": "hunter2",
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        },
    }[format]
    tables = Tables(format, tmp_path, url="s3://lake", storage=storage)
    layout = Layout(partition_by=("topic",))
    write(tables.open(), kafka_rows(0, 10), mark=Mark(query="q", batch=0), layout=layout)
    table = tables.open()
    assert not write(table, kafka_rows(0, 10), mark=Mark(query="q", batch=0))
    write(table, kafka_rows(10, 12), mark=Mark(query="q", batch=1))
    write_files(kafka_rows(12, 20).to_batches(), table.prepare(KAFKA, layout))
    (orphan,) = table.find_orphans(0)
    table.delete_orphans([orphan])
    assert table.find_orphans(0) == []
    assert sorted(tables.read().column("offset").to_pylist()) == list(range(12))
    assert table.state().spans == {("orders", 0): (0, 12)}
    write(tables.open("latest"), kafka_rows(0, 10, key=3), key=("key",))
    write(tables.open("latest"), kafka_rows(10, 12, key=3), key=("key",))
    assert sorted(tables.read("latest").column("offset").to_pylist()) == [9, 10, 11]
    assert "hunter2" not in repr(table.prepare(KAFKA, layout))
