"""What goes wrong in a query is an error that says where, and no result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire.broker import Broker
from kwire.errors import ConnectionFailed, CorruptBatch, OptionError
from kwire.records import write_batch
from kwire.records.compression.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from tests.cli.crafted import segment
from tests.records.test_builder import plain
from tests.rewriting_proxy import RewritingProxy

pytest.importorskip("duckdb")

from kwire.sql.session import Attached, Session
from tests.sql.test_dataset import produce

SETTINGS = {"default_api_timeout_ms": 500, "max_partition_fetch_bytes": 1}


def dying(broker: Broker, proxy: RewritingProxy, responses: int) -> None:
    """Make a proxy forward this many Fetch responses and refuse connections from then on."""
    left = [responses]

    def count(response: Any) -> None:
        if not left[0]:
            proxy.target = ("127.0.0.1", 1)
            proxy.__exit__(None, None, None)
        left[0] -= 1

    proxy.rewrite["FetchResponse"] = count


@pytest.mark.parametrize("responses", [0, 1, 5])
def test_a_broker_that_dies_ends_the_query(responses: int) -> None:
    with Broker() as broker, RewritingProxy(("127.0.0.1", broker.port)) as proxy:
        broker.create_topic("events", 2)
        for _ in range(10):
            produce(broker, 2)
        with kwire.open(f"kafka://{proxy.address}", **SETTINGS) as logs:
            session = Session()
            session.attach(Attached(logs=logs))
            dying(broker, proxy, responses)
            with pytest.raises(ConnectionFailed, match=proxy.address):
                rows(session, "SELECT count(*) FROM events")


def rows(session: Session, statement: str) -> int:
    result = session.run(statement)
    assert result is not None
    return int(result.read_all().num_rows)


def test_a_result_above_the_memory_limit_is_an_error(kafka_logs: dict[str, Path]) -> None:
    with kwire.open(kafka_logs["modern"] / "data") as logs:
        session = Session()
        session.attach(Attached(logs=logs))
        session.run("SET memory_limit = '2MB'")
        session.run("SET temp_directory = ''")
        with pytest.raises(OptionError, match="Out of Memory"):
            rows(session, "SELECT repeat(value, 100) AS v FROM orders ORDER BY v")


def test_a_batch_that_is_too_large_for_memory_is_an_error(tmp_path: Path) -> None:
    bomb = write_batch([plain(0, None, bytes(DEFAULT_MAX_DECOMPRESSED_BYTES), 1)], 2, "zstd")
    segment(tmp_path / "bombs-0", bomb)
    with kwire.open(tmp_path) as logs:
        session = Session()
        session.attach(Attached(logs=logs))
        with pytest.raises(CorruptBatch, match=f"bombs-0.* max_decompressed_bytes={DEFAULT_MAX_DECOMPRESSED_BYTES}"):
            rows(session, "SELECT octet_length(value) FROM bombs")


@pytest.mark.parametrize(
    ("statement", "nearest"),
    [
        ("SELECT ofset FROM orders", '"offset"'),
        ("SELECT * FROM orders WHERE partiton = 1", '"partition"'),
    ],
)
def test_an_unknown_column_names_the_nearest(kafka_logs: dict[str, Path], statement: str, nearest: str) -> None:
    with kwire.open(kafka_logs["modern"] / "data") as logs:
        session = Session()
        session.attach(Attached(logs=logs))
        with pytest.raises(OptionError, match=f"Candidate bindings: {nearest}"):
            session.run(statement)
