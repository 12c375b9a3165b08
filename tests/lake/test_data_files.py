"""Data files: those of a failed read, and those of large values."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kwire.errors import LogError
from kwire.lake import Change, Layout, data_files, write_files
from kwire.lake.arrow_columns import has_long_value, newest_of
from kwire.records import Record, TimestampType, write_batch
from tests.lake.tables import Tables, kafka_rows, write

MIB = 1 << 20


def test_a_failed_read_prints_nothing_and_leaves_no_file(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are in open files by then, which Parquet's writer closes again when it is collected."""
    ignored = list[object]()
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 1)
    table = tables.open()
    plan = table.prepare(kafka_rows(0, 1).schema, Layout(partition_by=("partition",)))

    def batches() -> Iterator[pa.RecordBatch]:
        for partition in range(3):
            yield from kafka_rows(0, 10, partition=partition).to_batches()
        raise LogError("an error of reading", "x.log")

    with pytest.raises(LogError, match="an error of reading"):
        write_files(batches(), plan)
    gc.collect()
    assert ignored == []
    assert table.find_orphans(0) == []


def test_a_store_that_fails_prints_nothing(delta: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet's writer cannot be closed then, either."""
    ignored = list[object]()
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 1)
    plan = delta.open().prepare(kafka_rows(0, 1).schema, Layout())
    writer: Any = data_files.FileWriter(plan, 0)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from kafka_rows(0, 10).to_batches()
        writer._files[()].stream.close()  # so that each write to it fails
        raise LogError("an error of reading", "x.log")

    monkeypatch.setattr(data_files, "FileWriter", lambda *_: writer)
    with pytest.raises(LogError, match="an error of reading"):
        write_files(batches(), plan)
    writer.__dict__.clear()
    gc.collect()
    assert ignored == []


@pytest.mark.parametrize("size", [MIB - 1, MIB, MIB + 1])
def test_files_with_large_values_have_no_statistics(tables: Tables, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(data_files, "LARGE_VALUE_BYTES", MIB)
    table: Any = tables.open()
    small = pa.table({"id": [1, 2], "fields": pa.array([{"note": "a"}, None])})
    plan = table.prepare(small.schema, Layout())
    large = pa.table({"id": [3], "fields": [{"note": "x" * size}]})
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 1)
    written = write_files([*small.to_batches(), *large.to_batches(), *small.to_batches()], plan)
    write(table, small)
    assert [each.rows for each in written.files] == ([5] if size < MIB else [2, 3])
    root = tables.folder if tables.format == "delta" else Path("/")
    for each in written.files:
        path = root / "orders" / each.path if tables.format == "delta" else Path(each.path.removeprefix("file://"))
        footer = parquet.ParquetFile(path).metadata
        has_statistics = [footer.row_group(0).column(number).is_stats_set for number in range(2)]
        assert has_statistics == [each.rows != 3] * 2
    table.commit(written.files, Change(id="large"), plan)
    found = tables.read().sort_by("id").to_pylist()
    assert [row["id"] for row in found] == [1, 1, 1, 2, 2, 2, 3]
    assert found[-1]["fields"]["note"] == "x" * size


@pytest.mark.parametrize(("more", "groups"), [(-1, [4, 4, 2]), (0, [4, 4, 2]), (1, [6, 4])])
def test_rows_are_a_row_group_once_their_size_is_reached(
    delta: Tables, monkeypatch: pytest.MonkeyPatch, more: int, groups: list[int]
) -> None:
    batch = pa.record_batch({"id": pa.array([1, 2], pa.int64())})  # 16 bytes
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 2 * batch.nbytes + more)
    written = write_files([batch] * 5, delta.open().prepare(batch.schema, Layout()))
    footer = parquet.ParquetFile(delta.folder / "orders" / written.files[0].path).metadata
    assert [footer.row_group(number).num_rows for number in range(footer.num_row_groups)] == groups


