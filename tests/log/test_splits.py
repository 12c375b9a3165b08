"""Splits: together they return every row once, and each can be read in another process."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from kwire.errors import LogError, OptionError
from kwire.log import LogDirectory, plan_splits, read_split
from kwire.records.columns.reader import COLUMNS, arrow_schema
from tests.log.expected import ARCHIVES, ISOLATIONS, read_objects, rows_of

Copied = Callable[[str, str], Path]


@pytest.mark.sampled
@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.parametrize("split_bytes", [1, 5000, 1 << 27])
@pytest.mark.requirement("D-03", "D-04", "F-12")
def test_splits_of_any_size_return_every_row_once(kafka_logs: dict[str, Path], archive: str, split_bytes: int) -> None:
    directory = LogDirectory(kafka_logs[archive] / "data")
    most = {1: 13_000, 5000: 60_000, 1 << 27: 1 << 30}[split_bytes]  # a split costs a millisecond
    logs = [log for log in directory.values() if log.size_bytes < most]
    assert len(logs) > 2
    for isolation in ISOLATIONS:
        splits = plan_splits(logs, isolation=isolation, split_bytes=split_bytes)
        assert [(s.topic, s.partition, s.base_offset, s.start_position) for s in splits] == sorted(
            (s.topic, s.partition, s.base_offset, s.start_position) for s in splits
        )
        if split_bytes == 5000:
            assert max(split.size_bytes for split in splits) < 12_000
        for log in logs:
            mine = [split for split in splits if (split.topic, split.partition) == (log.topic, log.partition)]
            rows = [row for split in mine for row in rows_of(read_split(split, COLUMNS))]
            assert rows == read_objects(log, isolation=isolation), (log, isolation)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_splits_respect_offset_ranges(kafka_logs: dict[str, Path], isolation: str) -> None:
    directory = LogDirectory(kafka_logs["modern"] / "data")
    ranges = {("txn", 0): (150, 230), ("compacted", 0): (100, 180), ("ids", 1): (700, None), ("empty", 0): (0, None)}
    splits = plan_splits(directory, ranges=ranges, isolation=isolation)
    for key, (start, end) in ranges.items():
        mine = [split for split in splits if (split.topic, split.partition) == key]
        rows = [row for split in mine for row in rows_of(read_split(split, COLUMNS))]
        assert rows == read_objects(directory[key], start_offset=start, end_offset=end, isolation=isolation)
    assert {(split.topic, split.partition) for split in splits} <= set(ranges)


def test_splits_start_at_batches_with_and_without_an_index(copied: Copied) -> None:
    data = copied("modern", "ids-0")
    log = LogDirectory(data)["ids", 0]
    starts = {(s.base_offset, header.position) for s in log.segments for header in s.headers()}
    with_index = plan_splits(log, split_bytes=8000)
    assert len(with_index) > 8
    assert {(split.base_offset, split.start_position) for split in with_index} <= starts
    for path in (data / "ids-0").glob("*.index"):
        path.write_bytes(b"\1\2\3\4\5\6\7\0" * 50)
    without = plan_splits(LogDirectory(data)["ids", 0], split_bytes=8000)
    assert {(split.base_offset, split.start_position) for split in without} <= starts
    assert len(without) == len(with_index)
    assert max(split.size_bytes for split in without) < 12_000


def test_a_split_pickles_and_names_its_file(kafka_logs: dict[str, Path]) -> None:
    log = LogDirectory(kafka_logs["modern"] / "data")["txn", 0]
    for split in plan_splits(log, isolation="read_committed", split_bytes=4000):
        copy = pickle.loads(pickle.dumps(split))
        assert copy == split
        assert copy.url == log.segments[[s.base_offset for s in log.segments].index(split.base_offset)].url
        assert list(read_split(copy)) == list(read_split(split))


def test_columns_are_in_the_requested_order(kafka_logs: dict[str, Path]) -> None:
    (split, *_) = plan_splits(LogDirectory(kafka_logs["modern"] / "data")["ids", 0])
    for columns in (["offset"], ["value", "key"], ["_corrupt"], ["topic", "_corrupt", "headers"]):
        for batch in read_split(split, columns, mode="PERMISSIVE"):
            assert batch.schema.names == columns
            for name in columns:
                kind = pa.string() if name == "_corrupt" else arrow_schema().field(name).type
                assert batch.schema.field(name).type == kind
            if "_corrupt" in columns:
                assert batch.column("_corrupt").null_count == batch.num_rows > 0
    assert next(read_split(split)).schema.names == [name for name in COLUMNS if name != "headers"]


def test_invalid_arguments_are_rejected(kafka_logs: dict[str, Path]) -> None:
    log = LogDirectory(kafka_logs["modern"] / "data")["ids", 0]
    (split, *_) = plan_splits(log)
    with pytest.raises(OptionError, match="mode 'IGNORE': expected one of FAILFAST, DROPMALFORMED, PERMISSIVE"):
        next(read_split(split, mode="IGNORE"))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no column 'x'"):
        next(read_split(split, ["x"]))
    with pytest.raises(OptionError, match="split_bytes 0"):
        plan_splits(log, split_bytes=0)
    with pytest.raises(OptionError, match="isolation 'x': expected"):
        plan_splits(log, isolation="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_a_missing_segment_fails_its_split_in_every_mode(copied: Copied, mode: str) -> None:
    log = LogDirectory(copied("modern", "ids-0"))["ids", 0]
    splits = plan_splits(log)
    Path(log.segments[0].url).unlink()
    with pytest.raises(LogError, match="No such file") as caught:
        list(read_split(splits[0], mode=mode))  # type: ignore[arg-type]
    assert caught.value.file == log.segments[0].url
    assert sum(batch.num_rows for batch in read_split(splits[-1])) > 0


def test_planning_does_not_import_pyarrow(kafka_logs: dict[str, Path]) -> None:
    """Spark starts a planner process for every query."""
    code = f"""
import sys
from kwire.log import LogDirectory, plan_splits
directory = LogDirectory({str(kafka_logs["modern"] / "data")!r})
assert plan_splits(directory, isolation="read_committed")
assert [log.offset_for_time(1760000010000) for log in directory.values()]
heavy = {{"pyarrow", "numpy", "fsspec", "pandas"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)
