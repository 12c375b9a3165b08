"""Commits: once for each micro-batch, with the offsets of their rows, whatever other writers do."""

from __future__ import annotations

import os
import threading
import time
import uuid
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import OptionError, TableError
from kwire.lake import Change, Layout, Mark, open_delta, open_iceberg, open_table, write_files
from kwire.lake.delta.table import DeltaLakeTable
from kwire.lake.iceberg.table import ATTEMPTS
from kwire.lake.state import MAX_QUERIES, TableState
from tests.lake.tables import KAFKA, Tables, kafka_rows, write

deltalake = pytest.importorskip("deltalake")


def offsets(rows: pa.Table) -> list[int]:
    return sorted(rows.column("offset").to_pylist())


def test_a_replayed_batch_commits_nothing_and_leaves_no_file(tables: Tables) -> None:
    table = tables.open()
    assert write(table, kafka_rows(0, 50), mark=Mark(query="q", batch=0))
    assert not write(table, kafka_rows(0, 50), mark=Mark(query="q", batch=0))
    assert write(table, kafka_rows(50, 60), mark=Mark(query="q", batch=1))
    assert not write(tables.open(), kafka_rows(50, 60), mark=Mark(query="q", batch=1))
    assert write(table, kafka_rows(0, 5, partition=1), mark=Mark(query="other", batch=0))
    assert offsets(tables.read()) == sorted([*range(60), *range(5)])
    table.refresh()
    assert table.state() == TableState(
        spans={("orders", 0): ((0, 60),), ("orders", 1): ((0, 5),)},
        batches={"q": 1, "other": 0},
        writers={("orders", 0): "q", ("orders", 1): "other"},
        merge_key=(),
    )
    assert table.find_orphans(0) == []


def test_a_checkpoint_that_is_older_than_the_table_is_an_error(tables: Tables) -> None:
    table = tables.open()
    for batch in range(3):
        write(table, kafka_rows(batch, batch + 1), mark=Mark(query="q", batch=batch))
    with pytest.raises(TableError, match="batch 1 precedes batch 2, which this query has committed: the checkpoint"):
        write(table, kafka_rows(1, 2), mark=Mark(query="q", batch=1))
    assert not write(table, kafka_rows(1, 2), mark=Mark(query="q", batch=1, is_strict=False))
    assert offsets(tables.read()) == [0, 1, 2]


def test_a_batch_that_was_planned_again_up_to_another_end_is_an_error(tables: Tables) -> None:
    """The checkpoint was restored from before the batch, and the topic has grown."""
    mark = Mark(query="query", batch=1)
    assert write(tables.open(), kafka_rows(0, 4), mark=Mark(query="query", batch=0))
    assert write(tables.open(), kafka_rows(4, 8), mark=mark)
    assert not write(tables.open(), kafka_rows(4, 8), mark=mark)
    message = "batch 1 is in the table, without offsets 8 of orders-0, which it has now: the checkpoint is older"
    with pytest.raises(TableError, match=message):
        write(tables.open(), kafka_rows(4, 9), mark=mark)
    assert sorted(tables.read()["offset"].to_pylist()) == [*range(8)]
    assert not write(tables.open(), kafka_rows(4, 9), mark=replace(mark, is_strict=False))


def test_two_drivers_of_one_query_commit_a_batch_once(tables: Tables) -> None:
    """A driver that is taken for dead commits between the look at the table and the commit of its successor."""
    zombie, successor = tables.open(), tables.open()
    plan = zombie.prepare(KAFKA, Layout())
    mark = Mark(query="q", batch=0)
    really: Any = successor.add

    def add_too_late(*arguments: Any) -> None:
        if write(zombie, kafka_rows(0, 10), mark=mark, plan=plan):
            late.append(True)
        really(*arguments)

    late: list[bool] = []
    successor.add = add_too_late  # type: ignore[method-assign]
    assert not write(successor, kafka_rows(0, 10), mark=mark)
    assert late == [True]
    assert offsets(tables.read()) == list(range(10))
    assert successor.find_orphans(0) == []


