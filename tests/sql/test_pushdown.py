"""Filters that are pushed down give the rows of the query that is not: on each topic of real Kafka's directories."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import kwire
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.reading.runs import Isolation, PinnedRange
from kwire.records import Record, write_batch
from kwire.records.attributes import TimestampType
from tests.object_store import PROXIES, VARIABLES

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("polars")

from tests.sql.differences import ENGINES, Compared, compare, compare_source  # noqa: E402

CREATE_TIME = TimestampType.CREATE_TIME
CONDITIONS = int(os.environ.get("KWIRE_CONDITIONS", "24"))
"""For each source. `python -m tests.sql.differences --count 20000` draws more."""


def check(found: dict[str, Compared]) -> None:
    assert [query for each in found.values() for query in each.differing + each.failing] == []
    assert sum(each.rows for each in found.values()) > 0


@pytest.mark.sampled
@pytest.mark.parametrize("archive", ["modern44", "legacy", "unclean"])
def test_conditions_lose_no_row_of_a_directory(archive: str, kafka_logs: dict[str, Path]) -> None:
    folder = kafka_logs[archive]
    path = next(each for each in (folder / "data", folder / "killed" / "data") if each.exists())
    with kwire.open(path) as logs:
        check(compare(logs, logs.topics, ("duckdb",), CONDITIONS, random.Random(len(archive))))


STORES = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("store", "tiered store")]


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore")  # of boto
@pytest.mark.parametrize("kind", ["directory", "live", "tiered", *STORES])
def test_conditions_lose_no_row_of_a_source(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *PROXIES):
        monkeypatch.delenv(name, raising=False)
    check(compare_source(kind, ENGINES, CONDITIONS, 1, tmp_path))


class Counting:
    """Counts the ranges that are read of logs, by wrapping pin."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ranges: list[tuple[int, int, int]] = []
        real = PartitionLog.pin

        def pin(log: PartitionLog, start: int, end: int, isolation: Isolation) -> PinnedRange:
            self.ranges.append((log.partition, start, end))
            return real(log, start, end, isolation)

        monkeypatch.setattr(PartitionLog, "pin", pin)


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
