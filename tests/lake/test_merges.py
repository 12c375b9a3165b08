"""Merges by key: the latest value of each key, without the keys whose latest record is a tombstone."""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.cli.main import run
from kwire.errors import OptionError, TableError
from kwire.lake import Change, Layout, Mark, Spans, append_logs, write_files
from kwire.lake.append import missing_offsets
from kwire.lake.table import CommitConflict
from kwire.log import LogDirectory
from tests.lake.avro_values import write_values
from tests.lake.tables import KAFKA, Tables, kafka_rows, write
from tests.lake.test_append import arguments
from tests.lake.test_commits import clean_log
from tests.sampling import mostly_slow

KEY = ("key",)


def rows(*records: tuple[str, int | None, int]) -> pa.Table:
    """Return rows of (key, value, offset)."""
    return pa.Table.from_pylist(
        [{"key": key, "value": value, "topic": "t", "partition": 0, "offset": at} for key, value, at in records],
        schema=KAFKA,
    )


def placed(*records: tuple[str, int | None, int, int, int | None]) -> pa.Table:
    """Return rows of (key, value, partition, offset, timestamp in ms)."""
    return pa.Table.from_pylist(
        [
            {"key": key, "value": value, "topic": "t", "partition": partition, "offset": at, "timestamp": time}
            for key, value, partition, at, time in records
        ],
        schema=KAFKA.set(5, pa.field("timestamp", pa.timestamp("ms", "UTC"))),
    ).cast(KAFKA)


def values(tables: Tables) -> dict[str, int]:
    found = tables.read()
    assert len(set(found.column("key").to_pylist())) == len(found)
    return dict(zip(found.column("key").to_pylist(), found.column("value").to_pylist(), strict=True))


def test_a_table_has_the_latest_value_of_each_key(tables: Tables) -> None:
    table = tables.open()
    write(table, rows(("a", 1, 0), ("b", 1, 1), ("a", 2, 2)), key=KEY, mark=Mark(query="q", batch=0))
    assert values(tables) == {"a": 2, "b": 1}
    write(table, rows(("c", 5, 5), ("b", None, 3), ("c", 4, 4)), key=KEY, mark=Mark(query="q", batch=1))
    assert not write(table, rows(("a", 9, 4)), key=KEY, mark=Mark(query="q", batch=1))
    assert values(tables) == {"a": 2, "c": 5}
    write(table, rows(("x", None, 6)), key=KEY, mark=Mark(query="q", batch=2))  # a tombstone of no row
    assert values(tables) == {"a": 2, "c": 5}
    table.refresh()
    assert table.state().spans == {("t", 0): ((0, 7),)}
    assert table.find_orphans(0) == []


@pytest.mark.parametrize("layout", mostly_slow([Layout(partition_by=("partition",)), Layout()]))
def test_random_records_end_as_a_dictionary_does(tables: Tables, layout: Layout) -> None:
    choose = random.Random(7)
    table = tables.open()
    expected: dict[str, int] = {}
    offset = 0
    for batch in range(6):
        records = []
        for _ in range(choose.randint(1, 40)):
            key, value = f"k{choose.randrange(15)}", choose.choice([None, offset, offset])
            records.append((key, value, offset))
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
            offset += 1
        choose.shuffle(records)  # tasks end in any order
        write(table, rows(*records), key=KEY, mark=Mark(query="q", batch=batch), layout=layout)
    assert values(tables) == expected
    assert table.find_orphans(0) == []


MOVED = [("moved", 1, 0, 7, 50), ("moved", 2, 1, 3, 60)]  # its partition was changed