def test_concurrent_writers_all_commit(tables: Tables) -> None:
    tables.open().prepare(KAFKA, Layout())
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            for batch in range(4):
                rows = kafka_rows(batch * 5, batch * 5 + 5, partition=number)
                assert write(tables.open(), rows, mark=Mark(query=f"q{number}", batch=batch))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert offsets(tables.read()) == sorted([*range(20)] * 3)
    table = tables.open()
    table.refresh()
    assert table.state().spans == {("orders", number): ((0, 20),) for number in range(3)}
    assert table.state().batches == {"q0": 3, "q1": 3, "q2": 3}
    orphans = table.find_orphans(0)  # PyIceberg leaves the metadata of commits that came too late
    assert not [each for each in orphans if each.path.endswith(".parquet")]
    table.delete_orphans(orphans)
    assert offsets(tables.read()) == sorted([*range(20)] * 3)


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_commit_whose_response_is_lost_is_looked_for(tables: Tables, is_committed: bool) -> None:
    table = tables.open()
    really: Any = table.add

    def lose(*arguments: Any) -> None:
        if is_committed:
            really(*arguments)
        raise TableError("connection reset", table.name)

    plan = table.prepare(KAFKA, Layout())
    table.add = lose  # type: ignore[method-assign]
    if is_committed:
        assert write(table, kafka_rows(0, 5), plan=plan)
    else:
        with pytest.raises(TableError, match="connection reset"):
            write(table, kafka_rows(0, 5), plan=plan)
    assert len(tables.read()) == 5 * is_committed


def test_overwrite_replaces_rows_and_offsets(tables: Tables) -> None:
    table = tables.open()
    write(table, kafka_rows(0, 50))
    write(table, kafka_rows(3, 5, partition=1), overwrite=True)
    assert offsets(tables.read()) == [3, 4]
    table.refresh()
    assert table.state().spans == {("orders", 1): ((3, 5),)}


def test_orphans_of_dead_tasks_are_found_by_age_and_deleted(tables: Tables) -> None:
    table = tables.open()
    layout = Layout(partition_by=("topic",))
    write(table, kafka_rows(0, 10), layout=layout)
    dead = write_files(kafka_rows(10, 20).to_batches(), table.prepare(KAFKA, layout))
    assert table.find_orphans(3600) == []
    orphans = table.find_orphans(0)
    assert [each.size_bytes for each in orphans] == [each.size_bytes for each in dead.files]
    assert orphans[0].path.endswith(dead.files[0].path.rpartition("/")[2])
    table.delete_orphans(orphans)
    assert table.find_orphans(0) == []
    assert offsets(tables.read()) == list(range(10))


def test_files_of_old_snapshots_are_no_orphans(tables: Tables) -> None:
    table: Any = tables.open()
    write(table, kafka_rows(0, 10))
    write(table, kafka_rows(10, 12), overwrite=True)
    assert table.find_orphans(0) == []
    if tables.format == "iceberg":
        first = table.table.metadata.snapshots[0].snapshot_id
        assert len(table.table.scan(snapshot_id=first).to_arrow()) == 10


def test_a_task_that_fails_deletes_its_files(tables: Tables) -> None:
    table = tables.open()
    plan = table.prepare(KAFKA, Layout(sort_by=("offset",)))  # each buffer is a file

    def batches() -> Any:
        yield from kafka_rows(0, 10).to_batches()
        raise ValueError("the reader failed")

    with pytest.raises(ValueError, match="the reader failed"):
        write_files(batches(), plan)
    assert table.find_orphans(0) == []


def test_the_state_has_the_latest_queries() -> None:
    state = TableState(batches={f"q{number}": 0 for number in range(MAX_QUERIES)})
    state = state.after(Change(id="again", mark=Mark(query="q0", batch=1)))
    for number in range(MAX_QUERIES, MAX_QUERIES + 5):
        state = state.after(Change(id=uuid.uuid4().hex, mark=Mark(query=f"q{number}", batch=0)))
    assert len(state.batches) == MAX_QUERIES
    assert state.batches["q0"] == 1  # it committed after the others of the beginning
    assert "q4" not in state.batches
    assert TableState.parse(state.render(), "t") == state
    with pytest.raises(TableError, match=r"table t: kwire\.state cannot be read: 'nonsense'"):
        TableState.parse("nonsense", "t")


def test_a_table_that_is_rolled_back_is_rolled_back_with_its_offsets(iceberg: Tables) -> None:
    table: Any = iceberg.open()
    write(table, kafka_rows(0, 10), mark=Mark(query="q", batch=0))
    first = table.table.current_snapshot().snapshot_id
    write(table, kafka_rows(10, 20), mark=Mark(query="q", batch=1))
    table.table.manage_snapshots().set_current_snapshot(first).commit()
    table.refresh()
    assert table.state().spans == {("orders", 0): ((0, 10),)}
    assert write(table, kafka_rows(10, 20), mark=Mark(query="q", batch=1))
    assert offsets(iceberg.read()) == list(range(20))


