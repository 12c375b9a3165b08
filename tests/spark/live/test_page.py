"""docs/live.md and the sections of docs/spark.md on streams and writing say what is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.settings import IGNORED, KNOWN
from kwire.messages import registry
from kwire.spark.live import options as live_options
from kwire.spark.live import write_options as live_write_options
from kwire.spark.log import options
from kwire.spark.log import write_options as log_write_options

pytest.importorskip("pyspark.sql.datasource")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[3] / "docs"
LIVE, LOG = (DOCS / name for name in ("live.md", "spark.md"))


def section(page: Path, heading: str) -> str:
    """What stands below a heading of level 2."""
    found = page.read_text("utf-8").split(f"\n## {heading}\n", 1)[1]
    return found.split("\n## ", 1)[0]


def named(text: str) -> set[str]:
    """The options in the first columns of tables."""
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}


def test_every_option_of_reading_and_writing_topics_is_on_the_page_and_no_other() -> None:
    reading = named(section(LIVE, "Reading"))
    assert reading - {"kafka.bootstrap.servers", "kafka"} == set(live_options.NAMES)
    writing = {name for name in named(section(LIVE, "Writing")) if name not in ("value", "key", "headers", "partition")}
    plain = {name for name in writing if not name.startswith("kafka.")}
    assert plain == set(live_write_options.NAMES) - {"checkpointLocation"}
    settings = {name.removeprefix("kafka.") for name in writing - plain} | {
        name.removeprefix("kafka.") for name in named(section(LIVE, "Settings and security"))
    }
    assert settings <= {*KNOWN, *IGNORED}
    for name in live_options.REFUSED:
        assert name in ("topic", "path") or f"`{name}`" in LIVE.read_text("utf-8")


def test_every_option_of_streams_and_of_writing_directories_is_on_the_page() -> None:
    assert named(section(LOG, "A directory that grows, as a stream")) == set(options.STREAM_NAMES)
    columns = {"value", "key", "headers", "topic", "partition", "offset", "timestamp", "timestampType"}
    assert named(section(LOG, "Write a log directory")) == columns | set(log_write_options.NAMES)


@pytest.mark.parametrize("page", [LIVE, LOG], ids=lambda path: str(path.name))
def test_links_inside_the_pages_lead_somewhere(page: Path) -> None:
    for name, anchor in re.findall(r"\]\(([\w.]*)#([\w-]+)\)", page.read_text("utf-8")):
        text = (DOCS / name if name else page).read_text("utf-8")
        headings = {
            re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        }
        assert anchor in headings


def test_the_examples_run_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
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
