"""The last step of `./dev demo`: a topic in an Iceberg table, queried."""

from __future__ import annotations

import importlib.util
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.golden import DATA

from kwire.broker import Broker
from kwire.log import LogDirectory


def load() -> Any:
    """Return the module of the demo."""
    for needed in ("confluent_kafka", "duckdb", "pyiceberg", "pyspark"):
        pytest.importorskip(needed)
    spec = importlib.util.spec_from_file_location("demo", DATA.parents[1] / "examples" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    return demo


def test_the_producer_of_the_demo_does_not_report_that_the_broker_stops(capfd: pytest.CaptureFixture[str]) -> None:
    demo = load()
    with Broker(num_partitions=3) as broker:
        demo.write_clicks(broker.bootstrap_servers)
        assert len(broker.records("clicks")) == demo.RECORDS
    time.sleep(0.2)  # in which a producer that is left prints errors: `Disconnected`, then `Connection refused`
    assert capfd.readouterr() == ("", "")


def test_the_demo_ends_with_a_table_queried(
    kafka_logs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows are those of the log: orders and pieces of each city."""
    demo = load()
    data, lake = kafka_logs["modern"] / "data", tmp_path / "a folder"
    demo.query_table(data, lake)
    printed = capsys.readouterr().out

    orders: Counter[str] = Counter()
    pieces: Counter[str] = Counter()
    for (topic, _), log in LogDirectory(data).items():
        for record in log.read(isolation="read_committed") if topic == "orders" else ():
            if record.value and record.value.startswith(b"{"):  # the topic has tombstones and texts too
                fields = json.loads(record.value)
                orders[fields["city"]] += 1
                pieces[fields["city"]] += sum(line["qty"] for line in fields["lines"])
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in printed.splitlines() if "│" in line]
    expected = [[city, str(orders[city]), str(count)] for city, count in pieces.most_common()]
    assert len(expected) == 10
    assert cells[2 : 2 + len(expected)] == expected
    assert f"{lake}/demo/orders" in printed
    assert list((lake / "demo" / "orders" / "data").glob("*.parquet"))
    assert demo.QUERY.splitlines()[0] in printed
