"""Logs appended to tables: resumable by the offsets in the table, whoever else appends."""

from __future__ import annotations

import gc
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.cli.main import run
from kwire.errors import CorruptBatch, LogError, OptionError, TableError
from kwire.lake import Chosen, Layout, RowOptions, append_logs, write_files
from kwire.lake.append import _Limited
from kwire.log import LogDirectory
from kwire.log.reading.readable_log import ReadableLog
from kwire.records.columns.layout import LARGEST_MS
from kwire.schemas import Registry, encode
from tests import golden
from tests.lake.avro_values import registry as registry
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables, kafka_rows, write
from tests.log.test_missing_segments import lose, make
from tests.log.writing import NOW, with_times

LAYOUT = Layout()


@pytest.fixture
def logs(kafka_logs: dict[str, Path]) -> list[Any]:
    """Partitions of a real broker, one of them compacted."""
    found = LogDirectory(kafka_logs["modern"] / "data")
    return [found["orders", 0], found["compacted", 0]]


def places(rows: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(rows.column("topic").to_pylist(), rows.column("offset").to_pylist(), strict=True))


def expected(logs: list[Any]) -> list[tuple[str, int]]:
    return sorted((log.topic, record.offset) for log in logs for record in log.read(isolation="read_committed"))


def test_a_log_is_appended_in_several_commits_and_only_once(tables: Tables, logs: list[Any]) -> None:
    done = list(append_logs(tables.open(), logs, layout=LAYOUT, commit_bytes=100_000))
    assert [each.end_offset for each in done] == [log.last_stable_offset for log in logs]
    again = list(append_logs(tables.open(), logs, layout=LAYOUT))
    assert [each.rows for each in again] == [0, 0]
    assert places(tables.read()) == expected(logs)


def count_commits(table: Any) -> list[Any]:
    """Return a list that each commit to a table is added to."""
    really, commits = table.add, list[Any]()

    def add(*arguments: Any) -> None:
        commits.append(arguments)
        really(*arguments)

    table.add = add
    return commits


def test_options_without_which_no_commit_ends_are_refused(tables: Tables, logs: list[Any]) -> None:
    """commit_bytes=0 made no progress, and columns without the offset raised KeyError."""
    with pytest.raises(OptionError, match="commit_bytes 0: expected 1 or more"):
        list(append_logs(tables.open(), logs, layout=LAYOUT, commit_bytes=0))
    with pytest.raises(OptionError, match="columns: expected offset among them, got key, value"):
        RowOptions(columns=("key", "value"))
    with pytest.raises(OptionError, match="no column 'ofset'"):
        RowOptions(columns=("offset", "ofset"))


def test_two_logs_of_a_partition_append_each_offset_once(tables: Tables, tmp_path: Path) -> None:
    """Both were compared with the table before either was appended, so their common offsets were written twice."""
    early = write_values(tmp_path / "early", [b"value"] * 6)
    late = write_values(tmp_path / "late", [b"value"] * 10)
    both = [LogDirectory(each)["avro", 0] for each in (early, late)]
    done = list(append_logs(tables.open(), both, layout=LAYOUT))
    assert [(each.start_offset, each.end_offset, each.rows) for each in done] == [(0, 6, 6), (6, 10, 4)]
    assert [offset for _, offset in places(tables.read())] == [*range(10)]


def test_chosen_ranges_that_overlap_are_written_once(tables: Tables, tmp_path: Path) -> None:
    log = LogDirectory(write_values(tmp_path / "logs", [b"value"] * 10))["avro", 0]
    chosen = Chosen(offsets={("avro", 0): ((4, 7), (2, 5), (9, 9))})
    list(append_logs(tables.open(), [log], layout=LAYOUT, chosen=chosen))
    assert [offset for _, offset in places(tables.read())] == [*range(2, 7)]


def test_small_partitions_share_a_commit(tables: Tables, kafka_logs: dict[str, Path]) -> None:
    found = LogDirectory(kafka_logs["modern"] / "data")
    small = [found["ids", 0], found["empty", 0], found["ids", 1], found["logappend", 0], found["compacted", 0]]
    table = tables.open()
    commits = count_commits(table)
    done = list(append_logs(table, small, layout=LAYOUT))
    assert len(commits) == 1
    assert [(each.topic, each.end_offset, each.rows) for each in done] == [
        (log.topic, log.last_stable_offset, sum(1 for _ in log.read(isolation="read_committed"))) for log in small
    ]
    assert places(tables.read()) == expected(small)
    assert [each.rows for each in append_logs(tables.open(), small, layout=LAYOUT)] == [0] * 5
    assert len(commits) == 1


