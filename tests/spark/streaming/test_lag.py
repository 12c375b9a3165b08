"""The lag of queries, from progress reports and as a consumer group."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.lake.test_metrics import samples

pytest.importorskip("pyspark.sql.datasource")

from tests.spark.live.test_source import Cluster
from tests.waiting import HANG_S

import kwire.spark
from kwire.broker import Broker
from kwire.client.group_offsets import fetch_offsets
from kwire.errors import OptionError
from kwire.spark.streaming.lag import LagListener, lag_of_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID = "orders#AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Broker() as broker:
        found = Cluster(broker.bootstrap_servers)
        yield found
        found.client.close()


def progress(*sources: tuple[Any, Any, Any], name: str | None = "copy", number: str = "id-1") -> dict[str, Any]:
    keys = ("startOffset", "endOffset", "latestOffset")
    described = [
        {key: value if isinstance(value, str) else json.dumps(value) for key, value in zip(keys, source, strict=True)}
        for source in sources
    ]
    return {"name": name, "id": number, "sources": described}


ORDERS = (
    {"orders": {"0": 0, "1": 0}, ID: {}},
    {"orders": {"0": 10, "1": 20}, ID: {}},
    {"orders": {"0": 10, "1": 25}, ID: {}, "late": {"0": 4}},
)


def test_the_lag_has_the_names_and_values_of_sparks_connector() -> None:
    assert lag_of_progress(progress(ORDERS)) == {
        "orders": {"minOffsetsBehindLatest": 0, "avgOffsetsBehindLatest": 2.5, "maxOffsetsBehindLatest": 5}
    }


def test_sources_are_combined_and_those_without_partitions_skipped() -> None:
    found = lag_of_progress(
        progress(
            ORDERS,
            ({}, {"orders": {"7": 1}}, {"orders": {"7": 101}}),
            ("None", {"users": {"0": 5}}, {"users": {"0": 3}}),  # a log that was cut is not a negative lag
            ("0", "7", "9"),  # the rate source
            ("None", '{"file":{"path":"x"}}', "None"),
            ("None", "{broken", '["a"]'),
        )
    )
    assert {topic: each["maxOffsetsBehindLatest"] for topic, each in found.items()} == {"orders": 100, "users": 0}
    assert found["orders"]["avgOffsetsBehindLatest"] == 35
    idle = ({"orders": {"0": 10}}, "None", {"orders": {"0": 12}})
    assert lag_of_progress(progress(idle))["orders"]["minOffsetsBehindLatest"] == 2


class Event:
    def __init__(self, report: dict[str, Any]) -> None:
        self.progress = report


def test_a_listener_writes_metrics(tmp_path: Path) -> None:
    listener: Any = LagListener(metrics_file=str(tmp_path / "lag.prom"))
    listener.onQueryProgress(Event(progress(ORDERS)))
    listener.onQueryProgress(Event(progress(({"orders": {"0": 10}}, "None", {"orders": {"0": 12}}), name=None)))
    assert samples(tmp_path / "lag.prom") == {
        ("offsets_behind_latest", "copy", "orders", "0"): 0,
        ("offsets_behind_latest", "copy", "orders", "1"): 5,
        ("offsets_behind_latest", "id-1", "orders", "0"): 2,
    }


def test_a_listener_logs_and_commits_only_the_positions_of_its_query(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create("orders", 2)
    listener: Any = LagListener(query="copy", group="spark-copy", bootstrap_servers=cluster.servers)
    with caplog.at_level(logging.INFO, "kwire.spark"):
        listener.onQueryProgress(Event(progress(ORDERS)))
        listener.onQueryProgress(Event(progress(ORDERS, name="other", number="id-2")))
    assert [record.getMessage() for record in caplog.records] == [
        "query copy is behind on topic orders by 0 to 5 offsets per partition, 2.5 on average"
    ]
    committed = {key: each.offset for key, each in fetch_offsets(cluster.client, "spark-copy").items()}
    assert committed == {("orders", 0): 10, ("orders", 1): 20}
    by_id: Any = LagListener(query="id-1", group="by-id", **{"bootstrap.servers": cluster.servers})
    by_id.onQueryProgress(Event(progress(ORDERS, name=None)))
    assert len(fetch_offsets(cluster.client, "by-id")) == 2


def test_an_unreachable_cluster_is_a_warning_and_the_query_continues(caplog: pytest.LogCaptureFixture) -> None:
    gone = {"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": "200"}
    listener: Any = LagListener(query="copy", group="g", **gone)
    listener.onQueryProgress(Event(progress(ORDERS)))
    assert "offsets of query id-1 are not committed to group g: 127.0.0.1:1" in caplog.text


def test_invalid_settings_are_rejected() -> None:
    for given, message in (
        ({"group": "g", "bootstrap.servers": "a:1"}, "group requires query"),
        ({"bootstrap.servers": "a:1"}, "'bootstrap.servers' requires group"),
        ({"query": "q", "group": "g"}, "'bootstrap.servers' is required"),
        ({"query": "q", "group": "g", "bootstrap.server": "a:1"}, "unknown config 'bootstrap.server'"),
    ):
        with pytest.raises(OptionError, match=message):
            LagListener(**given)


def test_importing_the_package_does_not_load_pyspark() -> None:
    # Planners and workers import it before anything else.
    code = "import sys, kwire.spark; print('pyspark' in sys.modules, hasattr(kwire.spark, 'nothing'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]


@pytest.mark.slow
def test_the_lag_of_a_running_query_is_reported_to_driver_and_cluster(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create("behind", 2)
    cluster.write("behind", 0, ["x"] * 100)
    cluster.write("behind", 1, ["x"] * 50)
    listener = kwire.spark.LagListener(query="lagging", group="lagging-group", bootstrap_servers=cluster.servers)
    spark.streams.addListener(listener)
    try:
        query = (
            spark.readStream.format("kafka-live")
            .options(**{"kafka.bootstrap.servers": cluster.servers, "subscribe": "behind"})
            .options(startingOffsets="earliest", maxOffsetsPerTrigger=60)
            .load()
            .select("offset")
            .writeStream.format("noop")
            .queryName("lagging")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(int(HANG_S))
        assert query.exception() is None
        reports = [lag_of_progress(each) for each in query.recentProgress if each["numInputRows"]]
        assert reports[0]["behind"] == {
            "minOffsetsBehindLatest": 30,
            "avgOffsetsBehindLatest": 45,
            "maxOffsetsBehindLatest": 60,
        }
        assert kwire.spark.lag(query)["behind"]["maxOffsetsBehindLatest"] == 0
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        committed = {key: each.offset for key, each in fetch_offsets(cluster.client, "lagging-group").items()}
        assert committed == {("behind", 0): 100, ("behind", 1): 50}
    finally:
        spark.streams.removeListener(listener)
