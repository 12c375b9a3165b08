"""Tables of dead letters that other programs drop or restore: each dead letter exists once after the next fill.

KWIRE_SCHEDULES=2000 sets how many schedules of each format run.
"""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import TableError
from kwire.lake import Change, LakeTable, Layout, Mark, RowOptions, TaskFiles, append_logs, hull_of, unwrapped_schema
from kwire.lake.append import ReadNotes, read_offsets
from kwire.lake.arrow_columns import offsets_of
from kwire.lake.row_target import RowTarget, Written
from kwire.lake.state import TableState
from kwire.lake.table import CommitConflict
from kwire.log import LogDirectory
from kwire.schemas import Registry, encode
from kwire.schemas.choice import SchemaChoice
from kwire.schemas.record_values import ValueDecoding
from tests.lake.avro_values import registry as registry
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables
from tests.lake.test_commits import clean_log
from tests.lake.test_dead_letters import ROWS, rows_at
from tests.lake.test_record_tables import Killed, drop
from tests.sampling import mostly_slow

KEY = ("avro", 0)
SCHEDULES = int(os.environ.get("KWIRE_SCHEDULES", "4"))
TABLES = ("orders", "dead")


class Topic:
    """A topic of numbers, some of them damaged, and a table with dead letters. merge_key: of the rows."""

    def __init__(self, tables: Tables, folder: Path, registry: Registry, merge_key: tuple[str, ...] = ()) -> None:
        self.tables, self.folder, self.registry, self.merge_key = tables, folder, registry, merge_key
        self.dead: list[bool] = []
        self.checkpoint = (0, 0)  # batch, offset
        self.planned: int | None = None  # end of the batch that runs

    def grow(self, *dead: bool) -> None:
        """Append records, each dead or not."""
        first = len(self.dead)
        values = [
            b"damaged" if each else encode({"id": first + n}, self.registry, schema=41) for n, each in enumerate(dead)
        ]
        write_values(self.folder, values, [b"%d" % (first + n) for n in range(len(dead))], first=first)
        self.dead += dead

    @property
    def log(self) -> Any:
        return LogDirectory(self.folder)[KEY]

    @property
    def options(self) -> RowOptions:
        decoding = ValueDecoding.resolve(
            SchemaChoice(registry=self.registry, mode="deadletter"), ["avro"], is_wrapped=True
        )
        return RowOptions(decoding=decoding, merge_key=self.merge_key)

    def append(self, *, fill: bool = False) -> list[Any]:
        """Append what is new, as `kwire lake append` does."""
        dead, logs = self.tables.open("dead"), [self.log]
        return list(
            append_logs(self.tables.open(), logs, layout=Layout(), rows=self.options, dead_letters=dead, fill=fill)
        )

    def batch(self, end: int, *, query: str = "q", between: Any = None) -> None:
        """Write a micro-batch up to an offset, and note it, as the sinks do. between: done before the commit."""
        number, start = self.checkpoint
        self.planned = self.planned or end
        options, mark = self.options, Mark(query=query, batch=number)
        target = options.target(self.tables.open(), Layout(), self.tables.open("dead"))
        plan: Any = target.prepare(options.table_schema(has_dead_letters=True))
        rows = list(read_offsets(self.log, (start, self.planned), options, ReadNotes()))
        if mark.is_done(plan.state.batches.get(query), "orders"):
            written: Written = TaskFiles(spans=hull_of(map(offsets_of, rows)))
        else:
            written = plan.write(rows, mark=mark)
        if between is not None:
            between()
        commit(target, plan, written, mark)
        self.checkpoint, self.planned = (number + 1, self.planned), None

    def check(self) -> None:
        """Check that each record is where it belongs, once."""
        for name, is_dead in zip(TABLES, (False, True), strict=True):
            found = sorted(self.tables.read(name)["offset"].to_pylist())
            assert found == [n for n, each in enumerate(self.dead) if each == is_dead], name
        assert state_of(self.tables).spans == {KEY: ((0, len(self.dead)),)}
        assert not state_of(self.tables).rows_only