def test_a_query_that_goes_on_after_a_rollback_leaves_a_hole(iceberg: Tables) -> None:
    """Its checkpoint was not rolled back."""
    table: Any = iceberg.open()
    for batch in range(3):
        write(table, kafka_rows(10 * batch, 10 * batch + 10), mark=Mark(query="q", batch=batch))
    first = table.table.metadata.snapshots[0].snapshot_id
    table.table.manage_snapshots().set_current_snapshot(first).commit()
    for batch in (3, 4):
        write(iceberg.open(), kafka_rows(10 * batch + 2, 10 * batch + 10), mark=Mark(query="q", batch=batch))
    table.refresh()
    assert table.state().spans == {("orders", 0): ((0, 10), (32, 50))}
    assert not table.state().rolled_back


def test_offsets_survive_the_expiry_of_snapshots(iceberg: Tables) -> None:
    table: Any = iceberg.open()
    write(table, kafka_rows(0, 10), mark=Mark(query="q", batch=0))
    ours = table.table.current_snapshot().snapshot_id
    table.table.append(kafka_rows(90, 91).cast(table.table.schema().as_arrow()))  # another writer, without offsets
    table.refresh()
    table.table.maintenance.expire_snapshots().by_id(ours).commit()
    table.refresh()
    assert table.state() == TableState(
        spans={("orders", 0): ((0, 10),)}, batches={"q": 0}, writers={("orders", 0): "q"}, merge_key=()
    )
    assert not write(table, kafka_rows(0, 10), mark=Mark(query="q", batch=0))


def test_the_transaction_identifiers_of_delta_are_in_its_log(delta: Tables) -> None:
    table: Any = delta.open()
    write(table, kafka_rows(0, 10), mark=Mark(query="q", batch=7))
    table.refresh()
    assert table.table.transaction_version("q") == 7
    assert table.table.transaction_version("kwire/orders/0") == 10


def test_offsets_survive_the_clean_up_of_deltas_log(delta: Tables) -> None:
    """They are in checkpoints, from which delta-rs looks up the identifier of one transaction but lists none."""
    table: Any = delta.open()
    write(table, kafka_rows(5, 10), mark=Mark(query="q", batch=7))
    deltalake.write_deltalake(table.uri, kafka_rows(90, 91, partition=3), mode="append")
    clean_log(table.uri)
    other = delta.open()
    other.refresh()
    assert other.state() == TableState(spans={("orders", 0): ((5, 10),)}, batches={"q": 7}, merge_key=())
    assert not write(other, kafka_rows(5, 10), mark=Mark(query="q", batch=7))
    assert write(other, kafka_rows(0, 2, partition=1), mark=Mark(query="q", batch=8))
    table.refresh()  # whose version is not in the log any more
    spans = {("orders", 0): ((5, 10),), ("orders", 1): ((0, 2),)}
    assert table.state() == TableState(spans=spans, batches={"q": 8}, writers={("orders", 1): "q"}, merge_key=())


def clean_log(uri: str) -> None:
    """Write a checkpoint and delete the commits before it."""
    table = deltalake.DeltaTable(uri)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    table.create_checkpoint()
    for path in Path(uri, "_delta_log").iterdir():
        os.utime(path, (0, 0))
    table.cleanup_metadata()
    assert len(list(Path(uri, "_delta_log").glob("*.json"))) == 1


def test_a_delta_table_that_forgets_transactions_is_refused(delta: Tables) -> None:
    table: Any = delta.open()
    write(table, kafka_rows(0, 10))
    table.table.alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 1 days"})
    with pytest.raises(TableError, match="setTransactionRetentionDuration makes it forget the offsets and micro-batch"):
        write(table, kafka_rows(10, 20))


def test_files_of_other_writers_are_no_orphans(tables: Tables) -> None:
    """Checksums of Hadoop's local file system, and Delta's deletion vectors, which delta-rs does not list."""
    table = tables.open()
    write(table, kafka_rows(0, 10))
    folder = tables.folder / ("orders" if tables.format == "delta" else "sales/orders/data")
    name = "deletion_vector_8c39dc67.bin" if tables.format == "delta" else ".00000-1.parquet.crc"
    (folder / name).write_bytes(b"x")
    assert table.find_orphans(0) == []
    (folder / "x.parquet").write_bytes(b"x")
    assert [each.path.rpartition("/")[2] for each in table.find_orphans(0)] == ["x.parquet"]


def test_files_of_a_merge_that_cannot_be_made_are_deleted(tables: Tables) -> None:
    table = tables.open()
    rows = kafka_rows(0, 10).set_column(0, "key", pa.nulls(10, pa.string()))
    with pytest.raises(TableError, match="column 'key' of mergeKey is null in a row"):
        write(table, rows, key=("key",))
    assert table.find_orphans(0) == []


