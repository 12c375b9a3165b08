"""Tables that lack offsets before their last ones: kept in the state, shown, and filled."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from kwire.cli.main import run
from kwire.errors import TableError
from kwire.lake import Change, KnownOffsets, Layout, Mark, append_logs
from kwire.lake.append import missing_offsets
from kwire.lake.offset_ranges import Ranges, Spans
from kwire.lake.state import MAX_HOLES, NO_QUERY, TableState
from kwire.log import LogDirectory
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables, kafka_rows, write
from tests.lake.test_append import arguments
from tests.lake.test_commits import clean_log

KEY = ("orders", 0)
LAYOUT = Layout()


def commit(state: TableState, query: str | None, batch: int, *ranges: tuple[int, int]) -> TableState:
    mark = None if query is None else Mark(query=query, batch=batch)
    return state.after(Change(id=uuid.uuid4().hex, mark=mark, spans={KEY: ranges}))


def spans_of(tables: Tables) -> Spans:
    table = tables.open()
    table.refresh()
    return table.state().spans


def test_batches_of_one_query_follow_each_other_and_its_first_does_not() -> None:
    """Offsets 98 and 99 are markers, of which a sink sees nothing."""
    state = commit(TableState(), "first", 0, (0, 98))
    state = commit(state, "first", 3, (100, 300))
    assert state.spans == {KEY: ((0, 300),)}
    assert state.holes == {}
    state = commit(state, "second", 0, (500, 600))
    assert state.spans == {KEY: ((0, 300), (500, 600))}
    assert state.holes == {KEY: ((300, 500),)}
    state = commit(state, "second", 1, (602, 610))
    assert state.spans == {KEY: ((0, 300), (500, 610))}
    state = commit(state, None, 0, (610, 611), (400, 450))
    assert state.holes == {KEY: ((300, 400), (450, 500))}
    state = commit(state, "first", 4, (301, 350))  # from its own checkpoint
    assert state.holes == {KEY: ((350, 400), (450, 500))}
    assert TableState.parse(state.render(), "t") == state


@pytest.mark.parametrize(("start", "hole"), [(299, ()), (300, ()), (301, ((300, 301),))])
def test_a_hole_begins_where_the_table_ends(start: int, hole: Ranges) -> None:
    state = commit(commit(TableState(), "first", 0, (0, 300)), "second", 0, (start, 400))
    assert state.holes == ({KEY: hole} if hole else {})


def test_a_query_may_repeat_its_own_offsets_but_not_those_of_others() -> None:
    """A join writes rows later than others; a resumed query meets what was appended meanwhile."""
    state = commit(TableState(), "first", 0, (0, 100))
    assert state.foreign("first") == {}
    assert state.foreign("second") == state.foreign(None) == {KEY: ((0, 100),)}
    appended = commit(state, None, 0, (100, 200))
    assert appended.writers == {KEY: NO_QUERY}
    assert appended.foreign("first") == {KEY: ((0, 200),)}
    skipping = commit(commit(TableState(), "second", 0, (500, 600)), "first", 0, (0, 450))
    assert skipping.foreign("first") == {KEY: ((0, 450), (500, 600))}, "the last offset is of another query"
    without_writers = TableState(spans=state.spans, batches=state.batches)  # Delta's checkpoints have none
    assert without_writers.foreign("first") == {}
    assert without_writers.foreign("second") == state.spans


def test_more_holes_than_a_table_keeps_are_refused_until_they_are_filled(tables: Tables, tmp_path: Path) -> None:
    """None is ever shown as present. Writes without an id to a topic with transactions leave one for each marker."""
    source = write_values(tmp_path / "logs", [b"value"] * 500, topic_id=uuid.uuid4())
    rows = kafka_rows(0, 1).set_column(2, "topic", [["avro"]]).select(["topic", "partition", "offset"])
    key = ("avro", 0)
    ranges = tuple((2 * number, 2 * number + 1) for number in range(MAX_HOLES))  # one hole less than is kept
    table = tables.open()
    write(table, rows, spans={key: ranges})
    write(table, rows, spans={key: ((400, 401),)})
    kept = (*ranges, (400, 401))
    assert spans_of(tables) == {key: kept}
    if tables.format == "delta":
        clean_log(str(tables.folder / "orders"))
        assert spans_of(tables) == {key: kept}
    for start in (300, 410):
        with pytest.raises(
            TableError, match=r"avro-0: the table would have 101 holes, of offsets that it lacks, and keeps"
        ):
            write(table, rows, spans={key: ((start, start + 1),)})
    assert [each for each in table.find_orphans(0) if each.path.endswith(".parquet")] == []
    write(table, rows, spans={key: ((401, 402),)})  # none more
    write(table, rows, spans={("avro", 1): ((5, 6), (8, 9))})
    assert spans_of(tables)[key] == (*ranges, (400, 402))
    done = list(append_logs(tables.open(), [LogDirectory(source)["avro", 0]], layout=LAYOUT, fill=True))
    assert {each.problem for each in done} == {None}
    assert spans_of(tables)[key] == ((0, 500),)
    write(table, rows, spans={key: ((510, 511),)})


def test_a_table_with_too_many_holes_may_get_fewer(tables: Tables) -> None:
    """As after a commit of two parts of a log."""
    ranges = tuple((2 * number, 2 * number + 1) for number in range(MAX_HOLES + 9))
    state = TableState(spans={KEY: ranges})
    table: Any = tables.open()
    write(table, kafka_rows(500, 501))
    table.refresh()
    assert table.state()
    table._state = table._state[0], state
    for start, is_refused in ((1, False), (400, True)):
        change = Change(id="x", spans={KEY: ((start, start + 1),)})
        if is_refused:
            with pytest.raises(TableError, match="would have 109 holes"):
                table._check([], change, table.prepare(kafka_rows(0, 1).schema, LAYOUT))
        else:
            table._check([], change, table.prepare(kafka_rows(0, 1).schema, LAYOUT))


def test_a_new_query_continues_at_the_last_offset() -> None:
    state = TableState(spans={("b", 10): ((0, 5),), ("b", 9): ((3, 7), (9, 12)), ("a", 0): ((1, 2),)})
    assert state.starting_offsets() == '{"a":{"0":2},"b":{"9":12,"10":5}}'


def test_holes_are_in_the_table_until_they_are_filled(tables: Tables) -> None:
    """For Delta also after the commits were deleted from the log, when only transaction identifiers are left."""

    def check(*expected: tuple[int, int]) -> None:
        assert spans_of(tables) == {KEY: expected}
        if tables.format == "delta":
            clean_log(str(tables.folder / "orders"))
            assert spans_of(tables) == {KEY: expected}

    table = tables.open()
    write(table, kafka_rows(5, 10), mark=Mark(query="a", batch=0))
    check((5, 10))
    write(table, kafka_rows(20, 30), mark=Mark(query="b", batch=0))
    check((5, 10), (20, 30))
    write(table, kafka_rows(40, 50), mark=Mark(query="c", batch=0))
    check((5, 10), (20, 30), (40, 50))
    write(table, kafka_rows(10, 20))
    check((5, 30), (40, 50))
    write(table, kafka_rows(50, 60), mark=Mark(query="c", batch=1))
    check((5, 30), (40, 60))
    write(table, kafka_rows(30, 40))
    check((5, 60))
    write(table, kafka_rows(0, 5))
    check((0, 60))
    write(table, kafka_rows(70, 80))
    check((0, 60), (70, 80))
    write(table, kafka_rows(3, 7), overwrite=True)
    check((3, 7))
    write(table, kafka_rows(0, 2), overwrite=True)
    check((0, 2))


def test_another_commit_of_the_same_offsets_meanwhile_is_refused(tables: Tables) -> None:
    """known: the offsets when rows were compared. What lies in a hole is new."""
    table = tables.open()
    write(table, kafka_rows(0, 10))
    write(table, kafka_rows(20, 30))
    known = spans_of(tables)
    write(table, kafka_rows(15, 20))

    def again(start: int, end: int) -> bool:
        plan = table.prepare(kafka_rows(0, 1).schema, LAYOUT)
        change = Change(id=uuid.uuid4().hex, spans={KEY: ((start, end),)}, known=known)
        return table.commit([], change, plan)

    with pytest.raises(TableError, match="another writer has appended orders-0 from offset 15 to 16; run again"):
        again(0, 16)
    assert again(0, 15)
    with pytest.raises(TableError, match="another writer has appended orders-0 from offset 10 to 20; run again"):
        again(5, 30)


def test_rows_are_compared_one_by_one() -> None:
    """Not by the first and last offset of a batch."""
    known: Spans = {KEY: ((0, 5), (8, 10)), ("other", 0): ((0, 100),)}

    def offsets(mode: Any, rows: Any) -> tuple[list[int], Spans]:
        compared = KnownOffsets(known=known, mode=mode, table="t")
        found = [offset for batch in compared.new_rows(rows) for offset in batch.column("offset").to_pylist()]
        return found, compared.skipped

    rows = kafka_rows(3, 12)
    assert offsets("skip", rows.to_batches()) == ([5, 6, 7, 10, 11], {KEY: ((3, 10),)})
    assert offsets("append", rows.to_batches()) == (list(range(3, 12)), {})
    gap = rows.take([2, 3, 4, 7, 8])  # 5, 6, 7, 10, 11, around what the table has
    for mode in ("fail", "skip"):
        assert offsets(mode, gap.to_batches()) == ([5, 6, 7, 10, 11], {})
        assert offsets(mode, kafka_rows(0, 5, partition=1).to_batches()) == ([0, 1, 2, 3, 4], {})
        assert offsets(mode, rows.drop_columns(["topic"]).to_batches())[0] == list(range(3, 12))
    as_dictionary = rows.set_column(2, "topic", rows.column("topic").dictionary_encode())
    assert offsets("skip", as_dictionary.to_batches())[0] == [5, 6, 7, 10, 11]
    with pytest.raises(TableError, match=r"the rows have offsets 3 to 9 of orders-0, and the table has 0 to 4, 8 to 9"):
        offsets("fail", rows.to_batches())
    with pytest.raises(TableError, match=r"the rows have offsets 4 of orders-0"):
        offsets("fail", kafka_rows(4, 6).to_batches())
    assert offsets("fail", kafka_rows(5, 8).to_batches())[0] == [5, 6, 7]


@pytest.mark.parametrize("is_merged", [False, True])
def test_the_error_names_only_settings_that_help(is_merged: bool) -> None:
    """Rows before the table's end are not merged, whatever onKnownOffsets says."""
    compared = KnownOffsets(known={KEY: ((0, 5),)}, mode="fail", table="t", is_merged=is_merged)
    with pytest.raises(TableError, match="set option onKnownOffsets to skip these rows") as caught:
        list(compared.new_rows(kafka_rows(0, 3).to_batches()))
    assert ("append" in str(caught.value)) is not is_merged


