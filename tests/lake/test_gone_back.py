"""Tables that went back to an earlier version: their offsets are those of their rows, or an error."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from kwire.errors import TableError
from kwire.lake import Layout, Mark, append_logs
from kwire.lake.offset_ranges import Ranges
from kwire.lake.state import TableState
from kwire.log import LogDirectory
from tests.lake.avro_values import write_values
from tests.lake.tables import KAFKA, Tables, kafka_rows, write
from tests.lake.test_commits import clean_log

deltalake = pytest.importorskip("deltalake")

LAYOUT = Layout()
KEY = ("orders", 0)


def state_of(tables: Tables) -> TableState:
    table = tables.open()
    table.refresh()
    return table.state()


def offsets(tables: Tables) -> list[int]:
    return sorted(tables.read().column("offset").to_pylist())


def commit(tables: Tables, start: int, end: int, query: str | None = None, batch: int = 0, **options: Any) -> None:
    mark = None if query is None else Mark(query=query, batch=batch)
    assert write(tables.open(), kafka_rows(start, end, **options), mark=mark)


def point_of(tables: Tables) -> int:
    """Return the current version or snapshot."""
    table: Any = tables.open()
    table.refresh()
    return int(table.table.version() if tables.format == "delta" else table.table.current_snapshot().snapshot_id)


def go_back(tables: Tables, point: int) -> None:
    table: Any = tables.open()
    table.refresh()
    if tables.format == "delta":
        table.table.restore(point)
    else:
        table.table.manage_snapshots().set_current_snapshot(point).commit()


def append_elsewhere(tables: Tables, offset: int) -> None:
    """Append a row as another writer does, without offsets."""
    table: Any = tables.open()
    table.refresh()
    rows = kafka_rows(offset, offset + 1, partition=9)
    if tables.format == "delta":
        deltalake.write_deltalake(table.uri, rows, mode="append")
    else:
        table.table.append(rows.cast(table.table.schema().as_arrow()))


def check(tables: Tables, **expected: Any) -> None:
    """Compare the state, for Delta also after a clean-up of the log, when transaction identifiers are left."""
    for is_cleaned in (False, True) if tables.format == "delta" else (False,):
        if is_cleaned:
            clean_log(str(tables.folder / "orders"))
        state = state_of(tables)
        for name, value in expected.items():
            assert getattr(state, name) == value, (name, is_cleaned)


@pytest.mark.parametrize("is_written_between", [False, True])
def test_offsets_that_are_gone_are_appended_again(tables: Tables, tmp_path: Path, is_written_between: bool) -> None:
    """Also if another writer commits before and after."""
    folder = write_values(tmp_path / "logs", [b"value"] * 10, topic_id=uuid.UUID(int=7))

    def append() -> int:
        return sum(each.rows for each in append_logs(tables.open(), [LogDirectory(folder)["avro", 0]], layout=LAYOUT))

    def other(offset: int) -> None:
        if is_written_between:
            table: Any = tables.open()
            table.refresh()
            rows = tables.read().slice(0, 1)
            if tables.format == "delta":
                deltalake.write_deltalake(table.uri, rows, mode="append")
            else:
                table.table.append(rows)

    assert append() == 10
    other(1)
    point = point_of(tables)
    write_values(tmp_path / "logs", [b"value"] * 30, topic_id=uuid.UUID(int=7))
    assert append() == 20
    go_back(tables, point)
    other(2)
    assert state_of(tables).spans == {("avro", 0): ((0, 10),)}
    assert append() == 20
    assert set(offsets(tables)) == set(range(30))
    assert len(offsets(tables)) == 30 + 2 * is_written_between
    check(tables, spans={("avro", 0): ((0, 30),)})


def test_a_batch_whose_rows_are_gone_is_committed_again(tables: Tables) -> None:
    commit(tables, 0, 10, "q", 0)
    point = point_of(tables)
    commit(tables, 10, 20, "q", 1)
    commit(tables, 0, 5, "r", 0, partition=1)
    go_back(tables, point)
    table = tables.open()
    table.refresh()
    assert (table.last_batch("q"), table.last_batch("r"), table.last_batch("s")) == (0, None, None)
    commit(tables, 10, 20, "q", 1)
    commit(tables, 0, 5, "r", 0, partition=1)
    assert offsets(tables) == sorted([*range(20), *range(5)])
    check(tables, spans={KEY: ((0, 20),), ("orders", 1): ((0, 5),)}, batches={"q": 1, "r": 0})
    assert not write(tables.open(), kafka_rows(10, 20), mark=Mark(query="q", batch=1))


def test_queries_that_go_on_leave_holes_however_late(tables: Tables) -> None:
    """Their checkpoints did not go back. Another one commits first, and what has the gone batches is cleaned up."""
    commit(tables, 0, 10, "q", 0)
    commit(tables, 0, 10, "r", 0, partition=1)
    point = point_of(tables)
    commit(tables, 10, 20, "q", 1)
    commit(tables, 10, 20, "r", 1, partition=1)
    commit(tables, 0, 10, "new", 0, partition=2)
    table: Any = tables.open()
    table.refresh()
    gone = [] if tables.format == "delta" else [each.snapshot_id for each in table.table.metadata.snapshots][-3:]
    go_back(tables, point)
    assert state_of(tables).rolled_back == {"q", "r", "new"}
    commit(tables, 20, 30, "q", 2)
    if tables.format == "iceberg":
        table.refresh()
        for each in gone:
            table.table.maintenance.expire_snapshots().by_id(each).commit()
            table.refresh()
    else:
        clean_log(table.uri)
    commit(tables, 20, 30, "r", 2, partition=1)
    commit(tables, 10, 20, "new", 1, partition=2)
    expected: dict[Any, Ranges] = {
        KEY: ((0, 10), (20, 30)),
        ("orders", 1): ((0, 10), (20, 30)),
        ("orders", 2): ((10, 20),),
    }
    check(tables, spans=expected, rolled_back=frozenset(), batches={"q": 2, "r": 2, "new": 1})


def test_back_to_before_the_first_commit(tables: Tables) -> None:
    tables.open().prepare(KAFKA, LAYOUT)
    append_elsewhere(tables, 90)
    point = point_of(tables)
    commit(tables, 0, 10, "q", 0)
    go_back(tables, point)
    assert state_of(tables) == TableState(rolled_back=frozenset({"q"}))
    append_elsewhere(tables, 91)
    commit(tables, 0, 4, "q", 0)
    check(tables, spans={KEY: ((0, 4),)}, batches={"q": 0})


def test_back_and_forth(tables: Tables) -> None:
    points = []
    for batch in range(4):
        commit(tables, 10 * batch, 10 * batch + 10, "q", batch)
        points.append(point_of(tables))
    for at in (1, 3, 0, 2):
        go_back(tables, points[at])
        assert state_of(tables).spans == {KEY: ((0, 10 * at + 10),)}
    commit(tables, 30, 35, "q", 3)
    points.append(point_of(tables))
    go_back(tables, points[0])
    go_back(tables, points[4])
    commit(tables, 35, 36, "q", 4)
    assert offsets(tables) == list(range(36))
    check(tables, spans={KEY: ((0, 36),)}, batches={"q": 4})


def test_holes_keys_and_ids_go_back_too(tables: Tables) -> None:
    write(tables.open(), kafka_rows(0, 10, key=3), key=("key",))
    write(tables.open(), kafka_rows(20, 30, key=3), key=("key",))
    write(tables.open(), kafka_rows(40, 50, key=3), key=("key",))
    point = point_of(tables)
    write(tables.open(), kafka_rows(0, 5), overwrite=True)
    go_back(tables, point)
    write(tables.open(), kafka_rows(50, 60, key=3), key=("key",))
    check(tables, spans={KEY: ((0, 10), (20, 30), (40, 60))}, merge_key=("key",))


def test_other_commits_of_a_table_without_offsets_are_its_own(delta: Tables) -> None:
    """A RESTORE of a table that kwire has not written to."""
    delta.open().prepare(KAFKA, LAYOUT)
    append_elsewhere(delta, 90)
    time = datetime.now(UTC)
    append_elsewhere(delta, 91)
    table: Any = delta.open()
    table.refresh()
    table.table.restore(time)
    assert state_of(delta) == TableState()
    commit(delta, 0, 10, "q", 0)
    assert state_of(delta).spans == {KEY: ((0, 10),)}


def test_a_restore_to_a_time_is_refused_until_it_is_made_by_version(delta: Tables) -> None:
    """The time of a version is that of its file, which copies of a table change."""
    commit(delta, 0, 10, "q", 0)
    sleep(0.05)  # the times of files are a few milliseconds coarse
    now, point = datetime.now(UTC), point_of(delta)
    sleep(0.05)
    commit(delta, 10, 20, "q", 1)
    table: Any = delta.open()
    table.refresh()
    table.table.restore(now)
    with pytest.raises(
        TableError, match=r"version 3 is a RESTORE that does not name a version of it, so the offsets of"
    ):
        state_of(delta)
    with pytest.raises(TableError, match="TO VERSION AS OF, or write to another table"):
        commit(delta, 10, 20, "q", 1)
    go_back(delta, point)
    commit(delta, 10, 20, "q", 1)
    assert offsets(delta) == list(range(20))


def test_a_table_that_was_replaced_by_a_clone_is_refused(delta: Tables) -> None:
    """Delta Lake can replace a table by another version of it."""
    commit(delta, 0, 10, "q", 0)
    point = point_of(delta)
    commit(delta, 10, 20, "q", 1)
    clone = {"operation": "CLONE", "operationParameters": {"source": "delta.`/t`", "sourceVersion": "1"}}
    path = delta.folder / "orders" / "_delta_log" / f"{point + 2:020}.json"
    path.write_text(json.dumps({"commitInfo": clone}))
    with pytest.raises(TableError, match="version 3 is a CLONE that does not name a version of it"):
        commit(delta, 20, 30, "q", 2)
    go_back(delta, point)
    assert state_of(delta).spans == {KEY: ((0, 10),)}


def test_a_version_that_the_log_lost_is_refused(delta: Tables) -> None:
    commit(delta, 0, 10, "q", 0)
    point = point_of(delta)
    commit(delta, 10, 20, "q", 1)
    go_back(delta, point)
    deltalake.DeltaTable(str(delta.folder / "orders")).create_checkpoint()
    for version in range(point + 1):
        (delta.folder / "orders" / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(
        TableError, match="version 3 is a RESTORE to version 1, which its log no longer has, so the off"
    ):
        commit(delta, 10, 20, "q", 1)


def test_a_version_without_its_commit_is_read_from_its_checkpoint(delta: Tables) -> None:
    commit(delta, 0, 10, "q", 0)
    table: Any = delta.open()
    clean_log(table.uri)
    append_elsewhere(delta, 90)
    point = point_of(delta)
    commit(delta, 10, 20, "q", 1)
    go_back(delta, point)
    assert state_of(delta).spans == {KEY: ((0, 10),)}
    commit(delta, 10, 20, "q", 1)
    check(delta, spans={KEY: ((0, 20),)}, batches={"q": 1})


# ---- Iceberg: snapshots that have expired


def expire(tables: Tables, *snapshots: int) -> None:
    table: Any = tables.open()
    for each in snapshots:
        table.refresh()
        table.table.maintenance.expire_snapshots().by_id(each).commit()


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("is_last_expired", [False, True])
def test_offsets_of_expired_snapshots_are_not_taken_from_later_ones(
    iceberg: Tables, version: str, is_last_expired: bool
) -> None:
    layout = Layout(properties={"format-version": version})
    write(iceberg.open(), kafka_rows(0, 10), mark=Mark(query="q", batch=0), layout=layout)
    first = point_of(iceberg)
    append_elsewhere(iceberg, 90)
    point = point_of(iceberg)
    commit(iceberg, 10, 20, "q", 1)
    last = point_of(iceberg)
    go_back(iceberg, point)
    assert state_of(iceberg).spans == {KEY: ((0, 10),)}
    expire(iceberg, first, *([last] if is_last_expired else []))
    with pytest.raises(TableError, match=f"it was rolled back to a snapshot before {last}, which has its last offsets"):
        state_of(iceberg)
    with pytest.raises(TableError, match="have expired; write to another table"):
        commit(iceberg, 10, 20, "q", 1)


@pytest.mark.parametrize("version", ["1", "2"])
def test_offsets_survive_expired_snapshots_of_each_format_version(iceberg: Tables, version: str) -> None:
    layout = Layout(properties={"format-version": version})
    write(iceberg.open(), kafka_rows(0, 10), mark=Mark(query="q", batch=0), layout=layout)
    first = point_of(iceberg)
    append_elsewhere(iceberg, 90)
    expire(iceberg, first)
    assert state_of(iceberg).spans == {KEY: ((0, 10),)}
    assert not write(iceberg.open(), kafka_rows(0, 10), mark=Mark(query="q", batch=0))


def test_rows_that_were_picked_from_another_snapshot_are_refused(iceberg: Tables) -> None:
    """cherrypick_snapshot copies the rows of a snapshot, and not its offsets."""
    commit(iceberg, 0, 10, "q", 0)
    point = point_of(iceberg)
    commit(iceberg, 10, 20, "q", 1)
    picked = point_of(iceberg)
    go_back(iceberg, point)
    table: Any = iceberg.open()
    table.refresh()
    rows = kafka_rows(10, 20).cast(table.table.schema().as_arrow())
    table.table.append(rows, snapshot_properties={"source-snapshot-id": str(picked)})
    with pytest.raises(
        TableError, match=rf"has rows of snapshot {picked} \(cherrypick_snapshot\), and not their offsets"
    ):
        commit(iceberg, 10, 20, "q", 1)
    go_back(iceberg, point)
    commit(iceberg, 10, 20, "q", 1)
    assert offsets(iceberg) == list(range(20))


def test_a_branch_that_becomes_the_main_one_has_its_offsets(iceberg: Tables) -> None:
    commit(iceberg, 0, 10, "q", 0)
    table: Any = iceberg.open()
    table.refresh()
    table.table.manage_snapshots().create_branch(point_of(iceberg), "audit").commit()
    commit(iceberg, 10, 20, "q", 1)
    table.refresh()
    rows = kafka_rows(90, 91, partition=9).cast(table.table.schema().as_arrow())
    table.table.append(rows, branch="audit")
    table.refresh()
    head = table.table.metadata.refs["audit"].snapshot_id
    table.table.manage_snapshots().set_current_snapshot(head).commit()
    assert state_of(iceberg).spans == {KEY: ((0, 10),)}
    commit(iceberg, 10, 20, "q", 1)
    assert offsets(iceberg) == [*range(20), 90]