def test_orphans_of_a_folder_for_data_that_nobody_has_made(iceberg: Tables) -> None:
    """A table has the property before its first row is written there."""
    table: Any = iceberg.open()
    data = iceberg.folder / "elsewhere"
    table.prepare(KAFKA, Layout(properties={"write.data.path": f"file://{data}"}))
    assert table.find_orphans(0) == []
    write(table, kafka_rows(0, 10))
    (data / "x.parquet").write_bytes(b"x")
    assert [each.path for each in table.find_orphans(0)] == [f"file://{data}/x.parquet"]


@pytest.mark.parametrize(("setting", "manifests"), [({}, 1), ({"commit.manifest-merge.enabled": "false"}, 4)])
def test_manifests_are_merged_unless_the_table_says_otherwise(
    iceberg: Tables, setting: dict[str, str], manifests: int
) -> None:
    """Iceberg's default is to merge, PyIceberg's is not."""
    table: Any = iceberg.open()
    properties = {**setting, "commit.manifest.min-count-to-merge": "2"}
    for number in range(4):
        write(table, kafka_rows(number, number + 1), layout=Layout(properties=properties))
    table.refresh()
    assert len(table.table.current_snapshot().manifests(table.table.io)) == manifests
    assert {name for name in table.table.properties if name.startswith("commit.")} == properties.keys()
    assert offsets(iceberg.read()) == [0, 1, 2, 3]
    assert table.state().spans == {("orders", 0): ((0, 4),)}
    orphans = table.find_orphans(0)  # PyIceberg leaves the manifest that it has merged with others
    assert len(orphans) == (0 if setting else 3)
    table.delete_orphans(orphans)
    assert offsets(iceberg.read()) == [0, 1, 2, 3]


class Losing:
    """A catalog in which every creation of a table fails. first: called before it fails."""

    def __init__(self, catalog: Any, error: Exception, first: Any = lambda: None) -> None:
        self.catalog, self.error, self.first, self.tries = catalog, error, first, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.catalog, name)

    def create_table_transaction(self, *_: Any, **__: Any) -> Any:
        self.tries += 1
        self.first()
        raise self.error


def test_a_table_whose_creation_always_conflicts_is_an_error(iceberg: Tables) -> None:
    from pyiceberg.exceptions import CommitFailedException

    table: Any = iceberg.open()
    losing = table._opened = Losing(table.catalog, CommitFailedException("another writer"))
    with pytest.raises(TableError, match=r"table sales.orders: cannot be created: .*another writer"):
        table.prepare(KAFKA, Layout())
    assert losing.tries == ATTEMPTS


def test_a_creation_that_fails_is_an_error_though_another_writer_has_the_table(iceberg: Tables) -> None:
    """The catalog's error is not about the other table: nothing says that this one would be the same."""
    table: Any = iceberg.open()
    other = iceberg.open()
    losing = table._opened = Losing(table.catalog, OSError("no space left"), lambda: other.prepare(KAFKA, Layout()))
    with pytest.raises(TableError, match="no space left"):
        table.prepare(KAFKA, Layout())
    assert losing.tries == 1


