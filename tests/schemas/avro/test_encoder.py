"""Encoded Avro compared with what fastavro writes and reads."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.schemas.avro.drawing import Drawing, fastavro, plain, written

from kwire import native
from kwire.errors import EncodeError, InvalidSchema, OptionError
from kwire.schemas.avro import Decoder, Encoder, parse, schema_of, schema_text
from kwire.schemas.plan_encoder import PlanEncoder


@pytest.fixture(params=["kernel", "plain Python"], autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain Python":
        monkeypatch.setattr(native, "LEVEL", None)
    elif native.LEVEL is None:
        pytest.skip("without compiled code")


def encoder(schema: Any, kind: pa.DataType | None = None) -> Encoder:
    return Encoder(parse(json.dumps(schema)), kind)


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": each} for name, each in fields.items()]}


def has_numeric_union(schema: Any) -> bool:
    """Return whether a schema has a union whose numbers share a column, so that the type is not known."""
    if isinstance(schema, list):
        kinds = {each if isinstance(each, str) else each["type"] for each in schema} - {"null"}
        return kinds in ({"int", "long"}, {"float", "double"}) or any(map(has_numeric_union, schema))
    if isinstance(schema, str):
        return False
    parts = [each["type"] for each in schema.get("fields", ())] + [
        schema[key] for key in ("items", "values") if key in schema
    ]
    return any(map(has_numeric_union, parts))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_decoded_values_are_encoded_as_fastavro_wrote_them(source: Random) -> None:
    drawing = Drawing(source)
    drawn = drawing.record() if source.random() < 0.7 else drawing.schema()
    schema = parse(json.dumps(drawn))
    data = [written(drawn, drawing.value(drawn)) for _ in range(source.randint(0, 4))]
    array = Decoder([schema], schema).decode(pa.array(data, pa.binary())).array
    start = source.randint(0, len(array))
    encoded = Encoder(schema).encode(array.slice(start), prefix=b"\0\1")
    encoded.array.validate(full=True)
    if has_numeric_union(drawn) or array.null_count:  # a union's null is a null value
        again = Decoder([schema], schema).decode(encoded.array, skip=2)
        assert plain(again.array) == plain(array)[start:]
    else:
        assert [encoded.errors.message(i) for i in range(len(encoded.errors))] == []
        assert encoded.array.to_pylist() == [b"\0\1" + each for each in data[start:]]


def test_values_of_other_widths_and_layouts_are_converted() -> None:
    schema = record(
        a="int", b="long", c="string", d="bytes", e={"type": "array", "items": "int"}, f="double",
        g={"type": "long", "logicalType": "timestamp-millis"}, h={"type": "enum", "name": "E", "symbols": ["X", "Y"]},
        i={"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, j=["null", "string"],
    )  # fmt: skip
    at = datetime(1969, 12, 31, 23, 59, 59, 999_500, UTC)
    columns = {
        "a": pa.array([7], pa.uint8()),
        "b": pa.array([-5], pa.int16()),
        "c": pa.array(["x"], pa.large_string()),
        "d": pa.array([b"yz"], pa.binary(2)),
        "e": pa.array([[1, 2]], pa.list_(pa.int64(), 2)),
        "f": pa.array([1.5], pa.float32()),
        "g": pa.array([at], pa.timestamp("us", "Europe/Helsinki")),
        "h": pa.array(["Y"]).dictionary_encode(),
        "i": pa.array([Decimal("-1.5")], pa.decimal128(5, 1)),
        "j": pa.array([None], pa.null()),
    }
    given_order = list(reversed(columns))
    values = pa.StructArray.from_arrays([columns[each] for each in given_order], given_order)
    encoded = encoder(schema, values.type).encode(values)
    known = fastavro.parse_schema(json.loads(json.dumps(schema)))
    assert fastavro.schemaless_reader(io.BytesIO(encoded.array[0].as_py()), known, None) == {
        "a": 7, "b": -5, "c": "x", "d": b"yz", "e": [1, 2], "f": 1.5, "h": "Y", "i": Decimal("-1.50"), "j": None,
        "g": at.replace(microsecond=999_000),  # rounded down
    }  # fmt: skip


def test_fields_without_a_column_have_their_default() -> None:
    schema = record(a="int")
    schema["fields"].append({"name": "b", "type": ["null", "string"], "default": None})
    schema["fields"].append({"name": "c", "type": "string", "default": "x"})
    values = pa.array([{"a": 1}, None])
    assert encoder(schema, values.type).encode(values).array.to_pylist() == [b"\2\0\2x", None]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (record(a="int"), {"a": None}, "a: null, but int has no null"),
        (record(a=record(b="int") | {"name": "I"}), {"a": {"b": None}}, "a.b: null, but int has no null"),
        (record(a={"type": "fixed", "name": "F", "size": 2}), {"a": b"x"}, "a: fixed F: value of another size"),
        (record(a={"type": "enum", "name": "E", "symbols": ["X"]}), {"a": "Z"}, "a: enum E: not one of the symbols"),
        (record(a=["int", "string"]), {"a": {"member0": 1, "member1": "x"}}, "more than one member is not null"),
        (record(a=["int", "string"]), {"a": {}}, "a: null, but union of int, string has no null"),
        (record(a={"type": "array", "items": "int"}), {"a": [1, None]}, "a[]: null, but int has no null"),
    ],
)
def test_a_value_that_does_not_fit_is_null_and_named(schema: Any, value: Any, message: str) -> None:
    of_schema = encoder(schema)
    values = pa.array([value, None, value], of_schema.type)
    encoded = of_schema.encode(values, prefix=b"12345")
    encoded.array.validate(full=True)
    assert encoded.array.to_pylist() == [None] * 3
    assert encoded.errors.rows.tolist() == [0, 2]
    assert message in encoded.errors.message(0)


@pytest.mark.parametrize(
    ("schema", "kind", "message"),
    [
        (record(a="int"), pa.struct([("a", pa.string())]), "a: string cannot be written as int"),
        (record(a="int"), pa.struct([("b", pa.int32())]), "column 'b' is not a field of the schema's record R"),
        (record(a="int"), pa.struct([]), "a: the column is missing, and the schema has no default for it"),
        (record(a="float"), pa.struct([("a", pa.float64())]), "a: double cannot be written as float"),
        (
            record(a={"type": "array", "items": "int"}),
            pa.struct([("a", pa.int32())]),
            "a: int32 cannot be written as array",
        ),
        (["int", "string"], pa.struct([("member2", pa.int32())]), "column 'member2' is not a member"),
        ("int", pa.struct([]), "cannot be written as int"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            pa.timestamp("us"),
            "timestamp[us] cannot be written as long (timestamp-millis)",
        ),
    ],
)
def test_types_that_do_not_fit_the_schema_are_refused(schema: Any, kind: pa.DataType, message: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        encoder(schema, kind)
    assert message in str(caught.value)


def test_numbers_that_cannot_be_converted_name_the_column() -> None:
    kind = pa.struct([("a", pa.int64())])
    with pytest.raises(EncodeError, match=r"a: integer value 4294967296 not in range"):
        encoder(record(a="int"), kind).encode(pa.array([{"a": 2**32}], kind))
    with pytest.raises(OptionError, match="expected struct"):
        encoder(record(a="int"), kind).encode(pa.array([1]))


def test_schemas_of_arrow_types_hold_their_values() -> None:
    kind = pa.struct(
        [
            ("a", pa.int8()), ("b", pa.uint32()), ("c", pa.large_string()), ("d", pa.list_(pa.float32())),
            ("e", pa.map_(pa.string(), pa.struct([("x", pa.bool_())]))), ("f", pa.timestamp("ns")),
            ("g", pa.decimal128(20, 3)), ("h", pa.date32()), ("i", pa.time64("us")), ("j", pa.binary()),
            ("k", pa.struct([("x", pa.timestamp("us", "UTC"))])), pa.field("l", pa.int64(), nullable=False),
        ]
    )  # fmt: skip
    value = {
        "a": -1, "b": 2**32 - 1, "c": "x", "d": [1.5, None], "e": [("k", {"x": True})], "f": 5, "g": Decimal("1.500"),
        "h": 3, "i": 7, "j": b"", "k": {"x": 1}, "l": 9,
    }  # fmt: skip
    values = pa.array([value, {"l": 1}], kind)
    schema = schema_of(kind, "Order", "shop")
    decoded = Decoder([schema], schema).decode(Encoder(schema, kind).encode(values).array).array
    assert decoded.to_pylist() == values.to_pylist()
    assert json.loads(schema_text(kind, "Order", "shop"))["namespace"] == "shop"
    with pytest.raises(InvalidSchema, match="a: Avro has no type for"):
        schema_of(pa.struct([("a", pa.duration("s"))]))


def drawn_array(source: Random) -> tuple[Any, pa.Array]:
    drawing = Drawing(source)
    drawn = drawing.record()
    schema = parse(json.dumps(drawn))
    data = [written(drawn, drawing.value(drawn)) for _ in range(3)]
    return schema, Decoder([schema], schema).decode(pa.array(data, pa.binary())).array


def test_output_grows_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    resize: Callable[..., pa.Buffer] = PlanEncoder.allocate
    monkeypatch.setattr(PlanEncoder, "allocate", lambda self, _: resize(self, 1))
    source = Random(5)
    for _ in range(30):
        schema, array = drawn_array(source)
        encoded = Encoder(schema).encode(array)
        assert plain(Decoder([schema], schema).decode(encoded.array).array) == plain(array)


@pytest.mark.parametrize(("number", "written"), [(127, b"\0\x7f"), (128, b"\0\x80"), (-129, b"\xff\x7f")])
def test_a_decimal_may_need_all_of_its_fixed_bytes(number: int, written: bytes) -> None:
    kind = {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4}
    numbers = pa.array([Decimal(number)], pa.decimal128(4, 0))
    assert encoder(kind).encode(numbers).array.to_pylist() == [written]