def commit(target: RowTarget, plan: Any, written: Written, mark: Mark) -> None:
    merged = written.spans if target.key else {}
    spans = written.spans
    change = Change(id=uuid.uuid4().hex, mark=mark, spans=spans, known=plan.state.spans, merged=merged)
    target.commit([written], change, plan)


def state_of(tables: Tables, name: str = "orders") -> TableState:
    table = tables.open(name)
    table.refresh()
    return table.state()


def restore(tables: Tables, name: str, version: int) -> None:
    table: Any = tables.open(name)
    table.refresh()
    if tables.format == "delta":
        table.table.restore(version)
    else:
        table.table.manage_snapshots().set_current_snapshot(version).commit()


def versions(tables: Tables, name: str) -> list[int]:
    """Return the versions or snapshots that a table can be restored to, the first one with rows first."""
    table: Any = tables.open(name)
    table.refresh()
    if not table.exists:
        return []
    if tables.format == "delta":
        return list(range(1, table.table.version()))
    return [each.snapshot_id for each in table.table.snapshots()]


@pytest.fixture
def topic(tables: Tables, tmp_path: Path, registry: Registry) -> Topic:
    return Topic(tables, tmp_path / "logs", registry)


@pytest.mark.parametrize("is_dropped", [False, True])
def test_letters_that_are_gone_are_written_again(
    topic: Topic, caplog: pytest.LogCaptureFixture, *, is_dropped: bool
) -> None:
    """And no row is; a Delta table also after a clean-up of its log."""
    for _ in range(3):
        topic.grow(True, False, True)
        topic.append()
    tables = topic.tables
    if is_dropped:
        drop(tables, "dead")
    else:
        restore(tables, "dead", versions(tables, "dead")[0])
    if tables.format == "delta":
        clean_log(str(tables.folder / "orders"))
    topic.append()
    topic.check()
    what = "0 to 8" if is_dropped else "3 to 8"
    assert (
        f"it was dropped, or has gone back to an earlier version. Dead letters may be missing at offsets {what}"
        in caplog.text
    )
    caplog.clear()
    topic.grow(True)
    assert [(each.rows, each.dead_letters) for each in topic.append()] == [(0, 1)]
    assert "table of dead letters" not in caplog.text
    topic.check()


def test_rows_that_the_table_has_are_not_counted_again(topic: Topic) -> None:
    topic.grow(True, False, False, True)
    topic.append()
    drop(topic.tables, "dead")
    (done,) = topic.append()
    assert (done.start_offset, done.end_offset, done.rows, done.dead_letters) == (0, 4, 0, 2)


def test_a_stream_goes_on_and_leaves_a_hole(topic: Topic, caplog: pytest.LogCaptureFixture) -> None:
    """Its state survives a clean-up of a Delta table's log."""
    for end in (3, 6, 9):
        topic.grow(True, False, True)
        topic.batch(end)
    restore(topic.tables, "dead", versions(topic.tables, "dead")[0])
    topic.grow(True, False, True)
    topic.batch(12)
    assert "Dead letters may be missing at offsets 3 to 8 of avro-0" in caplog.text
    for is_cleaned in (False, True) if topic.tables.format == "delta" else (False,):
        if is_cleaned:
            clean_log(str(topic.tables.folder / "orders"))
        state = state_of(topic.tables)
        assert (state.spans, state.rows_only) == ({KEY: ((0, 3), (9, 12))}, {KEY: ((3, 9),)})
    (hole, _) = topic.append(fill=True)
    assert (hole.rows, hole.dead_letters) == (0, 4)
    topic.check()


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_batch_that_is_in_the_table_of_rows_only(topic: Topic, *, is_merged: bool) -> None:
    """The driver was killed before its checkpoint, and the letters are restored before it runs again."""
    topic.merge_key = ("key",) if is_merged else ()
    topic.grow(True, False, True, False)
    topic.batch(2)
    topic.batch(4)
    topic.checkpoint = (1, 2)
    restore(topic.tables, "dead", versions(topic.tables, "dead")[0])
    topic.batch(4)
    topic.grow(False, True)
    topic.batch(6)
    topic.append(fill=True)
    topic.check()