def test_a_long_value_is_found_in_nested_columns() -> None:
    columns = {
        "number": [1, 2],
        "text": ["abc", None],
        "list": [["a", "bcdef"], None],
        "struct": [{"inner": {"deep": b"1234567"}}, None],
        "map": pa.array([[("key", "x" * 9)], []], pa.map_(pa.string(), pa.string())),
    }
    for name, longest in {"text": 3, "list": 5, "struct": 7, "map": 9}.items():
        rows = pa.table({name: columns[name]})
        assert has_long_value(rows, longest)
        assert not has_long_value(rows, longest + 1)
    assert not has_long_value(pa.table({"number": columns["number"]}), 1)
    assert not has_long_value(pa.table({"text": pa.array([], pa.string())}), 1)
    del columns["map"]
    assert not has_long_value(pa.table(columns).slice(1), 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_the_memory_of_a_large_record_is_a_small_multiple(tmp_path: Path) -> None:
    """A few bytes on the wire: decompressed, as an Arrow value, in Parquet's page and compressed again."""
    size = 64 * MIB
    record = Record(
        offset=0, timestamp=1, timestamp_type=TimestampType.CREATE_TIME, key=None, value=bytes(size), headers=[]
    )
    (tmp_path / "logs" / "large-0").mkdir(parents=True)
    (tmp_path / "logs" / "large-0" / f"{0:020}.log").write_bytes(write_batch([record], compression="zstd"))
    program = """
import json, sys
import deltalake, pyarrow.compute
from kwire.lake import Layout, append_logs, open_delta
from kwire.log import LogDirectory

def peak():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

log = LogDirectory(sys.argv[1])["large", 0]
before = peak()
rows = sum(each.rows for each in append_logs(open_delta(sys.argv[2]), [log], layout=Layout()))
print(json.dumps([rows, peak() - before]))
"""
    arguments = [sys.executable, "-c", program, str(tmp_path / "logs"), str(tmp_path / "table")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=300)
    rows, grown = json.loads(done.stdout)
    assert rows == 1
    assert grown < 8 * size  # 5.2 times; 11 with statistics


def test_rows_are_a_row_group_once_their_number_is_reached(delta: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "ROW_GROUP_ROWS", 4)
    batch = pa.record_batch({"id": pa.array([1, 2], pa.int64())})
    written = write_files([batch] * 5, delta.open().prepare(batch.schema, Layout()))
    footer = parquet.ParquetFile(delta.folder / "orders" / written.files[0].path).metadata
    assert [footer.row_group(number).num_rows for number in range(footer.num_row_groups)] == [4, 4, 2]


def test_as_many_files_are_open_as_the_limit(delta: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "MAX_OPEN_FILES", 2)
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 1)
    batches = [pa.record_batch({"part": [part], "id": [1]}) for part in ("a", "b", "a", "c", "a", "b", "c")]
    plan = delta.open().prepare(batches[0].schema, Layout(partition_by=("part",)))
    opened, most = set[Any](), 0
    begin, end = data_files._OpenFile.__init__, data_files._OpenFile.finish

    def opening(file: Any, *given: Any) -> None:
        nonlocal most
        begin(file, *given)
        opened.add(file)
        most = max(most, len(opened))

    def finishing(file: Any, plan: Any) -> Any:
        opened.discard(file)
        return end(file, plan)

    monkeypatch.setattr(data_files._OpenFile, "__init__", opening)
    monkeypatch.setattr(data_files._OpenFile, "finish", finishing)
    assert sum(each.rows for each in write_files(batches, plan).files) == 7
    assert most == 2


def test_the_newest_timestamp_of_rows() -> None:
    moments = pa.array([5, None, 7], pa.timestamp("us", "UTC"))
    assert newest_of(pa.record_batch({"timestamp": moments})) == (7,)
    assert newest_of(pa.record_batch({"id": [1, 2, 3], "timestamp": moments})) == (7,)
    assert newest_of(pa.record_batch({"id": [1, 2, 3]})) == ()


@pytest.mark.parametrize(("max_terms", "files"), [(1, 2), (2, 1)])
def test_files_are_chosen_by_offset_for_so_many_partitions(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, max_terms: int, files: int
) -> None:
    """Beyond them, by topic."""
    monkeypatch.setattr(f"kwire.lake.{tables.format}.files.MAX_TERMS", max_terms)
    table = tables.open()
    for start in (0, 10):
        write(table, kafka_rows(start, start + 10))
    table.refresh()
    wanted = {("orders", 0): ((9, 10),), ("orders", 1): ((0, 5),)}
    assert len(table.live_files(wanted)) == files


@pytest.mark.parametrize(("more", "groups"), [(-1, [2, 2]), (0, [4])])
def test_buffers_are_written_above_their_size(
    delta: Tables, monkeypatch: pytest.MonkeyPatch, more: int, groups: list[int]
) -> None:
    """Of all partitions together; the largest one first."""
    one, other = (pa.record_batch({"part": [part] * 2, "id": pa.array([1, 2], pa.int64())}) for part in ("a", "b"))
    plan = delta.open().prepare(one.schema, Layout(partition_by=("part",)))
    ((_, stored),) = plan.split(one)
    monkeypatch.setattr(data_files, "BUFFER_BYTES", 2 * stored.nbytes + more)
    written = write_files([one, other, one], plan)
    (path,) = [each.path for each in written.files if "part=a" in each.path]
    footer = parquet.ParquetFile(delta.folder / "orders" / path).metadata
    assert [footer.row_group(number).num_rows for number in range(footer.num_row_groups)] == groups
