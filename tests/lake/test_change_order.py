"""Changes of a database in an order of their own: source.lsn of PostgreSQL, the binlog's position of MySQL."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.cli.main import run
from kwire.errors import OptionError, TableError
from kwire.lake import Changes, DeleteWhen, Layout, RowOptions, ValueDecoding, append_logs
from kwire.log import LogDirectory
from kwire.schemas import Registry
from kwire.schemas.choice import SchemaChoice
from tests.lake.avro_values import write_values
from tests.lake.tables import Tables
from tests.lake.test_changes import ENVELOPE, KEY, ROW, SOURCE, Event, Target, event, record, schema_of, state
from tests.sampling import mostly_slow

LSN = ("source.lsn",)
BINLOG = ("source.file", "source.pos")


def at(lsn: int | None, op: str, before: Event, after: Event) -> Event:
    return {**(event(op, before, after) or {}), "source": {"lsn": lsn}}


def alive(tables: Tables) -> dict[tuple[int, str], str | None]:
    return {(row["id"], row["part"]): row["name"] for row in tables.read().to_pylist() if row["__op"] != "d"}


def test_an_older_change_replaces_no_newer_one(tables: Tables) -> None:
    """In one batch and in the next, from any partition; at the same position, the later one of the topic counts."""
    target = Target(tables, order_by=LSN)
    target.write([at(20, "u", None, record(1, "new")), at(10, "c", None, record(1, "old"))])
    assert state(tables) == {(1, "a"): "new"}
    target.write([at(19, "u", None, record(1, "older")), at(5, "c", None, record(2, "y"))], partition=1)
    assert state(tables) == {(1, "a"): "new", (2, "a"): "y"}
    target.write([at(20, "u", None, record(1, "same"))], partition=1)
    target.write([at(21, "u", None, record(2, "z"))])
    assert state(tables) == {(1, "a"): "same", (2, "a"): "z"}
    assert tables.read().schema.names[3:5] == ["__op", "__source_lsn"]


def test_a_deletion_stays_as_a_row_and_is_not_undone(tables: Tables) -> None:
    target = Target(tables, order_by=LSN)
    target.write([at(10, "c", None, record(1, "x"))])
    target.write([at(30, "d", record(1, "x"), None), None])
    target.write([at(20, "u", None, record(1, "late"))], partition=1)
    (row,) = tables.read().to_pylist()
    assert (row["id"], row["name"], row["__op"], row["__source_lsn"]) == (1, None, "d", 30)
    target.write([at(40, "c", None, record(1, "again")), at(50, "u", record(1, "again"), record(1, "q", "b"))])
    assert alive(tables) == {(1, "b"): "q"}


def test_reads_of_a_snapshot_replace_no_newer_change(tables: Tables) -> None:
    """A second snapshot at LSN 100: what changed later stays, also at 100 itself; what is older is read again."""
    target = Target(tables, order_by=LSN)
    target.write([at(90, "u", None, record(1, "a90")), at(100, "u", None, record(2, "b100"))])
    target.write([at(110, "d", record(3), None), at(120, "u", None, record(4, "d120"))])
    target.write([at(100, "r", None, record(number, f"r{number}")) for number in (1, 2, 3, 4, 5)], partition=1)
    assert alive(tables) == {(1, "a"): "r1", (2, "a"): "b100", (4, "a"): "d120", (5, "a"): "r5"}


def test_the_position_of_mysql(tables: Tables) -> None:
    """The number of a file may get a digit more."""
    target = Target(tables, order_by=BINLOG)

    def binlog(file: str, pos: int, name: str) -> Event:
        return {**(event("u", None, record(1, name)) or {}), "source": {"file": f"mysql-bin.{file}", "pos": pos}}

    target.write([binlog("999999", 900, "a"), binlog("1000000", 4, "b"), binlog("999999", 901, "c")])
    assert state(tables) == {(1, "a"): "b"}
    target.write([binlog("1000000", 3, "d"), binlog("999999", 902, "e")])
    assert state(tables) == {(1, "a"): "b"}
    target.write([binlog("1000000", 5, "f")])
    assert state(tables) == {(1, "a"): "f"}


@pytest.mark.parametrize("seed", mostly_slow(range(2)))
def test_any_order_of_events(tables: Tables, seed: int) -> None:
    """The events of two partitions, shuffled and doubled, in batches of any size: the end is that of the database."""
    chance = random.Random(seed)
    target, model, history = Target(tables, order_by=LSN), dict[tuple[int, str], str](), list[Event]()
    for lsn in range(1, 120):
        key, name = (chance.randrange(8), chance.choice("ab")), f"n{lsn}"
        new = record(key[0], name, key[1])
        if key in model and chance.random() < 0.3:
            history.append(at(lsn, "d", record(key[0], None, key[1]), None))
            del model[key]
        else:
            history.append(at(lsn, "u" if key in model else "c", None, new))
            model[key] = name
    sent = history + chance.sample(history, 30)
    chance.shuffle(sent)
    while sent:
        size = chance.choice([1, 20, 60])
        target.write_batch([(chance.randrange(2), each) for each in sent[:size]])
        sent = sent[size:]
    assert alive(tables) == model


def test_the_order_of_a_table_does_not_change(tables: Tables) -> None:
    Target(tables, order_by=LSN).write([at(1, "c", None, record(1))])
    for order_by, name in (((), "offsets"), (("ts_ms",), "__ts_ms")):
        later = Target(tables, order_by=order_by)
        later.next = {0: 10, 1: 10}
        with pytest.raises(TableError, match=f"were ordered by __source_lsn, and these are by {name}; set option"):
            later.write([at(2, "c", None, record(1))])


def test_a_change_without_a_position_is_an_error_or_a_dead_letter(delta: Tables) -> None:
    events = [at(None, "c", None, record(1)), None, at(None, "d", record(2), None), at(3, "c", None, record(3))]
    with pytest.raises(TableError, match=r"offset 0: 'source.lsn' is null, which orders the changes"):
        Target(delta, order_by=LSN).write(events)
    Target(delta, order_by=LSN, dead=True).write(events)
    assert delta.read("dead").column("offset").to_pylist() == [0, 2]
    assert list(state(delta)) == [(3, "a")]


def test_orders_that_are_refused() -> None:
    for given, what in (
        ({"key": (), "order_by": LSN}, "Option 'orderBy': requires the options 'mergeKey' and 'changes'"),
        ({"key": KEY, "order_by": LSN, "is_debezium": False}, "requires the options 'mergeKey' and 'changes'"),
        ({"key": KEY, "order_by": LSN, "delete_when": DeleteWhen.parse("x")}, "'orderBy' and 'deleteWhen' exclude"),
    ):
        arguments: dict[str, Any] = given
        with pytest.raises(OptionError, match=what):
            Changes(**arguments)
    for path, what in (
        ("source.scn", "the event has no field 'source.scn'; name one such as source.lsn"),
        ("source", "'source' is of type struct<.*>; name a number or text"),
        ("op.x", "the event has no field 'op.x'"),
    ):
        with pytest.raises(OptionError, match=f"Option 'orderBy': {what}"):
            Changes(key=KEY, order_by=(path,)).schema(schema_of())
    clash = pa.struct([("after", pa.struct([("__source_lsn", pa.int64())])), ("op", pa.string()), ("source", SOURCE)])
    with pytest.raises(OptionError, match="field '__source_lsn' of 'after' has the name of a column"):
        Changes(key=("id",), order_by=LSN).schema(schema_of(clash))


# ---- what the database's table may do


def test_columns_that_are_added_dropped_and_widened(tables: Tables) -> None:
    """Rows have null in what they lack; Iceberg widens a type, Delta says that it does not."""
    small = pa.struct([("id", pa.int32()), ("part", pa.string()), ("name", pa.string())])
    first = pa.struct([("before", small), ("after", small), ("op", pa.string())])
    target = Target(tables, key=("id",))
    target.write([event("c", None, record(1, "x"))], envelope=first)
    added = pa.struct([*small, ("city", pa.string())])
    second = pa.struct([("before", added), ("after", added), ("op", pa.string())])
    target.write([event("c", None, {**record(2, "y"), "city": "Bonn"})], envelope=second)
    dropped = pa.struct([("id", pa.int32()), ("name", pa.string()), ("city", pa.string())])
    third = pa.struct([("before", dropped), ("after", dropped), ("op", pa.string())])
    target.write([event("c", None, {"id": 3, "name": "z", "city": "Ulm"})], envelope=third)
    rows = tables.read().sort_by("id").select(["id", "part", "name", "city"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, "a", "x", None), (2, "a", "y", "Bonn"), (3, None, "z", "Ulm")]
    if tables.format == "iceberg":
        target.write([event("c", None, record(2**40, "w"))])
        assert max(tables.read().column("id").to_pylist()) == 2**40
    else:
        with pytest.raises(TableError, match="column 'id'"):
            target.write([event("c", None, record(2**40, "w"))])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.string(), "__debezium_unavailable_value"),
        (pa.binary(), b"__debezium_unavailable_value"),
        (pa.list_(pa.string()), ["__debezium_unavailable_value"]),
        (pa.list_(pa.int32()), list(b"__debezium_unavailable_value")),
    ],
)
def test_a_value_that_the_connector_does_not_know_replaces_none(delta: Tables, kind: pa.DataType, value: Any) -> None:
    """PostgreSQL does not log a large value (TOAST) that an update leaves. Null, and values like it, are known."""
    row = pa.struct([*ROW, ("note", kind)])
    envelope = pa.struct([("before", row), ("after", row), ("op", pa.string())])
    near = value[:-1]
    known = [event("c", None, {**record(1, "x"), "note": near}), event("u", None, {**record(2, "y"), "note": None})]
    unknown = event("u", None, {**record(1, "z"), "note": value})
    target = Target(delta)
    target.write(known, envelope=envelope)
    with pytest.raises(TableError, match=r"does not know the value of 'note', .* set REPLICA IDENTITY FULL"):
        target.write([unknown], envelope=envelope)
    assert state(delta) == {(1, "a"): "x", (2, "a"): "y"}
    history = Tables("delta", delta.folder / "history")
    history.folder.mkdir()
    Target(history, key=()).write([unknown], envelope=envelope)
    assert history.read().column("note").to_pylist() == [value]


def test_topics_of_schema_changes_are_refused() -> None:
    ddl = pa.struct([("source", SOURCE), ("databaseName", pa.string()), ("ddl", pa.string())])
    with pytest.raises(OptionError, match=r"it has fields source, databaseName, ddl.* of schema changes have no rows"):
        Changes(key=KEY).schema(schema_of(ddl))
    assert "__source_lsn" in Changes(key=KEY, order_by=LSN).schema(schema_of(ENVELOPE)).names


# ---- Avro, as Connect's converter registers the envelope


def avro_envelope(source: list[dict[str, Any]], connector: str) -> dict[str, Any]:
    """Return the schema of the events of a table: its row is defined in `before` and named in `after`."""
    row = {
        "type": "record",
        "name": "Value",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "name", "type": ["null", "string"], "default": None},
            {"name": "seen", "type": ["null", {"type": "long", "connect.version": 1}], "default": None},
        ],
        "connect.name": "db.public.items.Value",
    }
    block = {
        "type": "record",
        "name": "block",
        "namespace": "event",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "total_order", "type": "long"},
            {"name": "data_collection_order", "type": "long"},
        ],
    }
    named = {"type": "record", "name": "Source", "namespace": f"io.debezium.connector.{connector}", "fields": source}
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "db.public.items",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": named},
            {"name": "transaction", "type": ["null", block], "default": None},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
        ],
        "connect.version": 2,
        "connect.name": "db.public.items.Envelope",
    }


COMMON: list[dict[str, Any]] = [
    {"name": "version", "type": "string"},
    {"name": "connector", "type": "string"},
    {"name": "name", "type": "string"},
    {"name": "ts_ms", "type": "long"},
    {"name": "snapshot", "type": ["null", "string"], "default": "false"},
    {"name": "db", "type": "string"},
    {"name": "sequence", "type": ["null", "string"], "default": None},
]
POSTGRES = [
    *COMMON,
    {"name": "schema", "type": "string"},
    {"name": "table", "type": "string"},
    {"name": "txId", "type": ["null", "long"], "default": None},
    {"name": "lsn", "type": ["null", "long"], "default": None},
    {"name": "xmin", "type": ["null", "long"], "default": None},
]
MYSQL = [
    *COMMON,
    {"name": "table", "type": ["null", "string"], "default": None},
    {"name": "server_id", "type": "long"},
    {"name": "gtid", "type": ["null", "string"], "default": None},
    {"name": "file", "type": "string"},
    {"name": "pos", "type": "long"},
    {"name": "row", "type": "int"},
    {"name": "thread", "type": ["null", "long"], "default": None},
    {"name": "query", "type": ["null", "string"], "default": None},
]


@pytest.mark.parametrize("command", ["api", "cli"])
@pytest.mark.parametrize("connector", ["postgresql", "mysql"])
def test_avro_envelopes(tables: Tables, tmp_path: Path, connector: str, command: str) -> None:
    """fastavro encodes them; append_logs and the command decode and merge them."""
    fastavro: Any = pytest.importorskip("fastavro")
    schema = avro_envelope(POSTGRES if connector == "postgresql" else MYSQL, connector)
    folder = tmp_path / "schemas"
    folder.mkdir()
    (folder / "avro-value.1.7.avsc").write_text(json.dumps(schema))
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))

    def encoded(position: int, op: str, before: Event, after: Event) -> bytes:
        place = {"schema": "public", "table": "items", "lsn": position}
        if connector == "mysql":
            place = {"table": "items", "server_id": 1, "file": "binlog.000001", "pos": position, "row": 0}
        source = {"version": "3.0.8.Final", "connector": connector, "name": "db", "ts_ms": 1, "db": "x", **place}
        out = io.BytesIO()
        transaction = {"id": "1:1", "total_order": 1, "data_collection_order": 1}
        value = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 2, "transaction": transaction}
        fastavro.schemaless_writer(out, parsed, value)
        return b"\0" + (7).to_bytes(4, "big") + out.getvalue()

    one, two = {"id": 1, "name": "x", "seen": 5}, {"id": 2, "name": None, "seen": None}
    values = [
        encoded(30, "c", None, two),
        encoded(10, "c", None, one),
        encoded(20, "u", one, {**one, "name": "y"}),
        encoded(15, "u", None, {**one, "name": "late"}),
        encoded(40, "d", two, None),
        None,
    ]
    logs = write_values(tmp_path / "logs", values)
    order_by = LSN if connector == "postgresql" else (*BINLOG, "source.row")
    if command == "api":
        rows = RowOptions(
            decoding=ValueDecoding.resolve(SchemaChoice(registry=Registry(folder)), ["avro"]),
            changes=Changes(key=("id",), order_by=order_by),
            merge_key=("id",),
        )
        (done,) = append_logs(tables.open(), list(LogDirectory(logs).values()), layout=Layout(), rows=rows)
        assert done.end_offset == 6
    else:
        url = f"file://{tmp_path}"
        catalog = [f"--catalog={name}={value}" for name, value in tables.catalog(url).items()]
        target = [str(tmp_path / "orders")] if tables.format == "delta" else ["sales.orders", *catalog]
        order = [f"--order-by={field}" for field in order_by]
        words = ["--registry", str(folder), "--changes", "debezium", "--merge-key", "id", *order]
        assert run(["lake", "append", str(logs), *target, *words]) == 0
        assert run(["lake", "append", str(logs), *target, *words]) == 0  # nothing is new
    rows_now = tables.read().sort_by("id").select(["id", "name", "seen", "__op"]).to_pylist()
    assert [tuple(row.values()) for row in rows_now] == [(1, "y", 5, "u"), (2, None, None, "d")]


def test_a_schema_change_of_avro_envelopes(delta: Tables, tmp_path: Path) -> None:
    """The database adds a column and drops one: the connector registers a new version, and events have both ids."""
    fastavro: Any = pytest.importorskip("fastavro")
    folder = tmp_path / "schemas"
    folder.mkdir()
    versions = {7: avro_envelope(POSTGRES, "postgresql"), 8: avro_envelope(POSTGRES, "postgresql")}
    fields = versions[8]["fields"][0]["type"][1]["fields"]
    fields[2] = {"name": "amount", "type": ["null", "long"], "default": None}
    parsed = {number: fastavro.parse_schema(json.loads(json.dumps(each))) for number, each in versions.items()}

    def encoded(schema_id: int, lsn: int, op: str, before: Event, after: Event) -> bytes:
        source = {"version": "3.0.8.Final", "connector": "postgresql", "name": "db", "ts_ms": 1, "db": "x"}
        source |= {"schema": "public", "table": "items", "lsn": lsn}
        out = io.BytesIO()
        fastavro.schemaless_writer(
            out, parsed[schema_id], {"before": before, "after": after, "source": source, "op": op, "ts_ms": 2}
        )
        return b"\0" + schema_id.to_bytes(4, "big") + out.getvalue()

    def append(version: int, values: list[bytes | None], first: int) -> None:
        (folder / f"avro-value.{version}.{6 + version}.avsc").write_text(json.dumps(versions[6 + version]))
        logs = write_values(tmp_path / "logs", values, first=first)
        words = ["--registry", str(folder), "--changes", "debezium", "--merge-key", "id", "--order-by", "source.lsn"]
        assert run(["lake", "append", str(logs), str(tmp_path / "orders"), *words]) == 0

    one, two, three = ({"id": number, "name": "x", "seen": 5} for number in (1, 2, 3))
    append(1, [encoded(7, lsn, "c", None, row) for lsn, row in ((10, one), (11, two), (12, three))], 0)
    new = [
        encoded(7, 20, "u", one, {**one, "name": "before"}),
        encoded(8, 30, "u", None, {"id": 1, "name": "after", "amount": 9}),
        encoded(7, 25, "u", None, {**one, "name": "late"}),
        encoded(8, 31, "d", {"id": 2, "name": "x", "amount": None}, None),
        None,
    ]
    append(2, new, 3)
    rows = delta.read().sort_by("id").select(["id", "name", "seen", "amount", "__op"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (1, "after", None, 9, "u"),
        (2, None, None, None, "d"),
        (3, "x", 5, None, "c"),
    ]


def test_changes_require_a_registry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = write_values(tmp_path / "logs", [b"{}"])
    assert run(["lake", "append", str(logs), str(tmp_path / "t"), "--changes", "debezium"]) == 2
    assert "changes: require a registry" in capsys.readouterr().err
    assert run(["lake", "append", str(logs), str(tmp_path / "t"), "--order-by", "source.lsn"]) == 2
    assert "--order-by: requires --changes" in capsys.readouterr().err