def test_another_query_writes_the_letters_again(topic: Topic) -> None:
    """A new checkpoint, from the offsets of the table."""
    topic.grow(True, False, True, False)
    topic.batch(2)
    topic.batch(4)
    restore(topic.tables, "dead", versions(topic.tables, "dead")[0])
    topic.append()  # of no new record; the letters are those of offset 2
    topic.check()
    drop(topic.tables, "dead")
    topic.checkpoint = (0, 0)
    topic.batch(4, query="other")
    topic.check()


def test_a_table_of_letters_that_goes_back_before_the_commit_is_an_error(topic: Topic) -> None:
    topic.grow(True, False, True)
    topic.batch(3)
    topic.grow(True, False, True)
    topic.batch(6)
    topic.grow(True)
    first = versions(topic.tables, "dead")[0]
    with pytest.raises(TableError, match="it has gone back to an earlier version while rows were written, without off"):
        topic.batch(7, between=lambda: restore(topic.tables, "dead", first))
    topic.batch(7)
    topic.append(fill=True)
    topic.check()


def test_a_table_of_rows_that_goes_back_before_the_commit_is_an_error(topic: Topic) -> None:
    """Its rows are not written again with the letters that it lacks, and are gone at the commit."""
    for end in (3, 6):
        topic.grow(True, False, True)
        topic.batch(end)
    first = versions(topic.tables, "orders")[0]
    drop(topic.tables, "dead")
    topic.checkpoint = (0, 0)
    with pytest.raises(TableError, match="it has gone back to an earlier version while rows were written, without off"):
        topic.batch(6, query="other", between=lambda: restore(topic.tables, "orders", first))
    topic.append()
    topic.check()


def test_a_slower_writer_does_not_bring_back_an_earlier_number() -> None:
    """It would hide that the other table has gone back to before the later commit."""
    state = TableState().after(Change(id="1", records={"T": 5})).after(Change(id="2", records={"T": 3}))
    assert state.records == {"T": 5}
    assert state.after(Change(id="3", records={"T": 3}, same_rows=True)).records == {"T": 3}


def test_letters_of_a_table_that_was_dropped_are_not_doubled(topic: Topic) -> None:
    """Its successor has another id. Letters of another topic of that name are others."""
    topic.grow(True, False, True, True)
    topic.append()
    drop(topic.tables, "orders")
    topic.grow(True)
    topic.append()
    topic.check()
    drop(topic.tables, "orders")
    write_values(topic.folder, [b"other", *[encode({"id": 1}, topic.registry, schema=41)] * 3], [b"0"] * 4)
    topic.append()
    found = [(row["offset"], row["value"]) for row in topic.tables.read("dead").to_pylist()]
    assert sorted(found) == [(0, b"damaged"), (0, b"other"), *((offset, b"damaged") for offset in (2, 3, 4))]


def test_letters_of_a_partitioned_table_are_compared(topic: Topic) -> None:
    """A table that was made before, as by another program."""
    from kwire.lake.letter_rows import dead_letter_schema

    topic.tables.open("dead").prepare(dead_letter_schema(), Layout(partition_by=("topic",)))
    topic.grow(True, False, True)
    topic.append()
    drop(topic.tables, "orders")
    topic.append()
    topic.check()


