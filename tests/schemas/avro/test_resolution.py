"""Schema resolution: a writer's values with a reader's schema."""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schemas.avro.drawing import Drawing, as_expected, fastavro, plain, without_logical, written
from tests.schemas.avro.evolving import evolved

from kwire.errors import InvalidSchema, OptionError
from kwire.schemas.avro import Decoder, parse
from kwire.schemas.avro.resolution import Names


def decode(writer: Any, reader: Any, *values: str) -> list[Any]:
    """Return what values, in hex, are with the reader's schema; the text of an error in its place."""
    decoder = Decoder([parse(json.dumps(writer))], parse(json.dumps(reader)))
    decoded = decoder.decode(pa.array([bytes.fromhex(each) for each in values], pa.binary()))
    found = plain(decoded.array)
    for index, row in enumerate(decoded.errors.rows):
        assert found[row] is None
        found[row] = decoded.errors.message(index)
    return found


def record(*fields: Any, name: str = "R", **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)} | attributes


def field(name: str, kind: Any, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "type": kind} | attributes


def fixed(name: str, size: int, **attributes: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size} | attributes


def enum(*symbols: str, name: str = "E", **attributes: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols)} | attributes


def logical(kind: str, name: str, **attributes: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name} | attributes


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        ("int", "long", "7f", -64),
        ("int", "float", "02", 1.0),
        ("int", "double", "feffffff0f", 2147483647.0),
        ("long", "float", "feffffffffffffffff01", 9.223372036854775807e18),
        ("long", "double", "03", -2.0),
        ("float", "double", "0000003f", 0.5),
        ("string", "bytes", "0461c3", b"a\xc3"),  # bytes are not checked for UTF-8
        ("bytes", "string", "0461c3", "bytes: not UTF-8, at byte 0"),
        ("bytes", "string", "06c3a461", "äa"),
        # unions
        ("int", ["null", "long"], "02", 1),
        ("int", ["float", "int"], "02", {"member0": None, "member1": 1}),  # the same type comes first
        ("int", ["string", "double", "float"], "02", {"member0": None, "member1": 1.0, "member2": None}),
        (["null", "int"], "int", "0202", 1),
        (["null", "int"], "int", "00", "the writer's null cannot be read with the reader's schema, at byte 0"),
        (["int", "string"], ["string", "long"], "0002", {"member0": None, "member1": 1}),
        (["null", "string", "int"], ["null", "int"], "0402", 1),
        ("null", ["int", "null"], "", None),
        ("int", ["int", "long"], "02", 1),  # one column of long
        (["int", "long"], ["int", "long"], "0202", 1),
        ("long", ["float", "double"], "ffffffffffffffffff01", -9.223372036854775808e18),
        # enums and fixed
        (enum("A", "B"), enum("B", "C"), "02", "B"),
        (enum("A", "B"), enum("B", "C"), "00", "enum E: the reader's schema lacks this symbol, and has no default"),
        (enum("A", "B"), enum("B", "C", default="C"), "00", "C"),
        (enum("A", name="x.E"), enum("A", name="y.E"), "00", "A"),  # names match without namespaces
        (enum("A", name="Old"), enum("A", aliases=["Old"]), "00", "A"),
        (fixed("a.F", 2), fixed("b.F", 2), "0102", b"\1\2"),
        # units of time
        (logical("long", "timestamp-millis"), logical("long", "timestamp-micros"), "02", 1000),
        (logical("long", "timestamp-micros"), logical("long", "timestamp-millis"), "02", 1),
        (logical("long", "timestamp-micros"), logical("long", "timestamp-nanos"), "02", 1000),
        (logical("long", "timestamp-millis"), "long", "02", 1),
        ("long", logical("long", "timestamp-millis"), "02", 1000),
        (logical("int", "time-millis"), logical("long", "time-micros"), "02", 1000),
        (logical("int", "time-millis"), logical("long", "time-micros"), "01", "int (time-millis): out of range"),
        (
            logical("long", "timestamp-millis"),
            logical("long", "timestamp-millis"),
            "ffffffffffffffffff01",
            "long (timestamp-millis): out of range",
        ),
        (
            logical("bytes", "decimal", precision=4, scale=2),
            logical("bytes", "decimal", precision=9, scale=2),
            "04fb2e",
            -1234,
        ),
        (
            logical("bytes", "decimal", precision=9, scale=2),
            logical("bytes", "decimal", precision=2, scale=2),
            "02c8",
            -56,
        ),
        (
            logical("bytes", "decimal", precision=9, scale=2),
            logical("bytes", "decimal", precision=2, scale=2),
            "029c",
            "bytes (decimal(9, 2)): not a number of this precision",
        ),
    ],
)
def test_a_value_becomes_the_readers(writer: Any, reader: Any, value: str, expected: Any) -> None:
    (found,) = decode(writer, reader, value)
    if isinstance(expected, str) and ":" in expected:
        assert str(found).startswith(expected)
    else:
        assert found == expected


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_values_of_any_evolved_schema_are_what_fastavro_reads(source: Random) -> None:
    drawing = Drawing(source, multiple_unions=False)
    writer = drawing.record()
    reader = evolved(writer, source)
    values = [written(writer, drawing.value(writer)) for _ in range(source.randint(0, 3))]
    names: Names = source.choice(("any", "strict"))  # evolved schemas keep the names of their types
    decoder = Decoder([parse(json.dumps(writer))], parse(json.dumps(reader)), names=names)
    decoded = decoder.decode(pa.array(values, pa.binary()))
    decoded.array.validate(full=True)
    schemas = [fastavro.parse_schema(without_logical(each)) for each in (writer, reader)]
    read = [fastavro.schemaless_reader(io.BytesIO(each), *schemas) for each in values]
    assert plain(decoded.array) == [as_expected(reader, each) for each in read]


