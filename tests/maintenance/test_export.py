"""Exported files contain the records of Kafka's consumer, and are complete or absent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from kwire.errors import CorruptBatch, LogError, OptionError
from kwire.log import LogDirectory
from kwire.maintenance.export import ExportOptions, Range, export_logs
from kwire.records.columns.layout import LARGEST_MS
from kwire.records.columns.reader import COLUMNS, arrow_schema
from kwire.storage.file_system import FileSystem
from tests import golden
from tests.log.expected import ISOLATIONS, consumed, read_objects, rows_of
from tests.log.writing import NOW, with_times


@pytest.mark.sampled
@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("shape", ["parquet", "arrow"])
def test_files_contain_the_records_of_the_consumer(
    shape: Any, isolation: Any, modern: LogDirectory, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    keys = [("txn", 0), ("txn", 1), ("orders", 1), ("trimmed", 0), ("empty", 0), ("logappend", 0), ("compacted", 1)]
    done = export_logs(
        [modern[key] for key in keys],
        str(tmp_path / "out"),
        ExportOptions(format=shape, isolation=isolation, headers=True),
    )
    assert [(each.topic, each.partition) for each in done] == keys
    for each in done:
        assert each.path == str(tmp_path / "out" / each.topic / f"partition={each.partition}" / f"records.{shape}")
        data = pq.ParquetFile(each.path).read() if shape == "parquet" else pa.ipc.open_file(each.path).read_all()
        assert data.schema.equals(arrow_schema(COLUMNS))
        expected, _ = consumed(kafka_logs["modern"] / "expected", each.topic, each.partition, isolation)
        assert rows_of(data.to_batches()) == expected
        assert each.records == len(expected)
    assert not list((tmp_path / "out").rglob("*.part"))


def test_a_topics_directory_reads_as_one_dataset(modern: LogDirectory, tmp_path: Path) -> None:
    logs = [modern["orders", partition] for partition in range(3)]
    export_logs(logs, str(tmp_path / "out"))
    table = ds.dataset(tmp_path / "out" / "orders", partitioning="hive").to_table()
    assert table.num_rows == 20_001
    assert set(table.column("partition").to_pylist()) == {0, 1, 2}
    assert "headers" not in table.column_names


def test_everything_can_be_exported_to_one_file(modern: LogDirectory, tmp_path: Path) -> None:
    target = tmp_path / "all.parquet"
    export_logs([modern["txn", 0], modern["txn", 1]], str(target), ExportOptions(headers=True), one_file=True)
    rows = rows_of(pq.read_table(target).to_batches())
    assert rows == read_objects(modern["txn", 0]) + read_objects(modern["txn", 1])
    with pytest.raises(OptionError, match="file exists"):
        export_logs([modern["txn", 0]], str(target), one_file=True)


def test_offset_and_timestamp_ranges_are_exported(modern: LogDirectory, tmp_path: Path) -> None:
    log = modern["orders", 2]
    rows = read_objects(log)
    since, until = rows[2000].timestamp, rows[3000].timestamp
    wanted = Range(start_offset=100, end_offset=5000, since_ms=since, until_ms=until)
    (done,) = export_logs([log], str(tmp_path / "out"), ExportOptions(records=wanted, headers=True))
    kept = [row for row in rows if 100 <= row.offset < 5000 and since <= row.timestamp < until]
    assert 500 < len(kept) < 1500
    assert rows_of(pq.ParquetFile(done.path).read().to_batches()) == kept


def test_a_timestamp_beyond_microseconds_is_null_reported_and_after_all_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = with_times(tmp_path / "data", [NOW, 1 << 60, LARGEST_MS, LARGEST_MS + 1])
    logs = list(LogDirectory(source).values())

    def exported(shape: Any, **times: int) -> tuple[list[int], list[int | None]]:
        target = tmp_path / f"{shape}{times}"
        (done,) = export_logs(logs, str(target), ExportOptions(format=shape, records=Range(**times)))
        if shape == "jsonl":
            rows = [json.loads(line) for line in Path(done.path).read_text().splitlines()]
            return [row["offset"] for row in rows], [row["ts"] for row in rows]
        read = ds.dataset(done.path, format=shape).to_table()
        times_us = read.column("timestamp").cast("int64").to_pylist()
        return read.column("offset").to_pylist(), [None if time is None else time // 1000 for time in times_us]

    for shape in ("parquet", "arrow", "jsonl"):
        caplog.clear()
        assert exported(shape) == ([0, 1, 2, 3], [NOW, None, LARGEST_MS, None])
        assert [each.getMessage() for each in caplog.records] == [
            "t-0: the timestamp of offset 1 and of 1 more is beyond the year 294247, the last that fits the column, "
            "and null there"
        ]
    assert exported("jsonl", since_ms=NOW)[0] == [0, 1, 2, 3]
    assert exported("jsonl", since_ms=NOW + 1)[0] == [1, 2, 3]
    assert exported("jsonl", since_ms=NOW, until_ms=LARGEST_MS)[0] == [0]
    assert exported("jsonl", until_ms=LARGEST_MS + 1)[0] == [0, 2]
    assert exported("jsonl", since_ms=1 << 59, until_ms=1 << 59)[0] == []


def test_json_lines_have_kcats_envelope(modern: LogDirectory, tmp_path: Path) -> None:
    log = modern["orders", 0]
    (done,) = export_logs([log], str(tmp_path / "a"), ExportOptions(format="jsonl", headers=True, as_base64=True))
    lines = [json.loads(line) for line in Path(done.path).read_text().splitlines()]
    assert list(lines[0]) == ["topic", "partition", "offset", "tstype", "ts", "headers", "key", "payload"]
    rows = read_objects(log)
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        flat = [each for key, value in row.headers for each in (key, value)]
        assert line["headers"][::2] == flat[::2]
        assert [golden.unpack(value) for value in line["headers"][1::2]] == flat[1::2]
        assert (line["offset"], line["ts"], line["tstype"]) == (row.offset, row.timestamp, "create")
        assert (golden.unpack(line["key"]), golden.unpack(line["payload"])) == (row.key, row.value)
    text = [row for row in rows if row.value is not None and row.offset < 500]
    (done,) = export_logs([log], str(tmp_path / "b"), ExportOptions(format="jsonl", records=Range(end_offset=500)))
    read = [json.loads(line) for line in Path(done.path).read_text().splitlines()]
    assert [line["payload"].encode() for line in read if line["payload"] is not None] == [row.value for row in text]
    assert "headers" not in read[0]


def test_non_utf_8_bytes_require_base64(modern: LogDirectory, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"__consumer_offsets-0 offset 0: (key|value) is not UTF-8 text; use base64"):
        export_logs([modern["__consumer_offsets", 0]], str(tmp_path / "out"), ExportOptions(format="jsonl"))
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_row_groups_limit_the_memory(modern: LogDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.maintenance.export.ROW_GROUP_ROWS", 1000)
    log = modern["orders", 0].reopened()
    read = log.read_arrow

    def in_small_batches(*arguments: Any, **options: Any) -> pa.RecordBatchReader:
        table = read(*arguments, **options).read_all()
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=300))

    log.read_arrow = in_small_batches  # type: ignore[method-assign]
    log.reopened = lambda: log  # type: ignore[method-assign]
    (done,) = export_logs([log], str(tmp_path / "out"))
    metadata = pq.ParquetFile(done.path).metadata
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sum(groups) == done.records > 2500
    assert all(1000 <= rows < 1300 for rows in groups[:-1])
    assert 0 < groups[-1] < 1300
    monkeypatch.setattr("kwire.maintenance.export.ROW_GROUP_ROWS", 1 << 20)
    monkeypatch.setattr("kwire.maintenance.export.ROW_GROUP_BYTES", 1)
    (by_size,) = export_logs([log], str(tmp_path / "by-size"))
    metadata = pq.ParquetFile(by_size.path).metadata
    assert max(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)) == 300
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    told: list[int] = []
    export_logs([modern["orders", 0]], str(tmp_path / "again"), progress=told.append)
    assert sum(told) == modern["orders", 0].size_bytes


def test_an_existing_target_is_unchanged(modern: LogDirectory, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    with pytest.raises(OptionError, match="not an empty directory"):
        export_logs([modern["txn", 0]], str(tmp_path / "mine"))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


def test_damage_leaves_no_complete_looking_file(copied: Any, tmp_path: Path) -> None:
    directory = copied("modern", "txn-0")
    path = directory / "txn-0" / "00000000000000000172.log"
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptBatch):
        export_logs([LogDirectory(directory)["txn", 0]], str(tmp_path / "out"))
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


@pytest.mark.parametrize("shape", ["parquet", "arrow", "jsonl"])
def test_a_full_disk_is_a_log_error(
    shape: Any, modern: LogDirectory, tmp_path: Path, limit_file_size: Callable[[], None]
) -> None:
    limit_file_size()
    with pytest.raises(LogError, match=r"records\.\w+\.part: cannot be written"):
        export_logs([modern["orders", 0]], str(tmp_path / "out"), ExportOptions(format=shape, as_base64=True))
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_a_directory_that_cannot_be_created_is_a_log_error(modern: LogDirectory, tmp_path: Path) -> None:
    class ReadOnly(FileSystem):
        def make_directory(self, path: str) -> None:
            raise LogError("cannot be created: Read-only file system", path)

    with pytest.raises(LogError, match="Read-only"):
        export_logs([modern["txn", 0]], str(tmp_path / "out"), file_system=ReadOnly())


def test_a_topic_name_cannot_escape_the_target(modern: LogDirectory, tmp_path: Path) -> None:
    log = modern["txn", 0]
    log.topic = "../../escaped"
    with pytest.raises(LogError, match="is not a valid topic name"):
        export_logs([log], str(tmp_path / "a" / "b"))
    assert not (tmp_path / "escaped").exists()
