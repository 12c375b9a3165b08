"""The examples, links and configurations of docs/live.md, and the links of docs/spark.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.settings import KNOWN, REASONS
from kwire.messages import registry
from kwire.spark.live.write_options import WRITE_OPTIONS

pytest.importorskip("pyspark.sql.datasource")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[3] / "docs"
LIVE, LOG = (DOCS / name for name in ("live.md", "spark.md"))


def test_kafka_configs_on_the_page_exist() -> None:
    text = LIVE.read_text("utf-8").split("\n## Kafka configurations\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    shown = {name.removeprefix("kafka.") for row in rows for name in re.findall(r"`(kafka\.[\w.]+)`", row)}
    written = {each.name.removeprefix("kafka.") for each in WRITE_OPTIONS if each.name.startswith("kafka.")} - {"*"}
    assert shown
    assert shown | written <= {*KNOWN, *REASONS}


@pytest.mark.parametrize("page", [LIVE, LOG], ids=lambda path: str(path.name))
def test_links_within_the_pages_resolve(page: Path) -> None:
    for name, anchor in re.findall(r"\]\(([\w.]*)#([\w-]+)\)", page.read_text("utf-8")):
        text = (DOCS / name if name else page).read_text("utf-8")
        headings = {
            re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        }
        assert anchor in headings


def test_examples_run_in_order(spark: SparkSession, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", LIVE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    cls: Any = registry.get("CreateTopicsRequest")
    topics = [
        cls.CreatableTopic(name=name, num_partitions=4, replication_factor=1) for name in ("events", "copies", "counts")
    ]
    with Broker() as broker, Client(broker.bootstrap_servers) as client:
        assert not any(each.error_code for each in client.request(cls(topics=topics, timeout_ms=9_000)).topics)
        names: dict[str, Any] = {}
        for block in blocks:
            source = block.replace("localhost:9092", broker.bootstrap_servers)
            exec(compile(source.replace("/tmp/checkpoints", str(tmp_path)), LIVE.name, "exec"), names)
        assert names["spark"] is spark
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "kafka.isolation.level": "read_committed"}
        copies = spark.read.format("kafka-live").options(**options, subscribe="copies").load()
        assert copies.select("key", "value").distinct().count() == copies.count() == 1000
        counts = spark.read.format("kafka-live").options(**options, subscribe="counts").load()
        assert [bytes(row.value) for row in counts.collect()] == [b"100"] * 10
