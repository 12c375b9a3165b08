"""Spark's rows equal the records of Kafka's own consumer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests import golden

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMESTAMP_TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}

Row = tuple[Any, ...]


def consumed(folder: Path, isolation: str) -> dict[tuple[str, int], list[Row]]:
    """Return rows by partition as the consumer returned them."""
    found = {}
    for file in sorted((folder / "expected" / "consumed").glob(f"*.{isolation}.jsonl.gz")):
        topic, _, partition = file.name.removesuffix(f".{isolation}.jsonl.gz").rpartition("-")
        found[topic, int(partition)] = [
            (
                golden.unpack(line["key"]),
                golden.unpack(line["value"]),
                topic,
                line["partition"],
                line["offset"],
                line["timestamp"] * 1000,
                TIMESTAMP_TYPES[line["timestampType"]],
                [(name, golden.unpack(value)) for name, value in line["headers"]] or None,
            )
            for line in golden.lines(str(file))
        ]
    return found


@pytest.mark.sampled
@pytest.mark.requirement("D-03", "D-04")
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("directory", ["modern", "modern44", "legacy"])
def test_every_record_equals_the_consumers(
    spark: SparkSession, kafka_logs: dict[str, Path], directory: str, isolation: str
) -> None:
    import pyarrow as pa

    folder = kafka_logs[directory]
    expected = consumed(folder, isolation)
    table = (
        spark.read.format("kafka-log")
        .option("includeInternal", True)
        .option("includeHeaders", True)
        .option("kafka.isolation.level", isolation)
        .load(str(folder / "data"))
        .where("topic <> '__cluster_metadata'")  # no consumer can read it
        .toArrow()
    )
    columns = [column.cast(pa.int64()) if name == "timestamp" else column for name, column in zip(
        table.column_names, table.columns, strict=True
    )]  # fmt: skip
    actual: dict[tuple[str, int], list[Row]] = {key: [] for key in expected}
    for *head, headers in zip(*(column.to_pylist() for column in columns), strict=True):
        pairs = None if headers is None else [(header["key"], header["value"]) for header in headers]
        actual[head[2], head[3]].append((*head, pairs))
    assert sum(map(len, expected.values())) > 1000
    for key, rows in expected.items():
        # In the order of the consumer: the offsets of a partition stay in order inside a task, and tasks are sorted.
        assert actual[key] == rows, key