def test_partitions_before_a_damaged_one_are_appended(
    tables: Tables, kafka_logs: dict[str, Path], tmp_path: Path
) -> None:
    data = shutil.copytree(kafka_logs["modern"] / "data", tmp_path / "damaged")
    last = max((data / "ids-1").glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1] + b"\xff")
    found, table = LogDirectory(data), tables.open()
    done, logs = list[int](), [found["ids", 0], found["ids", 1], found["logappend", 0]]
    with pytest.raises(CorruptBatch):
        done.extend(each.rows for each in append_logs(table, logs, layout=LAYOUT))
    assert done == [736]
    assert places(tables.read()) == expected([found["ids", 0]])
    assert table.find_orphans(0) == []


def test_an_interrupted_run_continues_after_its_last_commit(tables: Tables, logs: list[Any]) -> None:
    table: Any = tables.open()
    really, commits = table.add, []

    def fail_at_the_third(*arguments: Any) -> None:
        commits.append(arguments)
        if len(commits) == 3:
            raise KeyboardInterrupt
        really(*arguments)

    table.add = fail_at_the_third
    with pytest.raises(KeyboardInterrupt):
        list(append_logs(table, logs, layout=LAYOUT, commit_bytes=100_000))
    list(append_logs(tables.open(), logs, layout=LAYOUT, commit_bytes=100_000))
    assert places(tables.read()) == expected(logs)


def test_two_runs_at_a_time_append_no_row_twice(tables: Tables, logs: list[Any]) -> None:
    table: Any = tables.open()
    really = table.add

    def add_too_late(*arguments: Any) -> None:
        table.add = really
        list(append_logs(tables.open(), logs, layout=LAYOUT))
        really(*arguments)

    table.add = add_too_late
    with pytest.raises(TableError, match="another writer has appended orders-0 from offset 0 to 7015; run again"):
        list(append_logs(table, logs, layout=LAYOUT))
    assert places(tables.read()) == expected(logs)


@pytest.mark.sampled
@pytest.mark.parametrize("commits", [0, 1, 9])
def test_a_table_that_is_removed_between_two_commits_gets_no_part_of_a_log(
    tables: Tables, logs: list[Any], commits: int
) -> None:
    """commits: of another program to a new table of the same name, whose versions in Delta's log begin with 0."""
    table: Any = tables.open()
    really = table.add

    def remove_after(*arguments: Any) -> None:
        really(*arguments)
        table.add = really
        remove(tables)
        for number in range(commits):
            write(tables.open(), kafka_rows(number, number + 1))

    table.add = remove_after
    with pytest.raises(TableError, match="removed or replaced by another program while rows were written; run again"):
        list(append_logs(table, logs, layout=LAYOUT, commit_bytes=100_000))
    if commits:
        remove(tables)
    list(append_logs(tables.open(), logs, layout=LAYOUT))
    assert places(tables.read()) == expected(logs)


def remove(tables: Tables) -> None:
    table: Any = tables.open()
    if tables.format == "iceberg":
        table.catalog.purge_table(table.name)
    else:
        shutil.rmtree(table.uri)


def test_a_log_that_ends_before_the_table_is_another_log(tables: Tables, logs: list[Any], tmp_path: Path) -> None:
    list(append_logs(tables.open(), logs[:1], layout=LAYOUT))

    class Shorter:
        topic, partition, log_start_offset, last_stable_offset = "orders", 0, 0, 10
        topic_id, is_one_segment = logs[0].topic_id, False

    shorter: Any = Shorter()
    with pytest.raises(TableError, match="orders-0 ends at offset 10, before the table's offset 7015; this is another"):
        list(append_logs(tables.open(), [shorter], layout=LAYOUT))


def arguments(tables: Tables) -> list[str]:
    if tables.format == "delta":
        return [str(tables.folder / "orders")]
    catalog = tables.catalog(f"file://{tables.folder}").items()
    return ["sales.orders", *(f"--catalog={name}={value}" for name, value in catalog)]