def test_delta_tables_keep_urls_and_make_paths_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is that of the folder in which the table was opened."""
    monkeypatch.chdir(tmp_path)
    for uri in ("lake/orders", "file:lake/orders", f"file:{tmp_path}/lake/orders"):
        assert DeltaLakeTable(uri).uri == f"{tmp_path}/lake/orders"
    assert DeltaLakeTable("s3://lake/orders").uri == "s3://lake/orders"


def test_errors_of_delta_are_plain_text(tmp_path: Path) -> None:
    """Its arrows are red, also in a log and in the exception of a Spark query."""
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "_delta_log").write_text("a file")
    with pytest.raises(TableError, match=r"Unable to open file .*: Not a directory \(os error 20\)$") as raised:
        open_delta(str(tmp_path / "orders")).refresh()
    assert "\x1b" not in str(raised.value)
    table = open_delta(str(tmp_path / "other"))
    plan = table.prepare(KAFKA, Layout(partition_by=("key",)))
    (tmp_path / "other" / "key=k0").write_text("a file")
    with pytest.raises(TableError, match=r"Not a directory|File exists") as raised:
        write_files(kafka_rows(0, 1).to_batches(), plan)
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_options_of_an_object_store_are_refused_for_a_path(tmp_path: Path, prefix: str) -> None:
    """delta-rs ignores them, misspelled ones too."""
    with pytest.raises(OptionError, match="storage option 'aws_region': requires the URL of an object store"):
        open_delta(f"{prefix}{tmp_path}/orders", {"aws_region": "eu-central-1"})
    write(open_delta(f"{prefix}{tmp_path}/orders", {"ALLOW_UNSAFE_RENAME": "true"}), kafka_rows(0, 2))
    open_delta("s3://lake/orders", {"aws_region": "eu-central-1"})


def test_a_catalog_has_the_name_that_its_properties_give(iceberg: Tables) -> None:
    """Catalogs in SQL databases keep it, and other programs have to use the same."""
    catalog = iceberg.catalog(f"file://{iceberg.folder}")
    write(open_table("sales.named", catalog={**catalog, "name": "lake"}), kafka_rows(0, 3))
    named = open_iceberg("sales.named", catalog, catalog_name="lake")
    named.refresh()
    assert named.exists
    default = open_table("sales.named", catalog=catalog)
    default.refresh()
    assert not default.exists


def test_a_file_that_was_being_written_is_an_orphan(delta: Tables) -> None:
    """delta-rs writes local files under another name, which it hides; a killed process leaves them."""
    table = delta.open()
    write(table, kafka_rows(0, 10))
    left = ["part-00000-x.snappy.parquet#1", "_delta_log/00000000000000000001.json#2"]
    for name in left:
        (delta.folder / "orders" / name).write_bytes(b"half")
    assert table.find_orphans(3600) == []
    orphans = table.find_orphans(0)
    assert sorted(each.path for each in orphans) == sorted(left)
    table.delete_orphans(orphans)
    assert table.find_orphans(0) == []
    assert offsets(delta.read()) == list(range(10))


def test_the_age_of_orphans_is_exact(tables: Tables) -> None:
    """delta-rs counts whole hours."""
    table = tables.open()
    write(table, kafka_rows(0, 10))
    write_files(kafka_rows(10, 20).to_batches(), table.prepare(KAFKA, Layout()))
    (orphan,) = table.find_orphans(0)
    (path,) = tables.folder.rglob(orphan.path.rpartition("/")[2])
    half_an_hour_ago = time.time() - 1800
    os.utime(path, (half_an_hour_ago, half_an_hour_ago))
    assert table.find_orphans(1900) == []
    assert [each.path for each in table.find_orphans(1700)] == [orphan.path]


@pytest.mark.parametrize("name", ["", " "])
def test_the_empty_name_of_an_unset_variable_is_not_the_current_directory(name: str) -> None:
    with pytest.raises(OptionError, match="the name of the table is empty"):
        open_table(name)


@pytest.mark.parametrize(("later_s", "found"), [(-1, 0), (0, 1)])
def test_an_orphan_of_just_the_given_age_is_old_enough(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, later_s: int, found: int
) -> None:
    modified_s = 1_700_000_000
    table: Any = tables.open()
    write(table, kafka_rows(0, 10))
    dead = write_files(kafka_rows(10, 20).to_batches(), table.prepare(KAFKA, Layout()))
    name = dead.files[0].path.rpartition("/")[2]
    (path,) = tables.folder.rglob(name)
    os.utime(path, (modified_s, modified_s))
    clock = SimpleNamespace(time=lambda: float(modified_s + 7200 + later_s), sleep=time.sleep)
    for module in ("kwire.lake.delta.table", "kwire.lake.iceberg.orphans"):
        monkeypatch.setattr(f"{module}.time", clock)
    assert len(table.find_orphans(7200)) == found


@pytest.mark.parametrize(("later_ms", "left"), [(-1, 3), (0, 2)])
def test_a_snapshot_of_just_the_given_age_is_old_enough(
    iceberg: Tables, monkeypatch: pytest.MonkeyPatch, later_ms: int, left: int
) -> None:
    table: Any = iceberg.open()
    for start in range(3):
        write(table, kafka_rows(start, start + 1))
        time.sleep(0.002)
    table.refresh()
    now = Fraction(table.table.metadata.snapshots[0].timestamp_ms + later_ms, 1000) + 60
    monkeypatch.setattr("kwire.lake.iceberg.table.time", SimpleNamespace(time=lambda: now, sleep=time.sleep))
    table.expire(60)
    table.refresh()
    assert len(table.table.metadata.snapshots) == left


def test_a_commit_is_looked_for_in_so_many_snapshots(iceberg: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.lake.iceberg.table.RECENT", 2)
    table: Any = iceberg.open()
    changes = [Change(id=f"commit {number}") for number in range(3)]
    for number, change in enumerate(changes):
        plan = table.prepare(KAFKA, Layout())
        table.commit(write_files(kafka_rows(number, number + 1).to_batches(), plan).files, change, plan)
    table.refresh()
    assert [table.has_commit(each) for each in changes] == [False, True, True]
