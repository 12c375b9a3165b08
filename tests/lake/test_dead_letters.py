"""Dead letters: records that cannot be decoded or stored, in a second table, once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.cli.main import run
from kwire.errors import OptionError, TableError
from kwire.lake import (
    Change,
    Layout,
    Mark,
    RowWriter,
    TaskFiles,
    commit_dead_letters,
    prepare_dead_letters,
    unwrapped_schema,
)
from kwire.lake.data_files import write_all
from kwire.lake.dead_letters import DeadLetterPlan
from kwire.lake.letter_rows import schema_id_of
from kwire.schemas import Registry, encode
from tests.lake.avro_values import registry as registry
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables
from tests.sampling import mostly_slow
from tests.waiting import HANG_S

ROOT = Path(__file__).parents[2]


def arguments(tables: Tables, name: str = "orders", dead: str = "dead") -> list[str]:
    if tables.format == "delta":
        return [str(tables.folder / name), "--dead-letters", str(tables.folder / dead)]
    settings = tables.catalog(f"file://{tables.folder}")
    words = [word for each in settings.items() for word in ("--catalog", "=".join(each))]
    return [f"sales.{name}", "--dead-letters", f"sales.{dead}", *words]


def offsets(table: pa.Table) -> list[int]:
    return sorted(table["offset"].to_pylist())


def test_bad_values_go_to_a_second_table(
    tables: Tables, tmp_path: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    good = encode({"id": 7}, registry, schema=41)
    unknown, cut = b"\0\0\0\0\x63abc", encode({"id": 9, "note": "n"}, registry, schema=42)[:-1]
    values = [good, b"plain text", None, unknown, good, cut]
    source = str(write_values(tmp_path / "logs", values, [b"k%d" % n for n in range(6)]))
    words = ["lake", "append", source, *arguments(tables), "--registry", str(tmp_path / "schemas")]
    assert run([*words, "--format", "json"]) == 0
    printed = capsys.readouterr()
    (row,) = json.loads(printed.out)
    assert (row["rows"], row["dead_letters"], row["start_offset"], row["end_offset"]) == (3, 3, 0, 6)
    assert "avro-0: 3 dead letters" in printed.err
    assert run(words) == 0  # nothing is new

    rows = tables.read()
    assert rows.schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert offsets(rows) == [0, 2, 4]
    dead = tables.read("dead").sort_by("offset").to_pylist()
    assert [row["offset"] for row in dead] == [1, 3, 5]
    assert [(row["topic"], row["partition"], row["key"], row["value"], row["schema_id"]) for row in dead] == [
        ("avro", 0, b"k1", b"plain text", None),
        ("avro", 0, b"k3", unknown, 99),
        ("avro", 0, b"k5", cut, 42),
    ]
    assert {row["timestamp"].timestamp() for row in dead} == {0.001}
    assert [row["reason"].split(":")[0] for row in dead] == ["value"] * 3
    assert "schema id 99" in dead[1]["reason"]


def test_bad_values_only_are_not_read_again(tables: Tables, tmp_path: Path, registry: Registry) -> None:
    """The table has their offsets, also if it has no row."""
    source = str(write_values(tmp_path / "logs", [b"x", b"y"]))
    words = ["lake", "append", source, *arguments(tables), "--registry", str(tmp_path / "schemas")]
    assert run(words) == run(words) == 0
    assert (len(tables.read()), offsets(tables.read("dead"))) == (0, [0, 1])
    table = tables.open()
    table.refresh()
    assert table.state().spans == {("avro", 0): ((0, 2),)}


PROGRAM = """
import os, signal, sys
from kwire.cli.main import run
from kwire.lake.table import LakeTable

commits, stop = 0, int(sys.argv[1])
really = LakeTable.commit

def commit(self, *arguments, **more):
    global commits
    if commits == stop:
        os.kill(os.getpid(), signal.SIGKILL)
    commits += 1
    return really(self, *arguments, **more)