@pytest.mark.parametrize("others", [[], MOVED, MOVED[::-1]])
def test_the_offset_decides_within_a_partition_when_timestamps_go_back(
    tables: Tables, others: list[tuple[str, int | None, int, int, int | None]]
) -> None:
    """Also if the batch has another key that lies in two partitions."""
    records = [
        *[("a", 1, 0, 0, 900), ("a", 2, 0, 1, 100)],
        *[("deleted", 1, 0, 2, 900), ("deleted", None, 0, 3, 899)],
        *others,
        *[("b", 5, 1, 9, 0), ("b", 4, 1, 8, 10), ("c", 6, 0, 9, None), ("c", 5, 0, 8, 10)],
    ]
    write(tables.open(), placed(*records), key=KEY)
    assert values(tables) == {"a": 2, "b": 5, "c": 6} | ({"moved": 2} if others else {})


def test_the_timestamp_decides_between_the_latest_rows_of_two_partitions(tables: Tables) -> None:
    """Not between all rows: offset 1 of partition 0 is its latest, although offset 0 has a higher timestamp."""
    records = [
        *[("a", 1, 0, 0, 900), ("a", 2, 0, 1, 100), ("a", 3, 1, 0, 500)],
        *[("gone", 1, 1, 1, 800), ("gone", None, 0, 5, 801)],
        *[("back", None, 1, 2, 800), ("back", 4, 0, 6, 801)],
        *[("equal", 1, 1, 5, 7), ("equal", 2, 0, 9, 7)],
        *[("none", 1, 1, 6, None), ("none", 2, 0, 8, 0)],
    ]
    write(tables.open(), placed(*records), key=KEY)
    assert values(tables) == {"a": 3, "back": 4, "equal": 1, "none": 2}


def test_random_records_of_several_partitions_end_as_a_dictionary_does(delta: Tables) -> None:
    choose = random.Random(11)
    records = [
        (f"k{choose.randrange(60)}", choose.choice([None, *range(6)]), choose.randrange(3), at, choose.randrange(50))
        for at in range(400)
    ]
    latest: dict[tuple[str, int], tuple[int, int, int | None]] = {}
    for key, value, partition, _, time in records:  # in the order of offsets
        latest[key, partition] = (time, partition, value)
    expected = dict[str, tuple[int, int, int | None]]()
    for (key, _), candidate in latest.items():
        expected[key] = max(expected.get(key, candidate), candidate, key=lambda each: each[:2])
    choose.shuffle(records)
    write(delta.open(), placed(*records), key=KEY)
    assert values(delta) == {key: value for key, (_, _, value) in expected.items() if value is not None}


def test_a_later_batch_replaces_rows_of_other_partitions(tables: Tables) -> None:
    """As docs/table-changes.md says: only rows of one commit are compared by their timestamps."""
    table = tables.open()
    write(table, placed(("a", 1, 0, 0, 900)), key=KEY)
    write(table, placed(("a", 2, 1, 0, 100)), key=KEY)
    assert values(tables) == {"a": 2}


def test_a_key_of_several_columns(tables: Tables) -> None:
    table = tables.open()
    write(table, kafka_rows(0, 6, key=2), key=("key", "topic"))
    write(table, kafka_rows(6, 9, key=2), key=("key", "topic"))
    assert values(tables) == {"k0": 8, "k1": 7}


def test_another_writer_between_reading_and_committing_a_merge(tables: Tables) -> None:
    table, other = tables.open(), tables.open()
    write(table, rows(("a", 1, 0), ("b", 1, 1)), key=KEY)
    really: Any = table.merge
    late = [True]

    def merge(*arguments: Any) -> None:
        if late:
            late.pop()
            write(other, rows(("b", 7, 2)), key=KEY)
        really(*arguments)

    table.merge = merge  # type: ignore[method-assign]
    write(table, rows(("a", 3, 3)), key=KEY)
    assert values(tables) == {"a": 3, "b": 7}
    table.delete_orphans(table.find_orphans(0))  # what PyIceberg and delta-rs leave of the commit that came too late
    assert values(tables) == {"a": 3, "b": 7}