@pytest.mark.parametrize("seed", range(3))
def test_writers_of_two_topics_at_the_same_time(tables: Tables, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Two streams and a command take turns in preparing and committing; none takes another's letters for lost."""
    draw = random.Random(seed)
    places: list[tuple[str, int, bool]] = []
    waiting: dict[str | None, Any] = {}
    ends: dict[str | None, int] = {"q0": 0, "q1": 0, None: 0}
    for _ in range(40):
        query = draw.choice(list(ends))
        if query in waiting:
            waiting.pop(query)()
            continue
        is_dead = [draw.random() < 0.4 for _ in range(3)]
        rows = [
            {**row, "topic": str(query)}
            for row in rows_at(*((ends[query] + n, each) for n, each in enumerate(is_dead))).to_pylist()
        ]
        places += [(row["topic"], row["offset"], each) for row, each in zip(rows, is_dead, strict=True)]
        target = RowTarget(table=tables.open(), layout=Layout(), dead_letters=tables.open("dead"))
        plan: Any = target.prepare(unwrapped_schema(ROWS))
        mark = None if query is None else Mark(query=query, batch=ends[query])
        written = plan.write([pa.RecordBatch.from_pylist(rows, schema=ROWS)], mark=mark)
        known = {} if mark is None else plan.state.spans
        change = Change(id=uuid.uuid4().hex, mark=mark, spans=written.spans, known=known)
        waiting[query] = partial(target.commit, [written], change, plan)
        ends[query] += 3
    for each in waiting.values():
        each()
    for name, wanted in zip(TABLES, (False, True), strict=True):
        found = tables.read(name)
        rows = zip(found["topic"].to_pylist(), found["offset"].to_pylist(), strict=True)
        assert sorted(rows) == sorted((topic, offset) for topic, offset, is_dead in places if is_dead == wanted)
    assert not caplog.records
    assert not state_of(tables).holes


def kill_commits(monkeypatch: pytest.MonkeyPatch, format_class: Any, draw: random.Random) -> Iterator[None]:
    """Kill at random commits, before or after, or let them have no response."""
    left, when = [0], [""]

    def killing(really: Any) -> Any:
        def run(self: LakeTable, *given: Any) -> None:
            left[0] -= 1
            if left[0] or not when[0]:
                really(self, *given)
                return
            if when[0] != "before":
                really(self, *given)
            if when[0] == "unanswered":
                raise CommitConflict("a request that was sent twice conflicts with itself")
            raise Killed

        return run

    monkeypatch.setattr(format_class, "add", killing(format_class.add))
    monkeypatch.setattr(format_class, "merge", killing(format_class.merge))
    while True:
        left[0], when[0] = draw.randint(1, 3), draw.choice(["", "before", "before", "after", "after", "unanswered"])
        yield
        when[0] = ""
        yield


@pytest.mark.parametrize("seed", mostly_slow(list(range(SCHEDULES))))
def test_random_schedules_have_each_letter_once(topic: Topic, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A stream and commands, killed and run again, while other programs drop tables or restore any version."""
    draw = random.Random(seed)
    tables = topic.tables
    topic.merge_key = ("key",) if seed % 4 == 3 else ()
    kills = kill_commits(monkeypatch, type(tables.open()), draw)

    def disturb() -> None:
        name = "dead" if topic.merge_key or draw.random() < 0.7 else "orders"  # rows of a hole are not merged
        if (known := versions(tables, name)) and draw.random() < 0.7:
            restore(tables, name, draw.choice(known))
        elif (tables.folder / name).exists() or known:
            drop(tables, name)

    topic.grow(True)
    topic.append()
    topic.checkpoint = (0, 1)
    for _ in range(8):
        topic.grow(*(draw.random() < 0.4 for _ in range(draw.randint(1, 6))))
        next(kills)
        with suppress(Killed):
            if draw.random() < 0.6:
                with suppress(TableError):  # it went back or was dropped before the commit
                    topic.batch(len(topic.dead), between=disturb if draw.random() < 0.2 else None)
            elif topic.planned is None:
                topic.append(fill=draw.random() < 0.5)
                topic.checkpoint = (topic.checkpoint[0], len(topic.dead))  # a new one, at the table's offsets
        next(kills)
        if draw.random() < 0.4:
            disturb()
    topic.append(fill=True)
    topic.check()
