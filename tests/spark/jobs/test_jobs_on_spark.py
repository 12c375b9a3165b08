"""kwire.spark.jobs on Spark: the examples of docs/jobs.md, and translated offsets."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.broker.still import StillBroker

from kwire.errors import OptionError
from kwire.log import LogDirectory
from kwire.spark import jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
CAPTURES = ROOT / "tests" / "data" / "captures"


@pytest.mark.slow
def test_the_pages_examples_on_spark(
    spark: SparkSession, modern: Path, kafka_logs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "jobs.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"spark": spark}
    shutil.copytree(modern, tmp_path / "cluster")
    with StillBroker(data_dir=tmp_path / "cluster") as broker:
        for number, block in enumerate(blocks):
            source = block.replace("/mnt/kafka", str(modern)).replace("/mnt/captures", str(CAPTURES))
            source = source.replace("/mnt/out", str(tmp_path)).replace("broker:9092", broker.bootstrap_servers)
            exec(compile(source, f"docs/jobs.md, example {number}", "exec"), names)
    directory = LogDirectory(modern)
    assert names["found"].is_fine
    assert names["found"].partitions.count() == len(directory)
    orders = sum(len(list(directory["orders", n].read())) for n in range(3))
    assert names["written"].total("records") == orders
    assert spark.read.parquet(str(tmp_path / "parquet" / "orders")).count() == orders
    assert sorted(LogDirectory(tmp_path / "zstd")) == sorted(directory)
    assert {key[0] for key in LogDirectory(tmp_path / "compacted")} == {"compacted", "__cluster_metadata"}
    assert sorted(LogDirectory(tmp_path / "restored")) == [("orders", n) for n in range(3)]
    copied = LogDirectory(tmp_path / "copy")
    assert names["pulled"].is_complete
    assert [key for key in copied if key[0] == "orders"] == [("orders", n) for n in range(3)]
    for key in (("orders", n) for n in range(3)):
        assert list(copied[key].read()) == list(directory[key].read())
    assert names["appended"].total("rows") == sum(
        len(list(directory["orders", n].read(isolation="read_committed"))) for n in range(3)
    )
    assert (tmp_path / "tables" / "latest" / "_delta_log").is_dir()
    assert (tmp_path / "catalog.db").is_file()
    moved = {
        (row["group"], row["topic"], row["partition"]): (row["offset"], row["new_offset"])
        for row in names["moved"].collect()
    }
    assert moved
    assert names["advice"].fields.where("saved_bytes > 0").count() > 10
    assert (tmp_path / "advice.html").read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_committed_offsets_are_remapped_with_their_records(spark: SparkSession) -> None:
    runs = spark.createDataFrame(
        [("t", 0, 10, 0, 5), ("t", 0, 20, 5, 2), ("t", 1, 0, 0, 9)],
        "topic string, partition int, old_offset bigint, new_offset bigint, count bigint",
    )
    # before the first, inside, at a gap, inside the second, at its end, behind everything
    expected = {3: 0, 10: 0, 13: 3, 15: 5, 17: 5, 21: 6, 22: 7, 99: 7}
    rows: list[tuple[str, str, int, int | None]] = [("g", "t", 0, old) for old in expected]
    rows += [("g", "t", 1, 9), ("g", "u", 0, 4), ("g", "t", 0, None)]
    offsets = spark.createDataFrame(rows, "group string, topic string, partition int, offset bigint")
    found = jobs.translate_offsets(spark, offsets, runs)
    assert found.columns == ["group", "topic", "partition", "offset", "new_offset"]
    assert {(row["topic"], row["partition"], row["offset"]): row["new_offset"] for row in found.collect()} == {
        **{("t", 0, old): new for old, new in expected.items()},
        ("t", 1, 9): 9,
        ("u", 0, 4): None,
        ("t", 0, None): None,
    }
    with pytest.raises(OptionError, match="translation: no column count"):
        jobs.translate_offsets(spark, offsets, runs.drop("count"))
