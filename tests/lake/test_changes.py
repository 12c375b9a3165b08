"""Changes of a database: Debezium's envelope to the latest state or the history, in any disorder that it can have."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import OptionError, TableError
from kwire.lake import (
    Change,
    Changes,
    DeleteWhen,
    LakeTable,
    Layout,
    RowWriter,
    commit_dead_letters,
    prepare_dead_letters,
    unwrapped_schema,
)
from kwire.lake.data_files import write_all
from tests.lake.tables import Tables
from tests.sampling import mostly_slow

ROW = pa.struct([("id", pa.int64()), ("part", pa.string()), ("name", pa.string())])
SOURCE = pa.struct([("connector", pa.string()), ("lsn", pa.int64()), ("file", pa.string()), ("pos", pa.int64())])
ENVELOPE = pa.struct(
    [
        ("before", ROW),
        ("after", ROW),
        ("source", SOURCE),
        ("op", pa.string()),
        ("ts_ms", pa.int64()),
        ("transaction", pa.struct([("id", pa.string()), ("total_order", pa.int64())])),
    ]
)
KEY = ("id", "part")
Event = dict[str, Any] | None


def schema_of(envelope: pa.DataType = ENVELOPE) -> pa.Schema:
    place = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
    return pa.schema([("key", pa.binary()), ("value", envelope), *place, ("timestamp", pa.timestamp("us", "UTC"))])


def event(op: str, before: Event, after: Event) -> Event:
    return {"op": op, "before": before, "after": after, "ts_ms": 1, "source": {"lsn": 5}}


def record(number: int, name: str | None = None, part: str = "a") -> dict[str, Any]:
    return {"id": number, "part": part, "name": name}


class Target:
    """A table that events are written to, at the next offsets of a partition."""

    def __init__(
        self, tables: Tables, key: tuple[str, ...] = KEY, *, dead: bool = False, order_by: tuple[str, ...] = ()
    ) -> None:
        self.changes, self.key = Changes(key=key, order_by=order_by), key
        self.table: LakeTable = tables.open()
        self.dead = tables.open("dead") if dead else None
        self.next = {0: 0, 1: 0}

    def write(self, events: Sequence[Event], partition: int = 0, envelope: pa.DataType = ENVELOPE) -> None:
        self.write_batch([(partition, each) for each in events], envelope)

    def write_batch(self, events: Sequence[tuple[int, Event]], envelope: pa.DataType = ENVELOPE) -> None:
        rows = []
        for partition, each in events:
            offset = self.next[partition]
            self.next[partition] += 1
            rows.append({"value": each, "topic": "t", "partition": partition, "offset": offset, "timestamp": 0})
        batch = pa.RecordBatch.from_pylist(rows, schema=schema_of(envelope))
        wanted = self.changes.schema(batch.schema if self.dead is None else unwrapped_schema(batch.schema))
        plan = self.table.prepare(wanted, Layout(), key=self.key)
        letters = None if self.dead is None else prepare_dead_letters(self.dead, self.table, plan)
        found = write_all(RowWriter(plan, letters, changes=self.changes, key=self.key), [batch])
        order_by = self.changes.order_columns
        merged = found.spans if self.key and not order_by else {}
        change = Change(id=uuid.uuid4().hex, spans=found.spans, merged=merged)
        if self.dead is not None and letters is not None:
            commit_dead_letters(self.dead, found.dead, change, self.table.state(), letters)
        self.table.commit(found.files, change, plan, key=self.key, order_by=order_by)


def state(tables: Tables) -> dict[tuple[int, str], str | None]:
    rows = tables.read().to_pylist()
    found = {(row["id"], row["part"]): row["name"] for row in rows}
    assert len(found) == len(rows)
    return found


def test_operations(tables: Tables) -> None:
    """Several of one key in a batch, and in the next."""
    target = Target(tables)
    target.write([event("r", None, record(1, "x")), event("c", None, record(2)), event("c", None, record(3, "z"))])
    assert state(tables) == {(1, "a"): "x", (2, "a"): None, (3, "a"): "z"}  # a row of nulls is no deletion
    target.write([event("u", None, record(1, "y")), event("u", record(1, "y"), record(1, "w"))])
    target.write([event("d", record(3), None), None, event("m", None, None), event("u", record(2), record(2, "n"))])
    assert state(tables) == {(1, "a"): "w", (2, "a"): "n"}
    target.write([event("d", record(2), None), None, event("c", None, record(2)), event("d", record(1), None)])
    assert state(tables) == {(2, "a"): None}
    assert tables.read().schema.names == ["id", "part", "name", "__op", "topic", "partition", "offset", "timestamp"]


def test_a_key_that_changes(tables: Tables) -> None:
    """As Debezium has it, a deletion and a creation; and as one update, of a key that is not the primary one."""
    target = Target(tables)
    target.write([event("c", None, record(1, "x")), event("c", None, record(2, "y"))])
    target.write([event("d", record(1, "x"), None), None, event("c", None, record(7, "x"))])
    target.write([event("u", record(2, "y", "a"), record(2, "y", "b"))])
    assert state(tables) == {(7, "a"): "x", (2, "b"): "y"}
    # back and forth in one batch
    target.write(
        [event("u", record(2, "y", "b"), record(2, "y", "c")), event("u", record(2, "y", "c"), record(2, "q", "b"))]
    )
    assert state(tables) == {(7, "a"): "x", (2, "b"): "q"}


def test_a_key_is_all_columns(tables: Tables) -> None:
    """Without other columns a deletion could be taken for a row."""
    target = Target(tables, key=("id", "part", "name"))
    target.write([event("c", None, record(1, "x")), event("c", None, record(2, "y"))])
    target.write([event("d", record(1, "x"), None)])
    assert state(tables) == {(2, "a"): "y"}


@pytest.mark.parametrize("seed", mostly_slow(range(4)))
def test_random_changes(tables: Tables, seed: int) -> None:
    """Against a model: keys in two partitions, batches of any size, and parts of the topic a second time."""
    chance = random.Random(seed)
    target, model, history = Target(tables), dict[tuple[int, str], str | None](), list[tuple[int, Event]]()
    for number in range(300):
        key = (chance.randrange(12), "ab"[chance.randrange(2)])
        partition, name = key[0] % 2, chance.choice([None, f"n{number}"])
        old = record(key[0], model.get(key), key[1])
        new = record(key[0], name, key[1])
        if key not in model:
            history.append((partition, event(chance.choice("cr"), None, new)))
            model[key] = name
        elif chance.random() < 0.4:
            history += [(partition, event("d", old, None)), (partition, None)]
            del model[key]
        else:
            history.append((partition, event("u", chance.choice([None, old]), new)))
            model[key] = name
    sent = history[:150] + history[100:]  # the connector has restarted, and sends some events again
    while sent:
        size = chance.choice([1, 5, 60])
        target.write_batch(sent[:size])
        sent = sent[size:]
    assert state(tables) == model


def test_the_history(tables: Tables) -> None:
    target = Target(tables, key=())
    target.write([event("c", None, record(1, "x")), event("u", None, record(1, "y")), event("d", record(1, "y"), None)])
    target.write([None, event("c", None, record(1, "z"))])
    rows = tables.read().sort_by("offset").to_pylist()
    assert [(row["offset"], row["__op"], row["id"], row["name"]) for row in rows] == [
        (0, "c", 1, "x"),
        (1, "u", 1, "y"),
        (2, "d", 1, "y"),
        (4, "c", 1, "z"),
    ]


POSTGRES = """{"before": null, "after": {"id": 1, "first_name": "Anne", "last_name": "Kretchmar",
"email": "annek@noanswer.org"}, "source": {"version": "3.0.0.Final", "connector": "postgresql",
"name": "PostgreSQL_server", "ts_ms": 1559033904863, "snapshot": true, "db": "postgres", "sequence":
"[\\"24023119\\",\\"24023128\\"]", "schema": "public", "table": "customers", "txId": 555, "lsn": 24023128,
"xmin": null}, "op": "c", "ts_ms": 1559033904863}"""
MYSQL = """{"before": {"id": 1004, "first_name": "Anne", "last_name": "Kretchmar", "email": "annek@noanswer.org"},
"after": {"id": 1004, "first_name": "Anne Marie", "last_name": "Kretchmar", "email": "annek@noanswer.org"},
"source": {"version": "3.0.0.Final", "name": "mysql-server-1", "connector": "mysql", "ts_ms": 1465581029100,
"snapshot": false, "db": "inventory", "table": "customers", "server_id": 223344, "gtid": null,
"file": "mysql-bin.000003", "pos": 484, "row": 0, "thread": 7, "query": "UPDATE customers SET first_name='Anne Marie'"},
"op": "u", "ts_ms": 1465581029523}"""


@pytest.mark.parametrize(("text", "names"), [(POSTGRES, {1: "Anne"}), (MYSQL, {1004: "Anne Marie"})])
@pytest.mark.parametrize("is_nested", [False, True])
def test_events_of_the_connectors(delta: Tables, text: str, names: dict[int, str], *, is_nested: bool) -> None:
    """As the documentation of Debezium has them, with the schema in each message and without."""
    found = json.loads(text)
    if is_nested:
        found = {"schema": {"type": "struct"}, "payload": found}
    inferred = pa.array([found]).type
    customer = pa.struct([("id", pa.int64()), *((name, pa.string()) for name in ("first_name", "last_name", "email"))])

    def typed(kind: pa.DataType) -> pa.DataType:
        return pa.struct(
            [
                (
                    each.name,
                    typed(each.type)
                    if each.name == "payload"
                    else customer
                    if each.name in ("before", "after")
                    else each.type,
                )
                for each in kind
            ]
        )

    Target(delta, key=("id",)).write([found], envelope=typed(inferred))
    assert {row["id"]: row["first_name"] for row in delta.read().to_pylist()} == names


def test_events_without_a_row_are_errors_or_dead_letters(tables: Tables) -> None:
    target = Target(tables)
    target.write([event("c", None, record(1, "x"))])
    bad = [event("u", None, None), event("d", None, None), event("x", None, record(1)), event("c", None, {"part": "a"})]
    reasons = [
        "op is u, and 'after' is null",
        "'before' is null, which has the key",
        "op is x, which is none of",
        "null",
    ]
    for each, reason in zip(bad, reasons, strict=True):
        place = "" if reason == "null" else f"t-0, offset {target.next[0]}: .*"
        with pytest.raises(TableError, match=f"{place}{reason}"):
            target.write([each])
    later = Target(tables, dead=True)
    later.next = dict(target.next)
    later.write([*bad, event("u", None, record(1, "y"))])
    assert state(tables) == {(1, "a"): "y"}
    assert tables.read("dead").sort_by("offset")["offset"].to_pylist() == [5, 6, 7, 8]
    with pytest.raises(TableError, match="offset 10: op is t: the table was truncated at its source"):
        later.write([event("t", None, None)])
    assert state(tables) == {(1, "a"): "y"}


def test_fields_of_the_envelope_may_be_in_any_order(delta: Tables) -> None:
    """The first field of a struct is one too."""
    turned = pa.struct([("op", pa.string()), ("ts_ms", pa.int64()), ("after", ROW), ("before", ROW)])
    target = Target(delta, order_by=("ts_ms",))
    nested = pa.struct([("payload", turned)])
    target.write([{"payload": event("c", None, record(1, "x"))}], envelope=nested)
    first = pa.struct([("ts_ms", pa.int64()), ("before", ROW), ("after", ROW), ("op", pa.string())])
    target.write([event("u", record(1, "x"), record(2, "y"))], envelope=first)
    assert {row["name"] for row in delta.read().to_pylist()} >= {"y"}


def test_what_is_no_envelope() -> None:
    changes = Changes(key=("id",), is_debezium=True)
    status = pa.struct([("status", pa.string()), ("id", pa.string())])  # of a topic of transactions
    for kind, what in ((status, "it has fields status, id"), (pa.binary(), "it is binary")):
        with pytest.raises(OptionError, match=f"expected Debezium's envelope in column 'value', .*{what}"):
            changes.schema(schema_of(kind))
    clash = pa.struct([("after", pa.struct([("offset", pa.int64())])), ("op", pa.string())])
    with pytest.raises(OptionError, match="field 'offset' of 'after' has the name of a column of Kafka"):
        changes.schema(schema_of(clash))
    with pytest.raises(OptionError, match="column 'day' is not of a record; leave it out"):
        changes.schema(schema_of().append(pa.field("day", pa.date32())))


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [("gone", "gone", True), ("gone = false", "gone", False), ("name = 'n 1'", "name", "n 1"), ("id=-7", "id", -7)],
)
def test_delete_when(tables: Tables, text: str, column: str, value: object) -> None:
    when = DeleteWhen.parse(text)
    assert (when.column, when.value) == (column, value)
    changes = Changes(key=("k",), is_debezium=False, delete_when=when)
    kinds: dict[str, list[Any]] = {"gone": [True, False, None], "name": ["n 1", "n", None], "id": [-7, 7, None]}
    hits = {"gone": 0 if value is True else 1, "name": 0, "id": 0}
    rows = pa.table({"k": ["a", "b", "c"], **kinds, "offset": [0, 1, 2], "keep": [1, 1, 1]})
    table = tables.open()
    for offset in (0, 3):
        part = rows.set_column(
            rows.schema.get_field_index("offset"), "offset", pa.array([offset, offset + 1, offset + 2])
        )
        plan = table.prepare(changes.schema(part.schema), Layout(), key=("k",))
        found = write_all(RowWriter(plan, None, changes=changes, key=("k",)), part.to_batches())
        table.commit(found.files, Change(id=uuid.uuid4().hex), plan, key=("k",))
    assert sorted(tables.read()["k"].to_pylist()) == sorted({"a", "b", "c"} - {"abc"[hits[column]]})


def test_delete_when_is_refused() -> None:
    for text in ("", "a = ", "a > 3", "a = 'x' OR 1=1", "lower(a) = 'x'"):
        with pytest.raises(OptionError, match="Option 'deleteWhen': expected COLUMN"):
            DeleteWhen.parse(text)
    schema = pa.schema([("a", pa.int64())])
    with pytest.raises(OptionError, match="unknown column 'b'; available: a"):
        DeleteWhen.parse("b").check(schema)
    with pytest.raises(OptionError, match="column 'a' is of type int64, not of 'x'"):
        DeleteWhen.parse("a = 'x'").check(schema)
