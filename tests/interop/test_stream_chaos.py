"""Streaming queries and their brokers are killed at random; the sink has every committed record once and in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.soak.streams import RealKafka, soak_streams
from tests.spark.conftest import missing_java
from tools import kafka

pytest.importorskip("pyspark.sql.datasource")

pytestmark = [pytest.mark.jvm, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

SECONDS = {"live-live": 40, "log-live": 30}  # others 20; `./dev soak streams` has no end


@pytest.fixture(autouse=True)
def java() -> None:
    if reason := missing_java():
        pytest.skip(reason)


@pytest.mark.parametrize(
    ("variant", "seed"),
    [("live-live", 1), ("live-shuffled-live", 2), ("live-parquet", 3), ("live-logs", 4), ("log-live", 5)],
)
def test_a_stream_writes_every_record_once_whatever_is_killed(variant: str, seed: int, tmp_path: Path) -> None:
    report = soak_streams(tmp_path, variant=variant, seconds=SECONDS.get(variant, 20), seed=seed)
    assert report.records > 1000
    assert report.aborted_transactions > 0
    assert report.query_kills >= 2  # the last one is behind everything


def test_a_stream_on_kafka_writes_every_record_once_whatever_is_killed(tmp_path: Path) -> None:
    try:
        kafka.jars()
    except kafka.Unavailable as missing:
        pytest.skip(str(missing))
    broker = RealKafka(tmp_path / "kafka", "3.9.1")
    report = soak_streams(tmp_path, variant="live-live", seconds=30, seed=6, broker=broker)
    assert report.records > 1000
    assert report.query_kills >= 2
