"""Tables in S3, with the settings that reach kwire from Spark: names in lower case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.lake import Layout, Mark, write_files
from tests.lake.tables import FORMATS, KAFKA, Tables, kafka_rows, write
from tests.object_store import aws_process

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")


@pytest.fixture
def endpoint() -> Iterator[str]:
    with aws_process("lake") as url:
        yield url


@pytest.mark.sampled
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
    assert table.state().spans == {("orders", 0): ((0, 12),)}
    write(tables.open("latest"), kafka_rows(0, 10, key=3), key=("key",))
    write(tables.open("latest"), kafka_rows(10, 12, key=3), key=("key",))
    assert sorted(tables.read("latest").column("offset").to_pylist()) == [9, 10, 11]
    assert "hunter2" not in repr(table.prepare(KAFKA, layout))