LakeTable.commit = commit
run(sys.argv[2:])
"""


@pytest.mark.parametrize("commits", mostly_slow([1, 0, 2, 3]))
def test_killed_between_the_commits(tables: Tables, tmp_path: Path, registry: Registry, commits: int) -> None:
    """Of the dead letters and of the rows; the log has grown when it is continued."""
    good = encode({"id": 7}, registry, schema=41)
    values = [good if n % 3 else b"bad %d" % n for n in range(20)]
    source = write_values(tmp_path / "logs", values[:10])
    words = ["lake", "append", str(source), *arguments(tables), "--registry", str(tmp_path / "schemas")]

    def append(stop: int) -> None:
        program = [sys.executable, "-c", PROGRAM, str(stop), *words]
        ended = subprocess.run(program, cwd=ROOT, capture_output=True, timeout=HANG_S, check=False)
        assert ended.returncode in (-signal.SIGKILL, 0), ended.stderr

    append(commits)
    write_values(source, values[10:], first=10)
    append(max(commits - 2, 0))
    assert run(words) == 0
    assert offsets(tables.read()) == [n for n in range(20) if n % 3]
    assert offsets(tables.read("dead")) == [n for n in range(20) if not n % 3]
    assert [row["value"] for row in tables.read("dead").sort_by("offset").to_pylist()] == values[::3]


WRAPPED = pa.struct([("value", pa.int64()), ("error", pa.string()), ("bytes", pa.binary())])
ROWS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.string()),
        ("value", WRAPPED),
    ]
)


def rows_at(*places: tuple[int, bool], key: str | None = "k") -> pa.RecordBatch:
    """Return rows at offsets, each dead or not."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "topic": "t",
                "partition": 0,
                "offset": offset,
                "key": key,
                "value": {"value": offset, "error": "bad" if is_dead else None, "bytes": b"%d" % offset},
            }
            for offset, is_dead in places
        ],
        schema=ROWS,
    )


class Writer:
    """Writes batches as a sink does. name: of the table of the rows."""

    def __init__(self, tables: Tables, name: str = "orders", key: tuple[str, ...] = ()) -> None:
        self.tables, self.name, self.key = tables, name, key

    def prepare(self) -> tuple[Any, DeadLetterPlan]:
        self.rows, self.dead = self.tables.open(self.name), self.tables.open("dead")
        plan = self.rows.prepare(unwrapped_schema(ROWS), Layout(), key=self.key)
        return plan, prepare_dead_letters(self.dead, self.rows, plan)

    def write(self, batch: pa.RecordBatch, mark: Mark | None, *, dies: bool = False) -> TaskFiles:
        """Write and commit a batch. dies: between the two commits."""
        plan, dead = self.prepare()
        found = write_all(RowWriter(plan, dead, mark=mark, key=self.key), [batch])
        change = Change(id=uuid.uuid4().hex, mark=mark, spans=found.spans)
        records = commit_dead_letters(self.dead, found.dead, change, self.rows.state(), dead)
        change = replace(change, records=records)
        if not dies:
            self.rows.commit(found.files, change, plan, key=self.key)
        return found


def mark(batch: int, query: str = "q") -> Mark:
    return Mark(query=query, batch=batch)


def test_a_micro_batch_that_runs_again(tables: Tables) -> None:
    writer = Writer(tables)
    writer.write(rows_at((0, False), (1, True)), mark(0))
    writer.write(rows_at((2, True), (3, False)), mark(1), dies=True)
    assert (offsets(tables.read()), offsets(tables.read("dead"))) == ([0], [1, 2])
    again = writer.write(rows_at((2, True), (3, False), (4, True)), mark(1))  # planned anew, with one row more
    assert again.dead_rows == {("t", 0): 2}
    writer.write(rows_at((5, True), (6, False)), mark(2))
    assert (offsets(tables.read()), offsets(tables.read("dead"))) == ([0, 3, 6], [1, 2, 4, 5])


def test_a_new_checkpoint_after_the_kill(tables: Tables) -> None:
    """Another query, from the offsets of the table, meets dead letters that the former one has written."""
    Writer(tables).write(rows_at((0, True), (1, False)), mark(0))
    Writer(tables).write(rows_at((2, True), (3, False)), mark(1), dies=True)
    Writer(tables).write(rows_at((2, True), (3, False), (4, True)), mark(0, "other"))
    assert (offsets(tables.read()), offsets(tables.read("dead"))) == ([1, 3], [0, 2, 4])


