"""Filters that are pushed down give the rows of the query that is not: on each topic of real Kafka's directories."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwire
from kwire.broker import Broker
from kwire.errors import KwireError
from kwire.log.reading.readable_log import ReadableLog
from kwire.records import Record, write_batch
from kwire.records.attributes import TimestampType
from kwire.sql import TopicDataset
from tests.sql.predicates import draw_condition

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")

CREATE_TIME = TimestampType.CREATE_TIME
CONDITIONS = int(os.environ.get("KWIRE_CONDITIONS", "25"))  # for each directory; ./dev nightly draws more


def whole(dataset: TopicDataset) -> pa.Table | None:
    """All rows of a dataset, None if its log is damaged; compared with the records that the log's reader returns."""
    try:
        table = dataset.to_table()
    except KwireError:
        return None
    records = sum(1 for each in dataset.ranges for _ in each.log.read(isolation="read_committed"))
    assert table.num_rows == records
    return table


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    us = table.column("timestamp").cast(pa.int64())
    columns = [table.column("partition"), table.column("offset"), us, table.column("topic")]
    return [
        dict(zip(("partition", "offset", "us", "topic"), row, strict=True))
        for row in zip(*(each.to_pylist() for each in columns), strict=True)
    ]


def compare(path: str, seed: int, topics: list[str] | None = None, **settings: Any) -> int:
    """Compare random queries of random topics of a source; return the number of rows that matched."""
    rnd = random.Random(seed)
    connection = duckdb.connect()
    connection.sql("SET timezone = 'UTC'")
    matched = 0
    with kwire.open(path, **settings) as logs:
        datasets = [logs.topic(topic) for topic in topics or logs.topics]
        tables = [(each, table) for each in datasets if (table := whole(each)) is not None and table.num_rows]
        known = {each.topic: rows_of(table) for each, table in tables}
        for _ in range(CONDITIONS):
            pushed, read = rnd.choice(tables)
            connection.register("pushed", pushed)
            connection.register("read", read)
            condition = draw_condition(rnd, known[pushed.topic])
            columns = rnd.choice(['partition, "offset"', 'partition, "offset", timestamp, key', "*"])
            query = f'SELECT {columns} FROM {{}} WHERE {condition} ORDER BY partition, "offset"'
            expected = connection.sql(query.format("read")).fetchall()
            assert connection.sql(query.format("pushed")).fetchall() == expected, (pushed.topic, query)
            matched += len(expected)
    return matched


@pytest.mark.parametrize("archive", ["modern", "modern44", "legacy", "unclean"])
def test_conditions_of_duckdb_lose_no_row_of_a_directory(archive: str, kafka_logs: dict[str, Path]) -> None:
    folder = kafka_logs[archive]
    path = next(each for each in (folder / "data", folder / "killed" / "data") if each.exists())
    assert compare(str(path), seed=len(archive)) > 0


def test_conditions_of_duckdb_lose_no_row_of_a_running_broker(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(kafka_logs["modern"] / "data", tmp_path / "data")
    with Broker(tmp_path / "data", port=0) as broker:
        topics = ["orders", "logappend", "compacted", "txn"]
        assert compare(f"kafka://{broker.bootstrap_servers}", seed=3, topics=topics) > 0


def test_conditions_of_polars_lose_no_row(kafka_logs: dict[str, Path]) -> None:
    with kwire.open(kafka_logs["modern"] / "data") as logs:
        dataset = logs.topic("orders")
        table = pl.from_arrow(dataset.to_table())
        for condition in (
            (pl.col("partition") == 1) & (pl.col("offset") >= 20),
            pl.col("offset").is_in([3, 50, 100000]),
            (pl.col("offset") < 5) | (pl.col("partition") > 1) & (pl.col("offset") > 6000),
            pl.col("timestamp") > table["timestamp"].sort()[-5],
            pl.col("key").is_null(),
            ~(pl.col("offset") < 6000),
        ):
            pushed = pl.scan_pyarrow_dataset(dataset).filter(condition).select("partition", "offset", "key").collect()
            expected = table.filter(condition).select("partition", "offset", "key")
            assert pushed.sort("partition", "offset").equals(expected.sort("partition", "offset")), str(condition)


class Counting:
    """Counts the ranges that are read of logs, by wrapping read_arrow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ranges: list[tuple[int, int, int]] = []
        real = ReadableLog.read_arrow

        def read_arrow(log: ReadableLog, start: int, end: int, *rest: Any, **options: Any) -> pa.RecordBatchReader:
            self.ranges.append((log.partition, start, end))
            return real(log, start, end, *rest, **options)

        monkeypatch.setattr(ReadableLog, "read_arrow", read_arrow)


def test_only_offsets_that_can_match_are_read(kafka_logs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    with kwire.open(kafka_logs["modern"] / "data") as logs:
        pushed = logs.topic("orders")
        end = pushed.ranges[1].end_offset
        last = pushed.to_table().column("timestamp").to_pylist()
        counting = Counting(monkeypatch)

        def ranges(condition: str) -> list[tuple[int, int, int]]:
            counting.ranges.clear()
            connection.sql(f"SELECT count(*) FROM orders WHERE {condition}").fetchall()
            return sorted(counting.ranges)

        connection = duckdb.connect()
        connection.register("orders", pushed)
        assert ranges('partition = 1 AND "offset" >= 20') == [(1, 20, end)]
        assert ranges('partition = 1 AND "offset" > 20 AND "offset" < 22') == [(1, 21, 22)]
        assert ranges('partition = 1 AND "offset" IN (3, 5000)') == [(1, 3, 4), (1, 5000, 5001)]
        assert ranges("topic = 'other'") == []
        assert ranges("partition = 7") == []
        newest = sorted(last)[-3]
        read = ranges(f"timestamp >= TIMESTAMPTZ '{newest.isoformat()}'")
        assert sum(stop - start for _, start, stop in read) < len(last) / 2


def test_a_limit_reads_one_piece_of_one_partition(kafka_logs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    with kwire.open(kafka_logs["modern"] / "data") as logs:
        pushed = logs.topic("orders")
        counting = Counting(monkeypatch)
        assert len(duckdb.connect().sql("SELECT key FROM pushed LIMIT 5").fetchall()) == 5
        assert len(counting.ranges) <= 2  # the first one, and what a thread may have begun
        counting.ranges.clear()
        assert pushed.head(5).num_rows == 5
        assert len(counting.ranges) == 1


def test_segments_without_timestamps_hide_no_later_row(tmp_path: Path) -> None:
    """Kafka's search for a time ends at a segment without timestamps whose file is newer: magic 0, then magic 2."""
    log = tmp_path / "old-0"
    log.mkdir()
    for base, magic, times in ((0, 0, (-1, -1)), (2, 2, (1_000_000, 2_000_000))):
        records = [
            Record(
                offset=base + i,
                timestamp=time,
                timestamp_type=TimestampType.CREATE_TIME,
                key=None,
                value=b"v",
                headers=[],
            )
            for i, time in enumerate(times)
        ]
        file = log / f"{base:020}.log"
        file.write_bytes(write_batch(records, magic=magic, base_offset=base))
        os.utime(file, (10_000, 10_000))  # 10,000,000 ms, later than all records
    with kwire.open(tmp_path) as logs:
        assert logs["old", 0].offset_for_time(2_000_000) is None  # as Kafka
        connection = duckdb.connect()
        connection.register("old", logs.topic("old"))
        query = 'SELECT "offset" FROM old WHERE timestamp >= make_timestamptz(2000000000)'
        assert connection.sql(query).fetchall() == [(3,)]