def test_errors_name_the_key(tables: Tables) -> None:
    table = tables.open()
    with pytest.raises(OptionError, match="Option 'mergeKey': unknown column 'id'; available: key, value"):
        write(table, rows(("a", 1, 0)), key=("id",))
    with pytest.raises(TableError, match="column 'value' of mergeKey is null in a row; filter these rows"):
        write(table, rows(("a", None, 0)), key=("value",))
    no_order = pa.table({"key": ["a", "a"], "value": [1, 2]})
    with pytest.raises(TableError, match=r"several rows have the key {'key': 'a'}, and no column 'offset' says which"):
        write(tables.open("unordered"), no_order, key=KEY)


def test_a_merge_that_conflicts_with_itself_keeps_its_files(iceberg: Tables) -> None:
    """A proxy sends the request of a commit twice: the second response says that another writer was first."""
    write(iceberg.open(), kafka_rows(0, 10, key=3), key=KEY)
    table: Any = iceberg.open()
    really = table._commit

    def send_twice(*arguments: Any) -> None:
        really(*arguments)
        raise CommitConflict("the table has been updated by another process")

    table._commit = send_twice
    assert write(table, kafka_rows(10, 12, key=3), key=KEY)
    assert sorted(iceberg.read().column("offset").to_pylist()) == [9, 10, 11]


def merge_key(tables: Tables) -> tuple[str, ...] | None:
    table = tables.open()
    table.refresh()
    return table.state().merge_key


def test_a_table_remembers_its_key_and_refuses_second_rows(tables: Tables) -> None:
    """For Delta also after the commits were deleted from the log, when only transaction identifiers are left."""
    table = tables.open()
    write(table, rows(("a", 1, 0), ("b", 1, 1)), key=("key", "topic"))
    assert merge_key(tables) == ("key", "topic")
    if tables.format == "delta":
        clean_log(str(tables.folder / "orders"))
        assert merge_key(tables) == ("key", "topic")
        assert tables.open().state().batches == {}
    with pytest.raises(TableError, match=r"latest row by key \(key, topic\), and appended rows would be second ones"):
        write(table, rows(("a", 2, 2)))
    assert values(tables) == {"a": 1, "b": 1}
    assert table.find_orphans(0) == []
    write(table, rows(("a", 3, 3)), overwrite=True)
    assert merge_key(tables) == ()
    write(table, rows(("b", 4, 4)))
    if tables.format == "delta":
        clean_log(str(tables.folder / "orders"))
        assert merge_key(tables) == ()
    with pytest.raises(
        TableError, match=r"rows were appended to it without a key, .* which merging \(key\) would not rem"
    ):
        write(table, rows(("b", 5, 5)), key=KEY)
    assert values(tables) == {"a": 3, "b": 4}
    write(table, rows(), overwrite=True)
    assert merge_key(tables) is None
    write(table, rows(("b", 5, 5)), key=KEY)
    if tables.format == "delta":
        clean_log(str(tables.folder / "orders"))
    assert merge_key(tables) == KEY


@pytest.mark.parametrize("other", [("key",), ("topic",), ("key", "topic", "partition")])
def test_a_table_is_merged_by_the_columns_that_it_remembers(
    tables: Tables, tmp_path: Path, other: tuple[str, ...]
) -> None:
    """In any order: the same rows have the same key."""
    table = tables.open()
    write(table, rows(("a", 1, 0)), key=("key", "topic"))
    with pytest.raises(
        TableError, match=r"latest row by key \(key, topic\), and merging by \(.*\) would leave other rows"
    ):
        write(table, rows(("a", 2, 1)), key=other)
    assert table.find_orphans(0) == []
    log = LogDirectory(write_values(tmp_path / "logs", [b"value"] * 30))["avro", 0]
    with pytest.raises(TableError, match="would leave other rows of a key; merge by the same columns"):
        missing_offsets(table, log, "read_committed", merge_key=other)
    write(table, rows(("a", 3, 2)), key=("topic", "key"))
    assert values(tables) == {"a": 3}


