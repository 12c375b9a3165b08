"""`kwire lake compact`: fewer files with the same rows, whatever other writers do meanwhile."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet
import pytest

from kwire.cli.main import run
from kwire.errors import TableError
from kwire.lake import Layout, Mark
from kwire.lake.compact import compact_table, small_files
from tests.lake.tables import FORMATS, Tables, kafka_rows, write
from tests.lake.test_append import arguments

QUERY = "5f7a3b9e-query"


def fill(tables: Tables, count: int = 6, layout: Layout | None = None, name: str = "orders") -> Any:
    """Return a table of micro-batches, each a file."""
    table = tables.open(name)
    for batch in range(count):
        rows = kafka_rows(10 * batch, 10 * batch + 10)
        write(table, rows, mark=Mark(query=QUERY, batch=batch), layout=layout)
    table.refresh()
    return table


def rows_of(tables: Tables) -> list[dict[str, Any]]:
    """Return the rows as DuckDB reads the files that the table's own library names; for Delta, Polars too."""
    table: Any = tables.open()
    table.refresh()
    if tables.format == "delta":
        place = str(tables.folder / "orders")
        found = polars.read_delta(place).sort("partition", "offset").to_dicts()
        uris = table.table.file_uris()
    else:
        files = table.table.inspect.data_files().column("file_path").to_pylist()
        uris = [each.removeprefix("file://") for each in files]
        found = table.table.scan().to_arrow().sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()
    query = 'SELECT "offset" FROM read_parquet(?, hive_partitioning = false) ORDER BY partition, "offset"'
    assert [row[0] for row in duckdb.execute(query, [uris]).fetchall()] == [row["offset"] for row in found]
    return [dict(row) for row in found]


def files_of(table: Any) -> list[str]:
    table.refresh()
    return [each.path for each in table.live_files()]


def test_small_files_become_one_with_the_same_rows_and_marks(tables: Tables) -> None:
    table = fill(tables)
    before, state = rows_of(tables), table.state()
    assert [each.files_after for each in compact_table(table, dry_run=True)] == [None]
    assert len(files_of(table)) == 6
    done = list(compact_table(table))
    assert [(each.files, each.files_after, each.rows) for each in done] == [(6, 1, 60)]
    assert len(files_of(table)) == 1
    assert rows_of(tables) == before
    assert table.state() == state
    assert table.last_batch(QUERY) == 5
    assert not write(tables.open(), kafka_rows(50, 60), mark=Mark(query=QUERY, batch=5)), "the batch is known"
    assert write(tables.open(), kafka_rows(60, 70), mark=Mark(query=QUERY, batch=6))
    table.refresh()
    assert table.state().holes == {}
    assert [each.rows for each in compact_table(table)] == [70]
    assert list(compact_table(table)) == []


@pytest.mark.parametrize("partitions", [("days(timestamp)",), ("key",)])
def test_files_are_joined_within_partitions(tables: Tables, partitions: tuple[str, ...]) -> None:
    if tables.format == "delta" and "(" in partitions[0]:
        pytest.skip("Delta tables are partitioned by columns")
    table = tables.open()
    rows = kafka_rows(0, 40, key=2)
    keys = pc.if_else(pc.equal(rows.column("key"), "k0"), "ü/=% b", None)
    rows = rows.set_column(0, "key", keys)
    for start in (0, 20, 10, 30):
        write(table, rows.slice(start, 10), layout=Layout(partition_by=partitions))
    before = rows_of(tables)
    groups = len({each.partition for each in table_files(table)})
    done = list(compact_table(table))
    assert len(done) == groups == 2
    assert len(files_of(table)) == 2
    assert rows_of(tables) == before


def table_files(table: Any) -> Any:
    table.refresh()
    return table.live_files()


def test_files_of_a_sorted_table_stay_sorted(iceberg: Tables) -> None:
    table = fill(iceberg, layout=Layout(sort_by=("value desc",)))
    list(compact_table(table))
    table.refresh()
    (file,) = table.live_files()
    assert [row["value"] for batch in table.read_live([file]) for row in batch.to_pylist()] == [*range(59, -1, -1)]
    assert file.entry.file.sort_order_id == 1


@pytest.mark.parametrize(("more", "groups"), [(-1, 0), (0, 1), (1, 1)])
def test_files_are_joined_up_to_the_target(delta: Tables, more: int, groups: int) -> None:
    table = fill(delta, 2)
    total = sum(each.size_bytes for each in table.live_files())
    assert len(small_files(table, total + more)) == groups