def test_fields_are_matched_by_name_or_alias_and_filled_with_defaults() -> None:
    writer = record(field("a", "int"), field("b", "string"), field("c", "boolean"))
    reader = record(
        field("new", record(field("x", "int", default=3), field("y", ["null", "int"]), name="X"), default={"y": None}),
        field("was_b", "string", aliases=["b"]),
        field("a", "long"),
        field("list", {"type": "array", "items": "string"}, default=["one", "two"]),
        field("data", "bytes", default="\u00ff\u0001"),
        field("kind", enum("A", "B"), default="B"),
        field("real", "float", default=1),
        name="Renamed",  # names of records need not match, as in Java
    )
    assert decode(writer, reader, "020478790100"[:10]) == [
        {
            "new": {"x": 3, "y": None},
            "was_b": "xy",
            "a": 1,
            "list": ["one", "two"],
            "data": b"\xff\x01",
            "kind": "B",
            "real": 1.0,
        }
    ]


OTHER_NAME = "has another name than the reader's"
X = [field("x", "int")]


def holding(kind: Any) -> dict[str, Any]:
    """Return a record with a field; all of them have one name."""
    return record(field("f", kind), name="Top")


@pytest.mark.parametrize(
    ("writer", "reader", "fault"),
    [
        (record(*X, name="a.Order"), record(*X, name="a.Order"), None),
        (record(*X, name="a.Order"), record(*X, name="Order", namespace="a"), None),
        (
            record(*X, name="a.Order"),
            record(*X, name="a.Payment"),
            f"the writer's record a.Order {OTHER_NAME} record a.P",
        ),
        (record(*X, name="a.Order"), record(*X, name="b.Order"), OTHER_NAME),
        (record(*X, name="a.Order"), record(*X, name="Order"), OTHER_NAME),
        (record(*X, name="Order"), record(*X, name="a.Order"), OTHER_NAME),
        (record(*X, name="a.Old"), record(*X, name="a.New", aliases=["Old"]), None),  # in the namespace a
        (record(*X, name="b.Old"), record(*X, name="a.New", aliases=["x", "b.Old"]), None),
        (record(*X, name="b.Old"), record(*X, name="a.New", aliases=["Old"]), OTHER_NAME),
        (record(*X, name="a.New", aliases=["a.Old"]), record(*X, name="a.Old"), OTHER_NAME),  # the writer's
        # types inside
        (holding(record(*X, name="One")), holding(record(*X, name="Two")), f"f: the writer's record One {OTHER_NAME}"),
        (
            holding({"type": "array", "items": record(*X, name="One")}),
            holding({"type": "array", "items": record(*X, name="Two")}),
            f"f[]: the writer's record One {OTHER_NAME}",
        ),
        (holding(enum("A", name="a.E")), holding(enum("A", name="b.E")), OTHER_NAME),
        (holding(fixed("a.F", 2)), holding(fixed("b.F", 2)), OTHER_NAME),
        (holding(fixed("a.F", 2)), holding(fixed("b.F", 2, aliases=["a.F"])), None),
        (holding("int"), holding("long"), None),
        # fields that are not read
        (record(*X, field("f", record(*X, name="One")), name="Top"), record(*X, name="Top"), None),
        # unions
        (record(*X, name="a.One"), ["null", record(*X, name="a.One")], None),
        (record(*X, name="b.One"), ["null", record(*X, name="a.One")], "is not in the reader's union"),
        (record(*X, name="b.One"), ["null", record(*X, name="a.One", aliases=["b.One"])], None),
    ],
)
def test_strict_names_are_full_names_or_the_readers_aliases(writer: Any, reader: Any, fault: str | None) -> None:
    """And fastavro reads what strict does; by default all of these can be read."""
    schemas = [parse(json.dumps(each)) for each in (writer, reader)]
    if fault is not None:
        with pytest.raises(InvalidSchema) as caught:
            Decoder([schemas[0]], schemas[1], names="strict")
        assert fault in str(caught.value)
        Decoder([schemas[0]], schemas[1])
        return
    from fastavro.utils import generate_one

    out = io.BytesIO()
    fastavro.schemaless_writer(out, writer, generate_one(writer))
    decoded = Decoder([schemas[0]], schemas[1], names="strict").decode(pa.array([out.getvalue()]))
    out.seek(0)
    assert decoded.array.to_pylist() == [fastavro.schemaless_reader(out, writer, reader)]


