"""Streaming queries and their brokers are killed at random; the sink has every committed record once and in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.soak.streams import RealKafka, StreamReport, soak_streams
from tests.spark.conftest import need_java
from tools import kafka

pytest.importorskip("pyspark.sql.datasource")

pytestmark = [pytest.mark.jvm, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def java() -> None:
    need_java()


def check(report: StreamReport) -> None:
    assert report.records > 1000
    assert report.aborted_transactions > 0
    assert report.query_kills >= 3  # the last one is behind everything
    assert report.broker_kills >= 1


@pytest.mark.parametrize(("variant", "seed"), [("live-live", 1), ("live-parquet", 2), ("log-live", 3)])
def test_a_stream_writes_every_record_once_despite_kills(variant: str, seed: int, tmp_path: Path) -> None:
    check(soak_streams(tmp_path, variant=variant, seconds=20, seed=seed))


def test_a_stream_to_kafka_writes_every_record_once_despite_kills(tmp_path: Path) -> None:
    kafka.jars()
    broker = RealKafka(tmp_path / "kafka", "3.9.1")
    check(soak_streams(tmp_path, variant="live-shuffled-live", seconds=20, seed=4, broker=broker))