@pytest.mark.parametrize(("more", "groups"), [(-1, 0), (0, 0), (1, 1)])
def test_a_file_of_three_quarters_of_the_target_is_not_small(delta: Tables, more: int, groups: int) -> None:
    table = delta.open()
    for end in (5000, 1):
        write(table, kafka_rows(0, end))
    table.refresh()
    large, small = sorted((each.size_bytes for each in table.live_files()), reverse=True)
    assert large > 3 * small
    assert len(small_files(table, (large * 4) // 3 + more)) == groups


def during(table: Any, act: Any) -> Any:
    """Compact, and call act() when all files are written and nothing is committed."""
    done = compact_table(table)
    found = [next(done)]
    act()
    return [*found, *done]


def test_appends_during_a_compaction_stay(tables: Tables) -> None:
    table = fill(tables)
    during(table, lambda: write(tables.open(), kafka_rows(60, 70), mark=Mark(query=QUERY, batch=6)))
    assert [row["offset"] for row in rows_of(tables)] == [*range(70)]
    assert len(files_of(table)) == 2
    assert table.last_batch(QUERY) == 6
    assert table.state().spans == {("orders", 0): ((0, 70),)}


def test_a_compaction_that_meets_another_is_refused(tables: Tables) -> None:
    table = fill(tables)
    before = rows_of(tables)
    with pytest.raises(TableError, match=r"another writer has removed or rewritten .*; nothing was changed, run again"):
        during(table, lambda: list(compact_table(tables.open())))
    assert rows_of(tables) == before
    assert [each for each in table.find_orphans(0) if each.path.endswith(".parquet")] == []


def test_rows_that_are_deleted_meanwhile_stay_deleted(tables: Tables) -> None:
    table = fill(tables)

    def delete() -> None:
        other: Any = tables.open()
        other.refresh()
        other.table.delete("offset < 5")

    with pytest.raises(TableError, match="another writer has"):
        during(table, delete)
    assert [row["offset"] for row in rows_of(tables)] == [*range(5, 60)]
    list(compact_table(table))
    assert [row["offset"] for row in rows_of(tables)] == [*range(5, 60)]


def test_columns_that_were_added_renamed_and_widened(iceberg: Tables) -> None:
    table: Any = iceberg.open()
    write(table, pa.table({"id": pa.array([1], pa.int32()), "s": [{"a": 1}]}))
    write(table, pa.table({"id": pa.array([1 << 40], pa.int64()), "s": [{"a": 2, "b": "x"}]}))
    table.refresh()
    with table.table.update_schema() as update:
        update.rename_column("s", "t")
        update.rename_column(("s", "a"), "c")
    list(compact_table(table))
    table.refresh()
    rows = sorted(table.table.scan().to_arrow().to_pylist(), key=lambda row: int(row["id"]))
    assert rows == [{"id": 1, "t": {"c": 1, "b": None}}, {"id": 1 << 40, "t": {"c": 2, "b": "x"}}]
    assert len(table.live_files()) == 1


def test_the_operations_say_that_no_rows_changed(tables: Tables) -> None:
    """Readers of changes skip such a commit."""
    table = fill(tables)
    list(compact_table(table))
    table.refresh()
    if tables.format == "iceberg":
        assert table.table.current_snapshot().summary.operation.value == "replace"
        assert table.table.current_snapshot().summary.additional_properties["total-records"] == "60"
        return
    log = tables.folder / "orders" / "_delta_log" / f"{table.table.version():020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    changes = [each["dataChange"] for action in actions for kind, each in action.items() if kind in ("add", "remove")]
    assert changes == [False] * 7


def test_expired_files_are_deleted_and_the_marks_stay(tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    """Also if the last snapshots are of another program, which has no state."""
    table = fill(tables)
    list(compact_table(table))
    other: Any = tables.open()
    other.refresh()
    rows = tables.read().slice(0, 1)
    if tables.format == "iceberg":
        other.table.append(rows)
        other.refresh()
        other.table.append(rows)
    else:
        other.table.delete("false")
    before, state = rows_of(tables), table.state()
    files = {each.path for each in table_files(table)}
    assert table.expire(3600) == []
    listed = table.expire(0, dry_run=True)
    assert len([each for each in listed if each.endswith(".parquet")]) == 6
    where = arguments(tables)
    assert run(["lake", "expire", *where, "--older-than", "0", "--format", "json"]) == 1
    assert [each["path"] for each in json.loads(capsys.readouterr().out)] == listed
    assert run(["lake", "expire", *where, "--older-than", "0", "--apply", "--format", "json"]) == 0
    assert [each["path"] for each in json.loads(capsys.readouterr().out)] == listed
    assert {each.path for each in table_files(table)} == files
    assert rows_of(tables) == before
    assert table.state() == state
    if tables.format == "iceberg":
        assert len(table.table.metadata.snapshots) == 2, "the current one, and the last one with a state"
    assert table.find_orphans(0) == []
    assert not write(tables.open(), kafka_rows(50, 60), mark=Mark(query=QUERY, batch=5))
    assert write(tables.open(), kafka_rows(60, 70), mark=Mark(query=QUERY, batch=6))
    assert run(["lake", "expire", *where]) == 0


@pytest.mark.parametrize("format", FORMATS)
def test_the_command(format: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tables = Tables(format, tmp_path)
    table = fill(tables)
    where = arguments(tables)
    assert run(["lake", "compact", *where, "--format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["files"], found["files_after"], found["rows"]) == (6, None, 60)
    assert len(files_of(table)) == 6
    assert run(["lake", "compact", *where, "--apply", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["files"], found["files_after"]) == (6, 1)
    assert len(files_of(table)) == 1
    assert run(["lake", "compact", *where, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert run(["lake", "compact", *where, "--target", "0"]) == 2


def test_deletes_may_leave_all_rows_of_the_files(iceberg: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of deletes belongs to all data files before it, and its rows may be in one of them."""
    table = fill(iceberg, 2)
    deletes = pa.table({"file_path": ["elsewhere"], "pos": pa.array([3], pa.int64())})
    parquet.write_table(deletes, iceberg.folder / "deletes.parquet")
    name = f"file://{iceberg.folder}/deletes.parquet"
    files = [dataclasses.replace(each, deletes=frozenset({name})) for each in table.live_files()]
    monkeypatch.setattr(type(table), "live_files", lambda table, wanted=None: files)
    (done,) = compact_table(table)
    assert (done.files, done.files_after, done.rows) == (2, 1, 20)
