"""A table for each record type of a mixed topic: each record in the table of its type, once, whatever is killed.

KWIRE_SCHEDULES=2000 sets how many schedules of each format run.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kwire.cli.main import run
from kwire.errors import DecodeError, InvalidSchema, OptionError, RegistryError, TableError
from kwire.lake import LakeTable, Layout, Mark, RowOptions, append_logs, record_files
from kwire.lake.record_files import RecordPlan, RecordWriter
from kwire.lake.record_tables import MAX_SUFFIX, RecordTables, suffix_of
from kwire.lake.state import TableState
from kwire.lake.table import CommitConflict
from kwire.log import LogDirectory
from kwire.schemas import Registry
from kwire.schemas.choice import SchemaChoice
from kwire.schemas.record_types import RecordTypes
from tests.lake.avro_values import write_values
from tests.lake.mixed_values import (
    CREATED,
    MOVED,
    PAID,
    PLACED,
    TYPES,
    add_schema,
    mixed_registry,
    record,
    value_of,
)
from tests.lake.tables import Tables
from tests.lake.test_commits import clean_log
from tests.lake.test_dead_letters import PROGRAM
from tests.sampling import mostly_slow
from tests.waiting import HANG_S

ROOT = Path(__file__).parents[2]
KEY = ("avro", 0)
SCHEDULES = int(os.environ.get("KWIRE_SCHEDULES", "3"))


@pytest.fixture(params=mostly_slow(["delta", "iceberg"]))
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    return Tables(request.param, tmp_path)


def arguments(tables: Tables, name: str = "events") -> list[str]:
    words = ["--registry", str(tables.folder / "schemas"), "--table-by", "record"]
    if tables.format == "delta":
        return [str(tables.folder / name), *words]
    settings = tables.catalog(f"file://{tables.folder}")
    return [f"sales.{name}", *words, *(word for each in settings.items() for word in ("--catalog", "=".join(each)))]


def name_of(kind: str) -> str:
    return f"events_{suffix_of(kind)}"


def offsets(tables: Tables, kind: str) -> list[int]:
    return sorted(tables.read(name_of(kind))["offset"].to_pylist())


def exists(tables: Tables, name: str) -> bool:
    table = tables.open(name)
    table.refresh()
    return table.exists


def expected(kinds: list[str]) -> dict[str, list[int]]:
    return {kind: [n for n, each in enumerate(kinds) if each == kind] for kind in set(kinds)}


def record_tables(tables: Tables, registry: Registry, *, subject: str | None = None, **more: Any) -> RecordTables:
    """Return tables, for use in this process."""
    name = str(tables.folder / "events") if tables.format == "delta" else "sales.events"
    types = RecordTypes.of(SchemaChoice(registry=registry, subject=subject))
    return RecordTables(name=name, open=partial(open_last, tables), types=types, layout=Layout(), **more)


def open_last(tables: Tables, name: str) -> LakeTable:
    return tables.open(re.split(r"[./](?=events)", name)[-1])


def append(tables: Tables, source: Path, records: RecordTables, *, fill: bool = False) -> list[Any]:
    logs = [LogDirectory(source)[KEY]]
    dead = tables.open("dead") if records.has_dead_letters else None
    rows = RowOptions(records=records)
    return list(append_logs(tables.open("events"), logs, layout=Layout(), rows=rows, dead_letters=dead, fill=fill))


def test_each_record_type_has_a_table(tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    kinds = [CREATED, PAID, CREATED, PLACED, MOVED, PAID, CREATED]
    source = write_values(tmp_path / "logs", [value_of(registry, kind, n) for n, kind in enumerate(kinds)])
    words = ["lake", "append", str(source), *arguments(tables)]
    assert run([*words, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["rows"], row["start_offset"], row["end_offset"]) == (7, 0, 7)
    for kind, places in expected(kinds).items():
        rows = tables.read(name_of(kind)).sort_by("offset").to_pylist()
        assert [row["offset"] for row in rows] == [row["value"]["id"] for row in rows] == places
    assert {field.name for field in tables.read(name_of(PAID)).schema.field("value").type} == {"id", "by"}
    index = {row["record"]: row for row in tables.read("events").to_pylist()}
    assert set(index) == set(TYPES)
    assert index[CREATED]["table"].endswith("events_com__example__OrderCreated")
    assert index[MOVED]["table"].endswith("events_Item_x0020_moved")
    assert index[PAID]["subject"] == f"avro-{PAID}"
    assert run([*words, "--format", "json"]) == 0  # nothing is new
    assert json.loads(capsys.readouterr().out)[0]["rows"] == 0


def test_a_dry_run_names_the_tables_and_writes_nothing(
    delta: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, n) for n in range(3)])
    words = ["lake", "append", str(source), *arguments(delta)]
    assert run(words) == 0
    write_values(source, [value_of(registry, kind, 0) for kind in (CREATED, PAID, CREATED)], first=3)
    capsys.readouterr()
    assert run([*words, "--dry-run", "--format", "json"]) == 0
    path = str(tmp_path / "events")
    assert json.loads(capsys.readouterr().out) == [
        {"record": CREATED, "table": f"{path}_com__example__OrderCreated", "rows": 2, "is_new": True},
        {"record": PAID, "table": f"{path}_com__example__Paid", "rows": 1, "is_new": False},
    ]
    assert not exists(delta, name_of(CREATED))
    assert offsets(delta, PAID) == [0, 1, 2]
    assert run([*words, "--dry-run", "--max-tables", "1"]) == 1
    assert "would be number 2, and the limit is 1 tables" in capsys.readouterr().err
    for wrong in (["--offsets", "0..1"], ["--replace"], ["--metrics-file", str(tmp_path / "metrics")]):
        assert run([*words, "--dry-run", *wrong]) == 2
        assert f"--dry-run and {wrong[0]} exclude each other" in capsys.readouterr().err
    write_values(source, [b"text"], first=6)
    assert run([*words, "--dry-run"]) == 1
    assert "avro-0, offset 6: no schema id" in capsys.readouterr().err
    plain = ["lake", "append", str(source), str(tmp_path / "plain"), "--dry-run"]
    assert run([*plain, "--format", "json"]) == 0
    planned = {"topic": "avro", "partition": 0, "start_offset": 0, "end_offset": 7, "problem": None}
    assert json.loads(capsys.readouterr().out) == [planned]
    assert not (tmp_path / "plain").exists()


def test_new_types_and_columns_appear(delta: Tables, tmp_path: Path) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, n) for n in range(3)])
    words = ["lake", "append", str(source), *arguments(delta)]
    assert run(words) == 0
    assert not exists(delta, name_of(CREATED))  # its schema is registered, and it has no record

    fields = ("id", "int"), ("by", ["null", "string"]), ("amount", ["null", "int"])
    add_schema(tmp_path / "schemas", f"avro-{PAID}", 2, 52, record(PAID, *fields))
    registry = Registry(tmp_path / "schemas")
    more = [value_of(registry, CREATED, 3), value_of(registry, PAID, 4, 52), value_of(registry, PAID, 5)]
    write_values(source, more, first=3)
    assert run(words) == 0
    assert (offsets(delta, PAID), offsets(delta, CREATED)) == ([0, 1, 2, 4, 5], [3])
    assert {field.name for field in delta.read(name_of(PAID)).schema.field("value").type} == {"id", "by", "amount"}
    table = delta.open(name_of(CREATED))
    table.refresh()
    assert table.state().spans == {KEY: ((0, 6),)}  # it lacks nothing: there was no record of its type before


@pytest.mark.parametrize(
    ("subject", "name"), mostly_slow([("{topic}-value", "avro-value"), ("{record}", "{record}"), ("events", "events")])
)
def test_subjects_of_other_naming_strategies(delta: Tables, tmp_path: Path, subject: str, name: str) -> None:
    """With TopicNameStrategy, one subject has versions of several types."""
    (tmp_path / "schemas").mkdir()
    for version, kind in enumerate([PAID, CREATED], 1):
        add_schema(
            tmp_path / "schemas",
            name.replace("{record}", kind),
            1 if "{record}" in name else version,
            {PAID: 42, CREATED: 41}[kind],
            record(kind, ("id", "int")),
        )
    registry = Registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, kind, 7) for kind in (PAID, CREATED)])
    append(delta, source, record_tables(delta, registry, subject=subject))
    assert (offsets(delta, PAID), offsets(delta, CREATED)) == ([0], [1])


def test_a_message_of_a_file_is_chosen_by_its_full_name(delta: Tables, tmp_path: Path) -> None:
    """`Item` is also the short name of a message inside another one."""
    (tmp_path / "schemas").mkdir()
    nested = "message Order { message Item { string sku = 1; } Item item = 2; }"
    proto = f'syntax = "proto3"; {nested} message Item {{ int32 id = 1; }}'
    add_schema(tmp_path / "schemas", "avro-value", 1, 43, proto, "PROTOBUF")
    source = write_values(tmp_path / "logs", [b"\0\0\0\0\x2b\x02\x02\x08\x05", b"\0\0\0\0\x2b\0\x12\x03\x0a\x01s"])
    append(delta, source, record_tables(delta, Registry(tmp_path / "schemas"), subject="{topic}-value"))
    assert delta.read("events_Item")["value"].to_pylist() == [{"id": 5}]
    assert delta.read("events_Order")["value"].to_pylist() == [{"item": {"sku": "s"}}]


@pytest.mark.parametrize("is_referenced", mostly_slow([True, False]))
def test_branches_of_a_union_of_records(delta: Tables, tmp_path: Path, *, is_referenced: bool) -> None:
    """One subject, as Confluent advises for several types of Avro; the number of the branch is before each value."""
    folder = tmp_path / "schemas"
    folder.mkdir()
    kinds = [f"com.example.Event{number}" for number in range(70)]
    schemas = [record(kind, ("id", "int"), ("more", ["null", "int"])) for kind in kinds]
    if is_referenced:
        references = []
        for number, (kind, schema) in enumerate(zip(kinds, schemas, strict=True)):
            add_schema(folder, kind, 1, 100 + number, schema)
            references.append({"name": kind, "subject": kind, "version": 1})
        add_schema(folder, "avro-value", 1, 5, kinds, references=references)
    else:
        add_schema(folder, "avro-value", 1, 5, schemas)
    prefix, body = b"\0\0\0\0\5", b"\x0e\0"
    values = [prefix + each + body for each in (b"\0", b"\2", b"\0", b"\x8a\1")]
    source = write_values(tmp_path / "logs", values)
    records = record_tables(delta, Registry(folder), subject="{topic}-value")
    append(delta, source, records)
    assert [offsets(delta, kinds[number]) for number in (0, 1, 69)] == [[0, 2], [1], [3]]
    assert delta.read(name_of(kinds[69]))["value"].to_pylist() == [{"id": 7, "more": None}]
    for bad in (b"", b"\1", b"\x8c\1", b"\x8a", b"\x8a\x81\1"):
        write_values(source, [prefix + bad], first=4)
        with pytest.raises(TableError, match=r"avro-0, offset 4: schema id 5 .* begins with the number of none of 70"):
            append(delta, source, records)


BAD: list[tuple[bytes | None, str]] = [
    (None, "value is null, so it has no record type"),
    (b"\0\0\0\0\x63abc", "unknown schema id 99"),
    (b"text", "no schema id"),
    (b"\0\0\0\0\x32\x02", "schema id 50 of 'numbers' version 1: type int is not a record"),
    (b"\0\0\0\0\x33{}", "schema id 51 of 'untitled' version 1: has no title"),
]


@pytest.mark.parametrize(("value", "message"), mostly_slow(BAD, quick=2))
def test_a_value_without_a_type_is_an_error(delta: Tables, tmp_path: Path, value: bytes | None, message: str) -> None:
    mixed_registry(tmp_path / "schemas")
    add_schema(tmp_path / "schemas", "numbers", 1, 50, '"int"')
    add_schema(tmp_path / "schemas", "untitled", 1, 51, {"type": "object"}, "JSON")
    registry = Registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, 0), value])
    with pytest.raises(TableError, match=f"avro-0, offset 1: .*{re.escape(message)}.*name a table or topic for dead"):
        append(delta, source, record_tables(delta, registry))


def test_dead_letters_of_all_tables(tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    cut = value_of(registry, PAID, 7)[:-1]
    values = [value_of(registry, PAID, 0), None, cut, b"text", value_of(registry, CREATED, 4)]
    source = write_values(tmp_path / "logs", values)
    dead = str(tables.folder / "dead") if tables.format == "delta" else "sales.dead"
    words = ["lake", "append", str(source), *arguments(tables), "--dead-letters", dead]
    assert run([*words, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["rows"], row["dead_letters"]) == (2, 3)
    assert (offsets(tables, PAID), offsets(tables, CREATED)) == ([0], [4])
    assert tables.read(name_of(PAID)).schema.field("value").type.num_fields == 2
    letters = {row["offset"]: row for row in tables.read("dead").to_pylist()}
    assert [letters[n]["value"] for n in sorted(letters)] == [None, cut, b"text"]
    assert [letters[n]["table"].rpartition("events")[2] for n in sorted(letters)] == ["", "_com__example__Paid", ""]
    assert run(words) == 0
    assert len(tables.read("dead")) == 3


def test_a_type_without_fields_has_a_table_without_values(tables: Tables, tmp_path: Path) -> None:
    """Such as an event that says all by its name. A field that is added later is a new column."""
    mixed_registry(tmp_path / "schemas")
    empty = {"type": "record", "name": "com.example.Empty", "fields": []}
    fields = [{"name": "done", "type": "null"}, {"name": "empty", "type": empty}]
    cancelled = {"type": "record", "name": "com.example.Cancelled", "fields": fields}
    add_schema(tmp_path / "schemas", "avro-com.example.Cancelled", 1, 60, cancelled)
    registry = Registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, 0), b"\0\0\0\0\x3c"])
    append(tables, source, record_tables(tables, registry))
    assert offsets(tables, "com.example.Cancelled") == [1]
    assert "value" not in tables.read(name_of("com.example.Cancelled")).schema.names
    cancelled = record("com.example.Cancelled", ("by", ["null", "string"]))
    add_schema(tmp_path / "schemas", "avro-com.example.Cancelled", 2, 61, cancelled)
    registry = Registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [b"\0\0\0\0\x3d\x02\x02a", b"\0\0\0\0\x3c"], first=2)
    append(tables, source, record_tables(tables, registry))
    rows = tables.read(name_of("com.example.Cancelled")).sort_by("offset").to_pylist()
    assert [row["value"] for row in rows] == [None, {"by": "a"}, {"by": None}]


UNFIT = [
    ("L" * 181, ("id", "int"), b"\x02", "has a name of 181 characters as part of a table's, the limit is 180"),
    ("Node", ("next", ["null", "Node"]), b"\0", "record Node contains itself"),
]


@pytest.mark.parametrize(("name", "field", "body", "reason"), UNFIT)
def test_a_type_that_no_table_can_have(
    delta: Tables, tmp_path: Path, name: str, field: tuple[str, Any], body: bytes, reason: str
) -> None:
    """An error, or dead letters with the reason beside the other types."""
    mixed_registry(tmp_path / "schemas")
    add_schema(tmp_path / "schemas", f"avro-{name}", 1, 60, record(name, field))
    registry = Registry(tmp_path / "schemas")
    values = [value_of(registry, PAID, 0), b"\0\0\0\0\x3c" + body, value_of(registry, PAID, 2)]
    source = write_values(tmp_path / "logs", values)
    words = ["lake", "append", str(source), *arguments(delta)]
    with pytest.raises((OptionError, InvalidSchema), match=reason):
        append(delta, source, record_tables(delta, registry))
    assert run([*words, "--dry-run"]) != 0
    dead = ["--dead-letters", str(tmp_path / "dead")]
    assert run([*words, *dead, "--dry-run"]) == 0
    assert run([*words, *dead]) == 0
    assert offsets(delta, PAID) == [0, 2]
    (letter,) = delta.read("dead").to_pylist()
    assert (letter["offset"], letter["value"]) == (1, values[1])
    assert reason in letter["reason"]


def test_a_type_of_two_topics_is_read_with_the_subject_of_the_first(
    delta: Tables, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mixed_registry(tmp_path / "schemas")
    add_schema(tmp_path / "schemas", f"other-{PAID}", 1, 60, record(PAID, ("id", "int"), ("more", "int")))
    registry = Registry(tmp_path / "schemas")
    records = record_tables(delta, registry)
    append(delta, write_values(tmp_path / "logs", [value_of(registry, PAID, 0)]), records)
    source = write_values(tmp_path / "other", [b"\0\0\0\0\x3c\x02\x04"])
    (source / "avro-0").rename(source / "other-0")
    logs = [LogDirectory(source)["other", 0]]
    list(append_logs(delta.open("events"), logs, layout=Layout(), rows=RowOptions(records=records)))
    assert f"values of topic 'other' are read as subject 'avro-{PAID}' has them" in caplog.text


def test_another_naming_strategy_than_that_of_the_tables(delta: Tables, tmp_path: Path) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, 0)])
    append(delta, source, record_tables(delta, registry))
    with pytest.raises(OptionError, match=f"has subject 'avro-{PAID}' for .* which '{{record}}' does not give"):
        append(delta, write_values(source, [b"x"], first=1), record_tables(delta, registry, subject="{record}"))


def test_metrics_count_records(delta: Tables, tmp_path: Path) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, kind, 0) for kind in TYPES])
    file = tmp_path / "metrics"
    assert run(["lake", "append", str(source), *arguments(delta), "--metrics-file", str(file)]) == 0
    (rows,) = re.findall(r"^kwire_table_rows_total.* (\d+)$", file.read_text(), re.MULTILINE)
    assert int(rows) == len(TYPES)


def test_no_more_tables_than_the_limit(delta: Tables, tmp_path: Path) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, kind, 1) for kind in TYPES])
    with pytest.raises(TableError, match="would be number 3, and the limit is 2 tables; raise it"):
        append(delta, source, record_tables(delta, registry, limit=2))
    assert not delta.read("events")["record"].to_pylist()
    append(delta, source, record_tables(delta, registry, limit=4))
    assert [len(delta.read(name_of(kind))) for kind in TYPES] == [1] * 4


def test_a_table_of_something_else_is_not_written_to(tables: Tables, tmp_path: Path) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, 1)])
    tables.open(name_of(PAID)).prepare(pa.schema([("x", pa.int64())]), Layout())
    with pytest.raises(
        TableError, match=rf"exists and is a table of other rows.*for the table of record type '{PAID}'"
    ):
        append(tables, source, record_tables(tables, registry))
    assert tables.read(name_of(PAID)).schema.names == ["x"]


def test_an_index_is_no_other_table(delta: Tables, tmp_path: Path) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, 1)])
    delta.open("events").prepare(pa.schema([("x", pa.int64())]), Layout())
    with pytest.raises(TableError, match=r"exists and is a table of other rows.*for the index of tables"):
        append(delta, source, record_tables(delta, registry))
    assert delta.read("events").schema.names == ["x"]


def test_tables_by_record_type_get_no_other_rows(
    tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, 1)])
    append(tables, source, record_tables(tables, registry))
    write_values(source, [value_of(registry, PAID, 2)], first=1)
    words = arguments(tables)
    assert run(["lake", "append", str(source), words[0], *words[5:]]) == 1
    assert "is the index of tables by record type (property kwire.record)" in capsys.readouterr().err


def test_types_that_differ_in_case_only(delta: Tables, tmp_path: Path) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    with pytest.raises(TableError, match=r"'a\.Order' and 'a\.order' differ in upper and lower case only"):
        record_tables(delta, registry).check(["a.Order", "a.order"])


def test_an_unknown_subject_says_which_strategy_was_assumed(delta: Tables, tmp_path: Path) -> None:
    registry = mixed_registry(tmp_path / "schemas", topic="other")
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, 1)])
    with pytest.raises(
        RegistryError, match=f"no subject 'avro-{PAID}', since option subject is '{{topic}}-{{record}}'"
    ):
        append(delta, source, record_tables(delta, registry))


REFUSED = [
    ({"mode": "permissive"}, "tables by record type require failfast"),
    ({"schema": "union"}, "schema: does not apply"),
    ({"message": "x.Y"}, "message: does not apply"),
    ({"subject": "{name}-value"}, "unknown placeholder '{name}'; available: {topic}, {record}"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_options_that_do_not_apply(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        RecordTypes.of(SchemaChoice(registry=mixed_registry(tmp_path / "schemas"), **options))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--merge-key", "key"], "cannot be merged by key"),
        (["--offsets", "0..3"], "chosen offsets cannot be written"),
        (["--mode", "deadletter"], "requires a table or topic for dead letters"),
    ],
)
def test_options_of_the_command_that_do_not_apply(
    delta: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    registry = mixed_registry(tmp_path / "schemas")
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, 1)])
    assert run(["lake", "append", str(source), *arguments(delta), *words]) == 2
    assert message in capsys.readouterr().err


def test_suffixes_tell_all_names_apart() -> None:
    """An encoder that two names share would mix two types in a table, so a decoder returns the name."""
    assert suffix_of("com.example.order_v2") == "com__example__order_v2"
    assert suffix_of("Größe") == "Gr_x00F6__x00DF_e"
    assert suffix_of("_a") == "_x005F_a"
    draw = random.Random(30)
    for _ in range(3000):
        name = "".join(
            draw.choice(["a", "_", ".", "x", "0041", "_x0041_", "é", " ", "/", "\U0001f600"]) for _ in range(5)
        )
        suffix = suffix_of(name)
        assert re.fullmatch(r"[0-9A-Za-z_]+", suffix)
        parts = re.findall(r"_x[0-9A-F]{4,6}_|__|.", suffix)
        decoded = [chr(int(each[2:-1], 16)) if len(each) > 2 else "." if each == "__" else each for each in parts]
        assert "".join(decoded) == name, suffix
    assert suffix_of("a" * MAX_SUFFIX) == "a" * MAX_SUFFIX
    for long in ("a" * (MAX_SUFFIX + 1), "é" * 100):
        with pytest.raises(OptionError, match=f"the limit is {MAX_SUFFIX}"):
            suffix_of(long)


def test_rows_of_a_micro_batch_that_a_table_has_are_told_apart_by_their_offsets() -> None:
    """It may run again with more rows, which a commit of its number would leave out."""
    state = TableState(batches={"q": 4})
    plan = RecordPlan(record=PAID, subject="s", decoding=None, plan=None, state=state, dead=None)  # type: ignore[arg-type]
    marks = [plan.mark(Mark(query="q", batch=number)) for number in (3, 4, 5)]
    assert marks == [None, None, Mark(query="q", batch=5, is_strict=False)]


@pytest.mark.parametrize(("more", "groups"), [(-1, [2, 1]), (0, [3])])
def test_rows_of_all_tables_together_are_buffered(
    delta: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int, groups: list[int]
) -> None:
    """The largest table is written first."""
    registry = mixed_registry(tmp_path / "schemas")

    def rows(*offsets: int, kind: str) -> pa.RecordBatch:
        place = {"topic": ["avro"] * len(offsets), "partition": pa.array([0] * len(offsets), pa.int32())}
        values = [value_of(registry, kind, offset) for offset in offsets]
        return pa.record_batch({**place, "offset": offsets, "value": pa.array(values, pa.binary())})

    batches = [rows(0, 1, kind=PAID), rows(2, kind=CREATED), rows(3, kind=PAID)]
    plans = record_tables(delta, registry).prepare(delta.open("events"), batches[0].schema, None)
    writer = RecordWriter(plans, None, 0)
    for batch in batches[:2]:
        writer.add(batch)
    size = sum(each.rows.size_bytes for each in writer._tables.values())
    writer.discard()
    monkeypatch.setattr(record_files, "BUFFER_BYTES", size + more)
    (one,) = plans.write(batches).files[PAID][1].files
    footer = parquet.ParquetFile(delta.folder / name_of(PAID) / one.path).metadata
    assert [footer.row_group(number).num_rows for number in range(footer.num_row_groups)] == groups


@pytest.mark.slow
@pytest.mark.parametrize("commits", [0, 1, 2, 3, 4])
def test_killed_between_the_commits_of_two_tables(tables: Tables, tmp_path: Path, commits: int) -> None:
    """A process, with SIGKILL; the log has grown when it is run again."""
    registry = mixed_registry(tmp_path / "schemas")
    kinds = [TYPES[n % 3] for n in range(20)] + [MOVED, *TYPES]
    values = [value_of(registry, kind, n) for n, kind in enumerate(kinds)]
    source = write_values(tmp_path / "logs", values[:10])
    words = ["lake", "append", str(source), *arguments(tables)]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(commits), *words],
        cwd=ROOT,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert ended.returncode in (-signal.SIGKILL, 0), ended.stderr
    write_values(source, values[10:], first=10)
    assert run(words) == 0
    assert {kind: offsets(tables, kind) for kind in TYPES} == expected(kinds)


class Killed(BaseException):
    """The end of a process."""


def drop(tables: Tables, name: str) -> None:
    """Drop a table, as another program does."""
    if tables.format == "delta":
        shutil.rmtree(tables.folder / name)
    else:
        table: Any = tables.open(name)
        table.refresh()
        table.table.catalog.drop_table(f"sales.{name}")


def restore_first(tables: Tables, name: str) -> None:
    """Restore the first version of a table with rows, as another program does."""
    table: Any = tables.open(name)
    table.refresh()
    if tables.format == "delta":
        table.table.restore(1)
    else:
        table.table.manage_snapshots().set_current_snapshot(table.table.snapshots()[0].snapshot_id).commit()


def go_back(tables: Tables, name: str, draw: random.Random) -> None:
    """Drop a table, or restore one of its versions, as another program does."""
    table: Any = tables.open(name)
    table.refresh()
    if not table.exists or (tables.format == "delta" and not table.table.version()):
        return
    if draw.random() < 0.3:
        drop(tables, name)
    elif tables.format == "delta":
        table.table.restore(draw.randint(0, table.table.version() - 1))
    elif table.table.snapshots():
        table.table.manage_snapshots().set_current_snapshot(draw.choice(table.table.snapshots()).snapshot_id).commit()


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_table_that_was_dropped_or_restored_gets_its_rows_again(
    tables: Tables, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_dropped: bool
) -> None:
    """The other tables get none of theirs twice; a Delta table also after a clean-up of the logs."""
    registry = mixed_registry(tmp_path / "schemas")
    records = record_tables(tables, registry)
    kinds: list[str] = []
    for new in ([CREATED, PAID], [PAID, CREATED], [CREATED], [PAID, PAID]):
        values = [value_of(registry, each, len(kinds) + n) for n, each in enumerate(new)]
        source = write_values(tmp_path / "logs", values, first=len(kinds))
        kinds += new
        append(tables, source, records)
    if is_dropped:
        drop(tables, name_of(CREATED))
    else:
        restore_first(tables, name_of(CREATED))
    if tables.format == "delta":
        clean_log(str(tables.folder / "events"))
    assert offsets(tables, PAID) == [1, 2, 5, 6]
    append(tables, source, records)
    assert {kind: offsets(tables, kind) for kind in set(kinds)} == expected(kinds)
    assert f"{name_of(CREATED)} is not as its index knows it" in caplog.text
    caplog.clear()
    append(tables, source, records)
    assert "is not as its index knows it" not in caplog.text


def test_a_table_whose_rows_were_known_and_that_goes_back_meanwhile(
    tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run before was killed before the commit of the index, which then claimed the offsets without their rows."""
    registry = mixed_registry(tmp_path / "schemas")
    records = record_tables(tables, registry)
    source = write_values(tmp_path / "logs", [value_of(registry, CREATED, 0)])
    append(tables, source, records)
    write_values(source, [value_of(registry, CREATED, 1)], first=1)
    really = LakeTable.commit

    def commit(self: LakeTable, *given: Any, **more: Any) -> bool:
        if self.name.endswith("events"):
            if when == "killed":
                raise Killed
            restore_first(tables, name_of(CREATED))
        return really(self, *given, **more)

    monkeypatch.setattr(LakeTable, "commit", commit)
    when = "killed"
    with suppress(Killed):
        append(tables, source, records)
    assert offsets(tables, CREATED) == [0, 1]
    when = "restored"
    append(tables, source, records)
    monkeypatch.undo()
    append(tables, source, records)
    assert offsets(tables, CREATED) == [0, 1]