def test_the_commands(tables: Tables, kafka_logs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    where = arguments(tables)
    source = str(kafka_logs["modern"] / "data")
    assert run(["lake", "append", source, *where, "--topic", "orders", "--partition", "0", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"topic": "orders", "partition": 0, "rows": 7015, "start_offset": 0, "end_offset": 7015}
        | {"problem": None, "dead_letters": 0}
    ]
    assert run(["lake", "offsets", *where, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"topic": "orders", "partition": 0, "start_offset": 0, "end_offset": 7015}
    ]
    table: Any = tables.open()
    plan = table.prepare(tables.read().schema, LAYOUT)
    (dead,) = write_files(tables.read().slice(0, 10).to_batches(), plan).files  # of a task that was killed
    assert run(["lake", "clean", *where, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert run(["lake", "clean", *where, "--older-than", "0", "--format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert found["path"].endswith(dead.path.rpartition("/")[2])
    assert run(["lake", "clean", *where, "--older-than", "0", "--apply"]) == 0
    assert table.find_orphans(0) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")
def test_commands_close_the_catalog(tmp_path: Path, kafka_logs: dict[str, Path]) -> None:
    tables = Tables("iceberg", tmp_path)
    properties = [f"--catalog={name}={value}" for name, value in tables.catalog(f"file://{tmp_path}").items()]
    gc.disable()
    try:
        assert run(["lake", "append", f"{kafka_logs['modern']}/data/orders-0", "sales.orders", *properties]) == 0
        assert run(["lake", "offsets", "sales.orders", *properties]) == 0
        assert run(["lake", "clean", "sales.orders", *properties]) == 0
        opened = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    finally:
        gc.enable()
    assert str(tmp_path / "catalog.db") not in opened


def test_offsets_that_retention_deleted_are_said(
    tables: Tables, tmp_path: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between two runs, and while one reads."""
    source = write_values(tmp_path / "logs", [b"value"] * 10)
    list(append_logs(tables.open(), [LogDirectory(source)["avro", 0]], layout=LAYOUT))

    def roll(start: int, end: int) -> None:
        (segment,) = (source / "avro-0").glob("*.log")
        write_values(source, [b"value"] * (end - start), first=start)
        segment.unlink()

    roll(15, 20)
    assert run(["lake", "append", str(source), *arguments(tables), "--format", "json"]) == 0
    printed = capsys.readouterr()
    (row,) = json.loads(printed.out)
    lost = "retention deleted offsets 10 to 14 before they were appended"
    assert (row["rows"], row["start_offset"], row["end_offset"], row["problem"]) == (5, 15, 20, lost)
    assert f"avro-0: {lost}" in printed.err

    log: ReadableLog = LogDirectory(source)["avro", 0]
    end = log.last_stable_offset
    roll(20, 30)
    late = LogDirectory(source)["avro", 0]
    really = late.pin

    def pin(start: int, end: int | None, isolation: Any) -> Any:
        roll(25, 30)  # after the offsets to append were chosen
        return really(start, end, isolation)

    late.pin = pin  # type: ignore[method-assign]
    (done,) = append_logs(tables.open(), [late], layout=LAYOUT)
    assert end == 20
    assert done.problem == "retention deleted offsets 20 to 24 before they were appended"
    assert [offset for _, offset in places(tables.read())] == [*range(10), *range(15, 20), *range(25, 30)]
    table = tables.open()
    table.refresh()
    assert table.state().spans == {("avro", 0): ((0, 10), (15, 20), (25, 30))}  # 20 to 24 are a hole as 10 to 14 are
    ranges = Chosen(offsets={("avro", 0): ((25, 30),)}, replace=True)
    replaced = LogDirectory(source)["avro", 0]
    whole = replaced.pin
    replaced.pin = lambda start, end, isolation: whole(start + 2, end, isolation)  # type: ignore[method-assign, assignment]
    with pytest.raises(LogError, match=r"retention deleted offsets 25 to 26 .*, so no rows were replaced"):
        list(append_logs(table, [replaced], layout=LAYOUT, chosen=ranges))
    assert [offset for _, offset in places(tables.read())] == [*range(10), *range(15, 20), *range(25, 30)]


def test_values_of_a_registry_are_decoded(
    tables: Tables, tmp_path: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command; a bad value fails, or becomes null or a dead letter."""
    good = encode({"id": 7}, registry, schema=41)
    source = str(write_values(tmp_path / "logs", [good, b"plain text", None]))
    words = ["lake", "append", source, *arguments(tables), "--registry", str(tmp_path / "schemas")]
    assert run(words) == 1
    assert "avro-0, offset 1: no schema id" in capsys.readouterr().err
    assert run([*words, "--mode", "deadletter"]) == 0
    assert run([*words, "--mode", "deadletter"]) == 0
    rows = tables.read().sort_by("offset").select(["value", "value_error", "value_bytes"]).to_pylist()
    assert [row["value"] for row in rows] == [{"id": 7, "note": None}, None, None]
    assert [row["value_bytes"] for row in rows] == [None, b"plain text", None]
    assert [bool(row["value_error"]) for row in rows] == [False, True, False]


def test_with_strict_names_another_record_is_not_decoded(
    tmp_path: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    schemas = tmp_path / "schemas"
    text = (schemas / "avro-value.1.41.avsc").read_text().replace('"Order"', '"Payment"')
    (schemas / "payments.1.43.avsc").write_text(text)
    opened = Registry(schemas)
    source = str(write_values(tmp_path / "logs", [encode({"id": n}, opened, schema=40 + n) for n in (1, 3, 2)]))
    words = ["lake", "append", source, str(tmp_path / "orders"), "--registry", str(schemas), "--names", "strict"]
    assert run(words) == 1
    assert "avro-0, offset 1: schema id 43: the writer's record Payment has another name" in capsys.readouterr().err
    assert run([*words, "--mode", "deadletter"]) == 0
    rows = Tables("delta", tmp_path).read().sort_by("offset").select(["value", "value_error"]).to_pylist()
    assert [row["value"] and row["value"]["id"] for row in rows] == [1, None, 2]
    assert [row["value_error"] is None for row in rows] == [True, False, True]


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["--schema", "union"], {"id", "note"}),
        (["--schema", "41"], {"id"}),
        (["--subject", "avro-value"], {"id", "note"}),
    ],
)
def test_the_schema_that_values_are_read_as(
    tmp_path: Path, registry: Registry, words: list[str], fields: set[str]
) -> None:
    source = str(write_values(tmp_path / "logs", [encode({"id": 7}, registry, schema=41), b"bad"]))
    table = str(tmp_path / "orders")
    options = ["--registry", str(tmp_path / "schemas"), *words, "--mode", "permissive"]
    assert run(["lake", "append", source, table, *options]) == 0
    rows = Tables("delta", tmp_path).read()
    assert {field.name for field in rows.schema.field("value").type} == fields
    assert rows.sort_by("offset").column("value").is_valid().to_pylist() == [True, False]


def test_tiered_storage_then_the_brokers_directory(
    tables: Tables, kafka_logs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Objects give the closed segments, and the directory the rest: each record once. A key opens encrypted ones."""
    objects = golden.extract_tiered(tmp_path / "objects")

    def append(source: str, log: Any) -> Any:
        selection = ["--topic", log.topic, "--partition", str(log.partition)]
        assert run(["lake", "append", source, *arguments(tables), *selection, "--format", "json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        return row

    data = kafka_logs["legacy"] / "data"
    v1, txn = LogDirectory(data)["v1", 1], LogDirectory(kafka_logs["modern"] / "data")["txn", 0]
    copied = append(f"tiered+{objects / 'zstd' / 'tiered'}", v1)
    assert places(tables.read()) == [place for place in expected([v1]) if place[1] < copied["end_offset"]]
    rest = append(str(data), v1)
    assert (rest["start_offset"], rest["end_offset"]) == (copied["end_offset"], v1.log_end_offset)
    assert copied["rows"] > 0
    assert rest["rows"] > 0

    encrypted = f"tiered+{objects / 'zstd-encrypted'}"
    assert run(["lake", "append", encrypted, *arguments(tables)]) == 1
    assert "'key1', whose private key is missing" in capsys.readouterr().err
    append(f"{encrypted}#key1={objects / 'private.pem'}", txn)
    assert places(tables.read()) == expected([txn, v1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["offsets", "nope/nothing"], "nope/nothing: no such table"),
        (["offsets", "nope/x", "--catalog", "uri=x"], "catalog: requires an Iceberg table NAMESPACE.NAME"),
        (["offsets", "a.b", "--storage", "x=y"], "storage: requires the path or URL of a Delta table"),
        (["offsets", "a.b", "--catalog", "uri"], "--catalog: expected NAME=VALUE"),
        (["append", ".", "a/b", "--registry-config", "x"], "--registry-config: requires --registry"),
        (["append", ".", "a/b", "--topic", "orders", "--names", "strict"], "names: requires registry, whose schemas"),
        (["append", ".", "a/b", "--registry", "http://u:hunter2@h"], "--registry: secrets on a command line are"),
        (["append", ".", "a/b", "--registry", ".", "--schema", "x"], "latest, union, an id or a file; 'x': No such"),
        (["clean", "a.b", "--catalog", "s3.secret-access-key=hunter2"], "secrets on a command line are visible"),
        (["clean", "a.b", "--catalog", "credential=me:hunter2"], "--catalog credential: secrets on a command line"),
        (["clean", "a.b", "--catalog", "header.authorization=hunter2"], "secrets on a command line are visible"),
        (["clean", "a.b", "--catalog", "adls.account-key=hunter2"], "secrets on a command line are visible"),
        (["clean", "a.b", "--catalog", "uri=postgresql://me:hunter2@h/d"], "a password on a command line is visible"),
    ],
)
def test_wrong_usage(
    words: list[str], message: str, kafka_logs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(kafka_logs["modern"] / "data") if word == "." else word for word in words]
    assert run(["lake", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "hunter2" not in error


def test_duckdb_and_polars_read_a_log_in_place(logs: list[Any]) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    log = logs[0]
    assert duckdb.sql('SELECT count(*), max("offset") FROM log').fetchall() == [(7015, 7014)]
    assert polars.DataFrame(log).height == pa.table(log).num_rows == 7015


def test_duckdb_reads_all_partitions_in_place(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    write_values(tmp_path, [b"a"] * 3, first=4)
    write_values(tmp_path, [b"b"] * 5, partition=1)
    logs = LogDirectory(tmp_path)
    assert len(logs) == 2
    query = 'SELECT topic, partition, count(*), max("offset") FROM logs GROUP BY ALL ORDER BY ALL'
    assert duckdb.sql(query).fetchall() == [("avro", 0, 3, 6), ("avro", 1, 5, 4)]
    assert duckdb.sql(query).fetchall() == [("avro", 0, 3, 6), ("avro", 1, 5, 4)], "each query reads anew"


def test_a_missing_segment_is_an_error_or_skipped(
    tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = make(tmp_path / "whole")
    source = lose(shutil.copytree(whole, tmp_path / "data"))
    command = ["lake", "append", str(source), *arguments(tables)]
    assert run(command) == 1
    assert "offsets 100 to 199 are in no segment" in capsys.readouterr().err
    assert run([*command, "--skip-missing"]) == 0
    assert [offset for _, offset in places(tables.read())] == [*range(100), *range(200, 300)]
    assert "skipped offsets 100 to 199, which are in no segment" in capsys.readouterr().err
    assert run(["lake", "offsets", *arguments(tables)]) == 1
    assert "t-0: the table lacks offsets 100 to 199; append them" in capsys.readouterr().err
    assert run([*command, "--skip-missing", "--fill"]) == 0
    assert run(["lake", "offsets", *arguments(tables)]) == 1, "it is still in no segment"
    assert run(["lake", "append", str(whole), *arguments(tables), "--fill"]) == 0
    assert [offset for _, offset in places(tables.read())] == list(range(300))
    assert run(["lake", "offsets", *arguments(tables)]) == 0


@pytest.mark.sampled
@pytest.mark.parametrize("commit_bytes", [1, 1 << 30])
def test_skipped_offsets_are_holes_in_each_commit(tables: Tables, tmp_path: Path, commit_bytes: int) -> None:
    """Also if partitions share a commit."""
    lost = [LogDirectory(lose(make(tmp_path / topic, topic=topic)))[topic, 0] for topic in ("a", "b")]
    rows = RowOptions(skip_missing=True)
    done = list(append_logs(tables.open(), lost, layout=LAYOUT, commit_bytes=commit_bytes, rows=rows))
    said = "skipped offsets 100 to 199, which are in no segment"
    assert [(each.rows, each.problem) for each in done] == [(200, said), (200, said)]
    table = tables.open()
    table.refresh()
    assert table.state().spans == {(topic, 0): ((0, 100), (200, 300)) for topic in ("a", "b")}


def test_a_segment_file_is_not_a_log_whose_other_offsets_were_deleted(
    tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files are appended in any order; what lies between them is a hole until its file or directory is appended."""
    folder = make(tmp_path / "data") / "t-0"

    def append(base: int, *options: str) -> str:
        path = folder if base < 0 else folder / f"{base:020}.log"
        assert run(["lake", "append", str(path), *arguments(tables), *options, "--format", "json"]) == 0
        return capsys.readouterr().err

    def has(*ranges: tuple[int, int]) -> bool:
        table = tables.open()
        table.refresh()
        offsets = [offset for start, end in ranges for offset in range(start, end)]
        return table.state().spans == {("t", 0): ranges} and [at for _, at in places(tables.read())] == offsets

    assert append(100) == ""
    assert has((100, 200))
    assert append(100) == ""
    assert has((100, 200))
    assert "t-0: the table lacks offsets 0 to 99; append them with --fill" in append(0)
    assert has((100, 200))
    assert append(200) == ""
    assert has((100, 300))
    assert append(100) == append(100, "--fill") == ""
    assert append(0, "--fill") == ""
    assert has((0, 300))


def test_offsets_between_two_segment_files_stay_a_hole(
    tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path / "data") / "t-0"
    (first, middle, last) = (LogDirectory(folder / f"{base:020}.log")["t", 0] for base in (0, 100, 200))
    assert [log.is_one_segment for log in (first, middle, LogDirectory(tmp_path / "data")["t", 0])] == [1, 1, 0]
    assert [each.problem for each in append_logs(tables.open(), [first], layout=LAYOUT)] == [None]
    (done,) = append_logs(tables.open(), [last], layout=LAYOUT)
    assert (done.start_offset, done.end_offset, done.rows) == (200, 300, 100)
    assert done.problem is not None
    assert done.problem.startswith("offsets 100 to 199 are not in this segment file")
    assert run(["lake", "offsets", *arguments(tables)]) == 1
    assert "t-0: the table lacks offsets 100 to 199; append them" in capsys.readouterr().err
    done, end = append_logs(tables.open(), [middle], layout=LAYOUT, fill=True)
    assert (done.start_offset, done.end_offset, done.rows, done.problem) == (100, 200, 100, None)
    assert (end.start_offset, end.rows, end.problem) == (300, 0, None)
    assert run(["lake", "offsets", *arguments(tables)]) == 0
    assert [offset for _, offset in places(tables.read())] == list(range(300))


def test_a_timestamp_beyond_microseconds_is_null_and_reported(
    tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = with_times(tmp_path / "data", [LARGEST_MS, LARGEST_MS + 1, NOW, 1 << 60, 1 << 62])
    assert run(["lake", "append", str(source), *arguments(tables)]) == 0
    problem = "the timestamp of offset 1 and of 2 more is beyond the year 294247"
    assert f"t-0: {problem}" in capsys.readouterr().err
    times = tables.read().sort_by("offset").column("timestamp").cast("int64").to_pylist()
    assert times == [LARGEST_MS * 1000, None, NOW * 1000, None, None]
    assert run(["lake", "append", str(source), *arguments(tables)]) == 0
    assert capsys.readouterr().err == "", "nothing new"


@pytest.mark.parametrize("commit_bytes", [1, 1 << 30])
def test_null_timestamps_are_counted_once(tables: Tables, tmp_path: Path, commit_bytes: int) -> None:
    """Also if each batch is a commit, or if partitions were read for a common commit that became too large."""
    times = [NOW, 1 << 60, 1 << 60, NOW, 1 << 61]
    sources = [with_times(tmp_path / f"{number}", times, topic=f"t{number}") for number in range(2)]
    logs = [log for source in sources for log in LogDirectory(source).values()]
    done = list(append_logs(tables.open(), logs, layout=LAYOUT, commit_bytes=commit_bytes))
    assert [each.rows for each in done] == [5, 5]
    assert all("of offset 1 and of 2 more" in str(each.problem) for each in done)


@pytest.mark.parametrize(("max_bytes", "count"), [(15, 1), (16, 1), (17, 2), (33, 3)])
def test_a_commit_ends_once_its_size_is_reached(max_bytes: int, count: int) -> None:
    batches = [pa.record_batch({"offset": pa.array([2 * n, 2 * n + 1], pa.int64())}) for n in range(3)]  # 16 bytes each
    limited = _Limited(batches, max_bytes)
    assert len(list(limited)) == count
    assert (limited.is_cut, limited.next_offset) == (count < 3, 2 * count)