def test_with_strict_names_a_record_of_a_union_goes_to_the_branch_of_its_full_name_only() -> None:
    one, two, other = (record(field("x", "int"), name=each) for each in ("a.One", "a.Two", "b.Two"))
    writers = [parse(json.dumps(each)) for each in ([one, two], [one, other])]
    decoder = Decoder(writers, parse(json.dumps([one, two])), names="strict")
    decoded = decoder.decode(pa.array([bytes.fromhex("0202")] * 2), writer=[0, 1])
    assert decoded.array.to_pylist() == [{"member0": None, "member1": {"x": 1}}, None]
    assert decoded.errors.message(0).startswith("the writer's record b.Two cannot be read with the reader's schema")


def test_other_names_than_any_and_strict_are_refused() -> None:
    schema = parse('"int"')
    with pytest.raises(OptionError, match="names: expected one of any, strict, got 'STRICT'"):
        Decoder([schema], schema, names="STRICT")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["One", "Two"], 1),  # the name without its namespace
        (["One", "a.Two"], 1),
        (["a.Two", "One"], 0),
        (["One", "a.Two", "Three"], 1),
        (["One", "a.Two", "b.Two"], 2),  # Java's Resolver takes the last one
        (["a.Two", "x.Two"], 1),  # the full name
        (["x.Two", "a.Two"], 0),
        (["One", "Three"], 0),  # no name: the first that fits
    ],
)
def test_a_record_that_fits_several_branches_goes_to_the_one_of_its_name(names: list[str], expected: int) -> None:
    branches = [record(field("x", "int"), name=each) for each in names]
    (found,) = decode(record(field("x", "int"), name="x.Two"), branches, "02")
    assert found == {f"member{i}": {"x": 1} if i == expected else None for i in range(len(names))}


def test_a_branch_of_the_same_name_that_does_not_fit_is_passed_over() -> None:
    lacking = record(field("x", "int"), field("missing", "int"), name="a.Two")
    (found,) = decode(record(field("x", "int"), name="x.Two"), [lacking, record(field("x", "int"), name="One")], "02")
    assert found == {"member0": None, "member1": {"x": 1}}


def test_a_record_of_a_union_is_found_by_name_before_structure() -> None:
    one, two = record(field("x", "int"), name="One"), record(field("x", "int"), name="Two")
    assert decode(two, [one, two], "02") == [{"member0": None, "member1": {"x": 1}}]
    other = record(field("x", "int"), name="Other")
    assert decode(other, [one, two], "02") == [{"member0": {"x": 1}, "member1": None}]
    assert decode(other, ["null", record(field("y", "int"), name="No"), two], "02") == [
        {"member0": None, "member1": {"x": 1}}
    ]


@pytest.mark.parametrize(
    ("writer", "reader", "message"),
    [
        (record(field("a", "string")), record(field("a", "int")), "a: the writer's string cannot be read as int"),
        (record(), record(field("a", "int")), "a: the writer's record R lacks this field, and the reader's schema has"),
        (record(), record(field("a", "int", default="1")), "a: the default '1' does not fit int"),
        (record(), record(field("a", "int", default=2**31)), "a: the default 2147483648 does not fit int"),
        (
            record(),
            record(field("a", ["null", "int"], default="x")),
            "a: the default 'x' does not fit union of null, int",
        ),
        (
            {"type": "array", "items": "long"},
            {"type": "array", "items": "int"},
            "[]: the writer's long cannot be read as",
        ),
        (fixed("F", 2), fixed("F", 3), "fixed F: the writer's has 2 bytes, the reader's 3"),
        (fixed("F", 2), fixed("G", 2), "add an alias to the reader's"),
        ("string", ["null", "int"], "the writer's string is not in the reader's union of null, int"),
        (["null", "string"], "int", "the writer's null cannot be read as int"),
        (logical("int", "date"), logical("long", "timestamp-millis"), "cannot be read as"),
        (logical("long", "timestamp-nanos"), logical("long", "timestamp-micros"), "without loss"),
        (
            logical("bytes", "decimal", precision=4, scale=2),
            logical("bytes", "decimal", precision=4, scale=1),
            "has another scale",
        ),
    ],
)
def test_schemas_that_cannot_be_resolved_name_the_field(writer: Any, reader: Any, message: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        decode(writer, reader)
    assert message in str(caught.value)


def test_records_that_contain_themselves_can_be_skipped() -> None:
    tree = record(field("v", "int"), field("next", ["null", "R"]), field("list", {"type": "array", "items": "R"}))
    writer = record(field("tree", tree), field("id", "int"), name="Root")
    with pytest.raises(InvalidSchema, match=r"tree\.next: record R contains itself"):
        decode(writer, writer)
    leaf = "020000"
    nested = "02" + "02" + leaf + "02" + leaf + "00" + "54"
    assert decode(writer, record(field("id", "int"), name="Root"), nested) == [{"id": 42}]
    (found,) = decode(writer, record(field("id", "int"), name="Root"), "0202" * 5000)
    assert "nested too deep" in found