def test_rows_that_a_table_has_are_not_counted(delta: Tables, tmp_path: Path) -> None:
    """The index gives up offsets whose rows other tables have; two partitions in one commit counted these again."""
    registry = mixed_registry(tmp_path / "schemas")
    values = [value_of(registry, kind, n) for n, kind in enumerate([CREATED, PAID, PAID])]
    for partition in range(2):
        write_values(tmp_path / "logs", values, partition=partition)
    found, records = LogDirectory(tmp_path / "logs"), record_tables(delta, registry)
    logs = [found["avro", partition] for partition in range(2)]

    def append_all() -> list[int]:
        done = append_logs(delta.open("events"), logs, layout=Layout(), rows=RowOptions(records=records))
        return [each.rows for each in done]

    assert append_all() == [3, 3]
    drop(delta, name_of(CREATED))
    assert append_all() == [1, 1]
    logs.pop()
    drop(delta, name_of(PAID))
    assert append_all() == [2]


@pytest.mark.parametrize("seed", mostly_slow(list(range(SCHEDULES))))
def test_random_schedules_have_each_record_once(
    tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The log grows, types appear, and runs are killed before or after any commit, or do not get its response.

    Other programs drop tables, or restore their earlier versions, also that of dead letters.
    """
    draw = random.Random(seed)
    registry = mixed_registry(tmp_path / "schemas")
    has_letters = seed % 3 > 0
    records = record_tables(tables, registry, has_dead_letters=has_letters)
    kinds: list[str] = []
    left = [0]
    when = ""

    def killing(really: Any) -> Any:
        def add(self: Any, *given: Any) -> None:
            left[0] -= 1
            if left[0] or not when:
                really(self, *given)
                return
            if when != "before":
                really(self, *given)
            if when == "unanswered":
                raise CommitConflict("a request that was sent twice conflicts with itself")
            raise Killed

        return add

    format_class: Any = type(tables.open("events"))
    monkeypatch.setattr(format_class, "add", killing(format_class.add))
    for step in range(6):
        of_step = TYPES[: 1 + min(step, 3)] if seed % 2 else TYPES
        new = [draw.choice(of_step) for _ in range(draw.randint(1, 9))]
        values = [value_of(registry, each, len(kinds) + n) for n, each in enumerate(new)]
        for n, kind in enumerate(new):
            if has_letters and draw.random() < 0.3:  # of the type's table, or of the index
                values[n], new[n] = (values[n][:-1], "cut") if kind == PAID else (b"", "none")
        source = write_values(tmp_path / "logs", values, first=len(kinds))
        kinds += new
        when = draw.choice(["", "before", "before", "after", "after", "unanswered"])
        left[0] = draw.randint(1, 5)
        try:
            append(tables, source, records)
        except Killed:
            if draw.random() < 0.5:  # killed again, at another place
                left[0] = draw.randint(1, 4)
                with suppress(Killed):
                    append(tables, source, records)
        if draw.random() < 0.4:
            go_back(tables, name_of(draw.choice(TYPES)), draw)
        if has_letters and draw.random() < 0.4:
            go_back(tables, "dead", draw)
    when = ""
    append(tables, source, records, fill=True)
    dead = [n for n, kind in enumerate(kinds) if kind not in TYPES]
    assert {kind: offsets(tables, kind) for kind in TYPES if kind in kinds} == {
        kind: found for kind, found in expected(kinds).items() if kind in TYPES
    }
    index = tables.open("events")
    index.refresh()
    assert index.state().spans == {KEY: ((0, len(kinds)),)}
    with_table = {PAID if kind == "cut" else kind for kind in kinds} - {"none"}
    assert sorted(tables.read("events")["record"].to_pylist()) == sorted(with_table)
    assert not dead or sorted(tables.read("dead")["offset"].to_pylist()) == dead


def test_a_reader_that_does_not_fit_is_reported_with_its_schema(delta: Tables, tmp_path: Path) -> None:
    """The newest version of the subject cannot read an older value: an error with the place, and nothing is written."""
    registry = mixed_registry(tmp_path / "schemas")
    wrong = {"type": "record", "name": PAID, "fields": [{"name": "must", "type": "string"}]}
    add_schema(tmp_path / "schemas", f"avro-{PAID}", 2, 52, wrong)
    source = write_values(tmp_path / "logs", [value_of(registry, PAID, 1)])
    with pytest.raises(DecodeError, match="avro-0, offset 0: schema id 42"):
        append(delta, source, record_tables(delta, Registry(tmp_path / "schemas")))
    assert not len(delta.read(name_of(PAID)))