def test_the_command_shows_holes_and_fills_them(
    tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_values(tmp_path / "logs", [b"value"] * 100, topic_id=uuid.uuid4())
    log = LogDirectory(source)["avro", 0]
    key = ("avro", 0)
    (whole,) = append_logs(tables.open(), [log], layout=LAYOUT, fill=True)
    assert (whole.rows, whole.problem) == (100, None)
    rows = tables.read().sort_by("offset")
    other = Tables(tables.format, tmp_path / "other")
    other.folder.mkdir()
    for start, end in ((10, 30), (50, 60), (90, 95)):  # as three queries have written them
        write(other.open(), rows.slice(start, end - start), mark=Mark(query=f"from {start}", batch=0))
    where = arguments(other)

    assert run(["lake", "offsets", *where, "--format", "json"]) == 1
    printed = capsys.readouterr()
    assert [(row["start_offset"], row["end_offset"]) for row in json.loads(printed.out)] == [
        (10, 30),
        (50, 60),
        (90, 95),
    ]
    assert "avro-0: the table lacks offsets 30 to 49, 60 to 89; append them with kwire lake append" in printed.err
    assert run(["lake", "offsets", *where, "--format", "spark"]) == 1
    assert json.loads(capsys.readouterr().out) == {"avro": {"0": 95}}

    assert run(["lake", "append", str(source), *where, "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert "the table lacks offsets 30 to 49, 60 to 89; append them with --fill" in printed.err
    assert spans_of(other) == {key: ((10, 30), (50, 60), (90, 100))}
    assert run(["lake", "append", str(source), *where, "--fill", "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert [(row["start_offset"], row["end_offset"], row["rows"]) for row in json.loads(printed.out)] == [
        (0, 10, 10),
        (30, 50, 20),
        (60, 90, 30),
        (100, 100, 0),
    ]
    assert printed.err == ""
    assert spans_of(other) == {key: ((0, 100),)}
    assert sorted(other.read().column("offset").to_pylist()) == list(range(100))
    assert run(["lake", "offsets", *where]) == 0


@pytest.mark.parametrize(("log_start", "found"), [(0, [(0, 10)]), (9, [(9, 10)]), (10, []), (11, [])])
def test_what_lies_before_the_first_offset_is_filled(
    tables: Tables, tmp_path: Path, log_start: int, found: list[tuple[int, int]]
) -> None:
    """As of a query that began at the latest offsets, or after retention had deleted what a copy still has."""
    write_values(tmp_path / "logs", [b"value"] * (30 - log_start), first=log_start)
    log = LogDirectory(tmp_path / "logs")["avro", 0]
    table = tables.open()
    rows = kafka_rows(10, 30).set_column(2, "topic", [["avro"] * 20]).select(["topic", "partition", "offset"])
    write(table, rows)
    for fill in (False, True):
        done = list(append_logs(tables.open(), [log], layout=LAYOUT, fill=fill))
        expected = found if fill else []
        assert [(each.start_offset, each.end_offset) for each in done] == [*expected, (30, 30)]
        assert [each.rows for each in done] == [*(end - start for start, end in expected), 0]
        assert {each.problem for each in done} == {None}
    assert spans_of(tables) == {("avro", 0): ((min(log_start, 10), 30),)}
    assert sorted(tables.read().column("offset").to_pylist()) == list(range(min(log_start, 10), 30))


def test_what_lies_before_the_first_offset_is_not_merged(tables: Tables, tmp_path: Path) -> None:
    log = LogDirectory(write_values(tmp_path / "logs", [b"value"] * 30, first=5))["avro", 0]
    table = tables.open()
    rows = kafka_rows(10, 30).set_column(2, "topic", [["avro"] * 20])
    write(table, rows, key=("key",))
    table.refresh()
    (found,) = missing_offsets(table, log, "read_committed", merge_key=("key",))
    assert (found.start, found.end, found.problem) == (30, 35, None)
    with pytest.raises(TableError, match="avro-0: the table lacks offsets 5 to 9; rows of a hole would replace later"):
        missing_offsets(table, log, "read_committed", fill=True, merge_key=("key",))


def test_a_hole_is_filled_in_several_commits_and_what_retention_deleted_stays(tables: Tables, tmp_path: Path) -> None:
    source = write_values(tmp_path / "logs", [b"value"] * 20, first=40)
    log = LogDirectory(source)["avro", 0]
    table = tables.open()
    rows = kafka_rows(0, 10).set_column(2, "topic", [["avro"] * 10]).select(["topic", "partition", "offset"])
    write(table, rows)
    for start, end in ((20, 30), (48, 50), (58, 60)):
        write(table, rows.slice(0, 1), spans={("avro", 0): ((start, end),)})
    done = list(append_logs(tables.open(), [log], layout=LAYOUT, fill=True, commit_bytes=1))
    lost = "retention deleted offsets {} to {} before they were appended"
    assert [(each.start_offset, each.end_offset, each.rows, each.problem) for each in done] == [
        (20, 20, 0, lost.format(10, 19)),
        (40, 48, 8, lost.format(30, 39)),
        (50, 58, 8, None),
        (60, 60, 0, None),
    ]
    assert spans_of(tables) == {("avro", 0): ((0, 10), (20, 30), (40, 60))}
