"""The log of a directory of Parquet files: each micro-batch once, whatever is killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kwire.errors import TableError
from kwire.lake import Mark, TaskFiles, write_files
from kwire.lake.parquet.directory import LOG, ParquetDirectory, committed_files
from kwire.lake.parquet.plan import ParquetPlan

duckdb = pytest.importorskip("duckdb")

SCHEMA = pa.schema([("batch", pa.int32()), ("at", pa.timestamp("ns", "UTC"))])
COLUMNS = "batch: int32, at: timestamp[ns, tz=UTC]"
QUERY = "0e0c9cf4-9ba6-4ab7-8f0c-2d05d1ca9fdd"


def mark(batch: int, query: str = QUERY) -> Mark:
    return Mark(query=query, batch=batch)


def written(directory: ParquetDirectory, *numbers: int, task: int = 0) -> TaskFiles:
    plan = ParquetPlan(table=directory.path, table_id="", arrow=SCHEMA, compression="zstd")
    rows = [{"batch": number, "at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)} for number in numbers]
    return write_files([pa.RecordBatch.from_pylist(rows, SCHEMA)], plan, task=task)


def commit(directory: ParquetDirectory, batch: int, tasks: int = 2) -> bool:
    files = [file for task in range(tasks) for file in written(directory, batch, task=task).files]
    return directory.commit(files, mark(batch), COLUMNS)


def rows(directory: ParquetDirectory) -> list[int]:
    """Return the committed rows as DuckDB reads them."""
    files = committed_files(directory.path)
    found: list[tuple[int]] = duckdb.execute("SELECT batch FROM read_parquet(?)", [files]).fetchall() if files else []
    return sorted(batch for (batch,) in found)


@pytest.fixture
def directory(tmp_path: Path) -> ParquetDirectory:
    made = ParquetDirectory(str(tmp_path / "odd name % ü"))
    made.prepare()
    return made


def test_each_micro_batch_is_committed_once(directory: ParquetDirectory) -> None:
    assert committed_files(directory.path) == []
    assert directory.state().batch == -1
    assert commit(directory, 0)
    written(directory, 100)  # by a task that was killed
    assert commit(directory, 1)
    assert not commit(directory, 1), "it is committed"
    assert directory.state().query == QUERY
    assert rows(directory) == [0, 0, 1, 1]
    assert len(list(Path(directory.path).glob("*.parquet"))) == 5, "the files of the second run are deleted"


@pytest.mark.parametrize("last", [8, 9, 10, 19, 20, 39, 45])
def test_the_log_is_compacted_as_spark_compacts_it(directory: ParquetDirectory, last: int) -> None:
    for batch in range(last + 1):
        assert commit(directory, batch, tasks=0 if batch % 4 == 3 else 1)
    assert rows(directory) == [batch for batch in range(last + 1) if batch % 4 != 3]
    names = {name for name in os.listdir(Path(directory.path, LOG)) if name != "query"}
    oldest = max((last + 1) // 10 * 10 - 11, 0)  # the compaction before the last one, which readers may be reading
    compacted = {batch: f"{batch}.compact" if batch % 10 == 9 else str(batch) for batch in range(oldest, last + 1)}
    assert names == set(compacted.values())


def test_entries_are_those_of_spark(directory: ParquetDirectory) -> None:
    commit(directory, 0, tasks=1)
    version, line = Path(directory.path, LOG, "0").read_text().split("\n")
    entry = json.loads(line)
    (file,) = Path(directory.path).glob("*.parquet")
    assert version == "v1"
    assert list(entry) == [
        *("path", "size", "isDir", "modificationTime", "blockReplication", "blockSize", "action"),
    ]  # source: SinkFileStatus
    assert entry["path"] == file.as_uri()
    assert "odd%20name%20%25%20%C3%BC" in entry["path"]
    assert entry["size"] == file.stat().st_size
    assert entry["modificationTime"] == file.stat().st_mtime_ns // 1_000_000
    assert parquet.read_schema(file).field("at").type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("batch", "query", "message"),
    [
        (0, QUERY, r"micro-batch 0 precedes micro-batch 1, .* older than the directory"),
        (3, QUERY, r"micro-batch 3 does not follow micro-batch 1"),
        (2, "other", rf"another query, with the id {QUERY}, has written it"),
        (1, "other", rf"another query, with the id {QUERY}, has written it"),
    ],
)
def test_a_micro_batch_that_does_not_follow_is_refused(
    directory: ParquetDirectory, batch: int, query: str, message: str
) -> None:
    commit(directory, 0)
    commit(directory, 1)
    with pytest.raises(TableError, match=message):
        directory.state().is_done(mark(batch, query), directory.path)
    files = written(directory, batch).files
    with pytest.raises(TableError, match=message):
        directory.commit(files, mark(batch, query), COLUMNS)
    assert rows(directory) == [0, 0, 1, 1]


def test_a_second_process_with_the_same_checkpoint_is_refused(
    directory: ParquetDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(directory, 0)
    before = directory.state()
    commit(directory, 1)
    with monkeypatch.context() as patch:
        patch.setattr(ParquetDirectory, "state", lambda self: before)
        with pytest.raises(TableError, match=r"another process has committed _spark_metadata/1 meanwhile"):
            commit(directory, 1)
    assert rows(directory) == [0, 0, 1, 1]


def test_a_directory_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").write_bytes(b"")
    with pytest.raises(TableError, match=r"files of another writer \('part-0.parquet'\)"):
        ParquetDirectory(str(tmp_path)).prepare()
    with pytest.raises(TableError, match="it has no _spark_metadata"):
        committed_files(str(tmp_path))


def test_other_columns_are_refused(directory: ParquetDirectory) -> None:
    directory.state().check_columns("anything", directory.path)
    commit(directory, 0)
    directory.state().check_columns(COLUMNS, directory.path)
    with pytest.raises(TableError, match=r"its files have the columns batch: int32, .*the query writes batch: int64"):
        directory.state().check_columns("batch: int64", directory.path)


def test_the_log_of_another_writer_is_refused(directory: ParquetDirectory) -> None:
    commit(directory, 0)
    Path(directory.path, LOG, "query").unlink()
    with pytest.raises(TableError, match="its log _spark_metadata is of another writer"):
        directory.state()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda log: (log / "1").unlink(), "its log lacks micro-batch 1"),
        (lambda log: (log / "1").write_text("v2\n"), "expected version v1, got 'v2'"),
        (lambda log: (log / "1").write_text("v1\n{"), "its log cannot be read or written"),
    ],
)
def test_a_damaged_log_is_an_error(directory: ParquetDirectory, change: Callable[[Path], Any], message: str) -> None:
    for batch in range(3):
        commit(directory, batch)
    change(Path(directory.path, LOG))
    with pytest.raises(TableError, match=message):
        committed_files(directory.path)


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_process_killed_at_any_call_of_the_system_commits_once(tmp_path: Path, after: bool) -> None:
    """SIGKILL before or after each of the calls that change files; the micro-batch is then run again."""
    at, is_over = 0, False
    while not is_over:
        at += 1
        directory = ParquetDirectory(str(tmp_path / str(at)))
        directory.prepare()
        for batch in range(9):
            commit(directory, batch, tasks=1)
        is_over = run(lambda made=directory: commit(made, 9), at, after)  # type: ignore[misc]
        before = directory.state().batch
        commit(directory, 9)
        assert before in (8, 9)
        commit(directory, 10, tasks=1)
        assert rows(directory) == [*range(9), 9, 9, 10], f"killed at call {at}"
    assert at > 6


def run(work: Callable[[], object], at: int, after: bool) -> bool:
    """Run in a child that kills itself at one of its calls; return whether it has fewer calls."""
    child = os.fork()
    if not child:
        count = 0

        def counting(really: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any, **named: Any) -> Any:
                nonlocal count
                count += 1
                if count == at and not after:
                    os.kill(os.getpid(), signal.SIGKILL)
                result = really(*given, **named)
                if count == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return call

        try:
            names: Sequence[str] = ("fsync", "link", "unlink")
            for name in names:
                setattr(os, name, counting(getattr(os, name)))
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status == 0