def test_a_commit_without_rows_does_not_decide_whether_a_table_is_merged(tables: Tables) -> None:
    """Micro-batches of nothing but rows that the table has; logs of nothing but markers."""
    table = tables.open()
    write(table, rows(), spans={("t", 0): ((0, 2),)}, mark=Mark(query="q", batch=0), key=KEY)
    assert merge_key(tables) is None
    write(table, rows(("a", 1, 2)), mark=Mark(query="q", batch=1), key=KEY)
    write(table, rows(), spans={("t", 0): ((3, 5),)}, mark=Mark(query="q", batch=2), key=KEY)
    write(table, rows(), spans={("t", 0): ((5, 6),)})
    assert merge_key(tables) == KEY
    assert values(tables) == {"a": 1}


@pytest.mark.parametrize("start", [9, 10, 11])
def test_rows_before_the_end_of_a_table_are_not_merged(tables: Tables, start: int) -> None:
    """Also of the same query, and into a hole."""
    table = tables.open()
    write(table, rows(("a", 1, 0)), key=KEY)
    write(table, rows(("a", None, 9)), key=KEY)

    def merge(start: int) -> None:
        added = rows(("a", 5, start))
        plan = table.prepare(added.schema, Layout(), key=KEY)
        spans: Spans = {("t", 0): ((start, start + 1),)}
        files = write_files(added.to_batches(), plan).files
        table.commit(files, Change(id=uuid.uuid4().hex, spans=spans, merged=spans), plan, key=KEY)

    if start < 10:
        for at in (start, 4):
            with pytest.raises(
                TableError, match=f"of t-0 begin at offset {at}, before the table's offset 10, and would"
            ):
                merge(at)
        assert tables.read().num_rows == 0
    else:
        merge(start)
        assert values(tables) == {"a": 5}
    assert table.find_orphans(0) == []


def test_logs_are_not_appended_to_a_merged_table_and_its_holes_stay(
    tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_values(tmp_path / "logs", [b"value"] * 30)
    log = LogDirectory(source)["avro", 0]
    whole = Tables(tables.format, tmp_path / "whole")
    whole.folder.mkdir()
    list(append_logs(whole.open(), [log], layout=Layout()))
    merged = whole.read().sort_by("offset")
    table = tables.open()
    for start in (0, 20):
        write(table, merged.slice(start, 5), key=("offset",))
    where = arguments(tables)
    for more in ((), ("--fill",)):
        assert run(["lake", "append", str(source), *where, *more]) != 0
        assert "merge them by the same columns (--merge-key, merge_key, option mergeKey)" in capsys.readouterr().err
    assert run(["lake", "offsets", *where]) == 1
    printed = capsys.readouterr().err
    assert "the table lacks offsets 5 to 19; rows of a hole would replace later ones by key; write" in printed
    assert "--fill" not in printed
    table.refresh()
    with pytest.raises(
        TableError, match="lacks offsets 5 to 19; rows of a hole would replace later ones by key; write"
    ):
        missing_offsets(table, log, "read_committed", fill=True, merge_key=("offset",))
    (found,) = missing_offsets(table, log, "read_committed", merge_key=("offset",))
    assert (found.start, found.end) == (25, 30)
    assert found.problem is not None
    assert "write the table again into a new one" in found.problem


def test_a_null_list_of_structs_stays_null_when_its_file_is_rewritten(tables: Tables) -> None:
    """Headers are one. PyIceberg reads it as an empty list."""
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    lists = [None, [], [{"key": "x", "value": None}]]
    table = tables.open()
    write(table, pa.table({"id": [1, 2, 3], "headers": pa.array(lists, kind)}), key=("id",))
    write(table, pa.table({"id": [4], "headers": pa.array([None], kind)}), key=("id",))
    write(table, pa.table({"id": [3], "headers": pa.array(lists[2:], kind)}), key=("id",))
    table.refresh()
    rows = [row for file in table.live_files() for batch in table.read_live([file]) for row in batch.to_pylist()]
    assert {row["id"]: row["headers"] for row in rows} == dict(enumerate([*lists, None], 1))