def test_a_hole_of_the_rows_is_a_hole_of_the_dead_letters(tables: Tables) -> None:
    """What fills it later brings its dead letters, though the query went on after it."""
    Writer(tables).write(rows_at((0, True), (1, False)), mark(0))
    Writer(tables).write(rows_at((10, False), (11, True)), mark(0, "other"))
    Writer(tables).write(rows_at((12, True), (13, False)), mark(1, "other"))
    Writer(tables).write(rows_at((2, True), (9, False)), None)
    assert (offsets(tables.read()), offsets(tables.read("dead"))) == ([1, 9, 10, 13], [0, 2, 11, 12])


def test_two_tables_share_dead_letters(tables: Tables) -> None:
    for name in ("orders", "others"):
        Writer(tables, name).write(rows_at((0, True), (1, False)), mark(0))
    dead = tables.read("dead")
    assert offsets(dead) == [0, 0]
    assert len(set(dead["table"].to_pylist())) == 2


def test_rows_without_a_merge_key_are_dead_letters(tables: Tables) -> None:
    writer = Writer(tables, key=("key",))
    writer.write(pa.concat_batches([rows_at((0, False)), rows_at((1, False), key=None)]), mark(0))
    assert offsets(tables.read()) == [0]
    (row,) = tables.read("dead").to_pylist()
    assert (row["offset"], row["value"], row["reason"]) == (1, b"1", "column 'key' of mergeKey is null")


def test_a_dead_letter_of_rows_without_bytes_has_no_value(delta: Tables) -> None:
    """Such as those that decode_arrow returns with their errors."""
    rows = rows_at((0, True), (1, False))
    place = rows.schema.get_field_index("value")
    without = pa.StructArray.from_arrays(rows.column(place).flatten()[:2], names=["value", "error"])
    Writer(delta).write(rows.set_column(place, "value", without), mark(0))
    (row,) = delta.read("dead").to_pylist()
    assert (row["offset"], row["value"], row["reason"]) == (0, None, "value: bad")


def test_values_that_the_table_cannot_store(delta: Tables) -> None:
    """Found among others by halves: one of many, the first, the last, all."""
    from deltalake import DeltaTable

    fields = [*unwrapped_schema(ROWS)][:-1]
    schema = pa.schema([*fields, pa.field("value", pa.int64(), nullable=False)])
    DeltaTable.create(str(delta.folder / "orders"), schema)
    writer = Writer(delta)
    rows = rows_at(*((offset, False) for offset in range(100))).to_pylist()
    for offset in (0, 41, 99):
        rows[offset]["value"]["value"] = None
    found = writer.write(pa.RecordBatch.from_pylist(rows, schema=ROWS), mark(0))
    assert found.spans == {("t", 0): ((0, 100),)}
    dead = delta.read("dead").sort_by("offset").to_pylist()
    assert [(row["offset"], row["value"]) for row in dead] == [(0, b"0"), (41, b"41"), (99, b"99")]
    assert "column 'value' is required" in dead[0]["reason"]
    assert len(delta.read()) == 97


def test_what_is_refused(tables: Tables, tmp_path: Path, registry: Registry) -> None:
    writer = Writer(tables)
    plan, _ = writer.prepare()
    with pytest.raises(OptionError, match="is the table of the rows; name another one"):
        prepare_dead_letters(tables.open("dead"), writer.rows, replace(plan, table_id=tables_id(tables, "dead")))
    tables.open("third").prepare(pa.schema([("amount", pa.int64())]), Layout())
    with pytest.raises(TableError, match="so it is no table of dead letters"):
        prepare_dead_letters(tables.open("third"), writer.rows, plan)
    with pytest.raises(OptionError, match="require the columns topic, partition, offset"):
        unwrapped_schema(pa.schema([("value", WRAPPED)]))
    source = str(write_values(tmp_path / "logs", [b"x"]))
    words = ["lake", "append", source, *arguments(tables, "o", "d"), "--registry", str(tmp_path / "schemas")]
    assert run([*words, "--mode", "permissive"]) == 2


def tables_id(tables: Tables, name: str) -> str:
    table = tables.open(name)
    table.refresh()
    assert table.id is not None
    return table.id


@pytest.mark.parametrize(
    ("value", "schema_id"),
    [("00 00000007", 7), ("00 00000000", 0), ("00 00000007 01", 7), ("00 000007", None), ("00 ffffffff", None)],
)
def test_the_schema_id_of_a_value(value: str, schema_id: int | None) -> None:
    """A record without fields has no bytes after it."""
    assert schema_id_of(bytes.fromhex(value)) == schema_id
