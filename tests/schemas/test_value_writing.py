"""The kernels that encode Protobuf and JSON: random values, and values at the limits of a schema."""

from __future__ import annotations

import json
import math
import random
import struct
import subprocess
import sys
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from tests.compiled import needs_compiled_code
from tests.fuzz.avro import plain_python
from tests.fuzz.value_writing import run

from kwire.errors import EncodeError
from kwire.schemas.json_schema import Encoder, parse
from kwire.schemas.plan_encoder import source_words
from kwire.schemas.protobuf import Encoder as ProtobufEncoder
from kwire.schemas.protobuf import parse as parse_file

pytestmark = needs_compiled_code


def test_random_values_are_written_as_plain_python_and_others_write_them() -> None:
    run(600, seed=31)


@pytest.mark.slow
def test_many_random_values_are_written_as_plain_python_and_others_write_them() -> None:
    run(50_000, seed=32)


@pytest.mark.slow
def test_nothing_outside_of_buffers_is_touched() -> None:
    code = "from tests.fuzz.value_writing import run; run(600, 33, True)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def by_kernel(encoder: Encoder | ProtobufEncoder, array: pa.Array, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what the kernel writes, None for a row that it leaves or that is null."""

    def left(values: pa.Array) -> list[EncodeError]:
        return [EncodeError("left")] * len(values)

    monkeypatch.setattr(encoder._encoder, "_write", left)
    found: list[Any] = encoder.encode(array, b"").array.to_pylist()
    return found


def test_floats_are_written_as_msgspec_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(5)
    drawn = [struct.unpack("<d", source.randbytes(8))[0] for _ in range(5000)]
    drawn += [round(source.uniform(-1e4, 1e4), source.randrange(6)) for _ in range(5000)]
    drawn += [2.0**power for power in range(-1074, 1024)] + [10.0**power for power in range(-320, 309)]
    values = [each for each in [*drawn, 0.0, -0.0, sys.float_info.max] if math.isfinite(each)]
    encoder = Encoder(parse('{"type": "number"}'), pa.float64())
    assert by_kernel(encoder, pa.array(values), monkeypatch) == [msgspec.json.encode(each) for each in values]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_refused(value: float) -> None:
    (error,) = Encoder(parse('{"type": "number"}'), pa.float64()).encode(pa.array([value]), b"").errors
    assert error.what == f"{value} is not a number of JSON"


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": -5, "exclusiveMaximum": 7.5}, [-5, 7], [-6, 8]),
        ({"type": "integer", "exclusiveMinimum": 2, "maximum": 9}, [3, 9], [2, 10]),
        (
            {"type": "number", "minimum": 0.1, "exclusiveMaximum": 2},
            [0.1, math.nextafter(2, 0)],
            [0.09999999999999999, 2.0],
        ),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ["aü", "a\U0001f600b"], ["\U0001f600", "abcd"]),
        ({"type": "string", "enum": ["a", "ü"]}, ["a", "ü"], ["b", ""]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, [[1], [1, 2]], [[], [1, 2, 3]]),
        ({"type": "array", "items": {"type": "integer"}}, [[1]], [[None]]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, [[("a", 1)]], [[("a", None)]]),
    ],
)
def test_limits_are_checked_by_the_kernel(
    schema: Any, good: list[Any], bad: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = parse(json.dumps(schema))
    encoder = Encoder(parsed, parsed.root.type)
    array = pa.array(good + bad, parsed.root.type)
    with plain_python():
        wanted = encoder.encode(array, b"")
    assert [error.row for error in wanted.errors] == list(range(len(good), len(array)))
    assert by_kernel(encoder, array, monkeypatch) == wanted.array.to_pylist()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "a"},
        {"type": ["string", "null"], "enum": ["a"]},
        {"type": "number", "multipleOf": 1},
        {"allOf": [{"type": "string"}, {"maxLength": 1}]},
        {"$ref": "#/definitions/a", "maxLength": 1, "definitions": {"a": {"type": "string"}}},
        {"oneOf": [{"type": "string"}, {"type": ["null", "string"], "maxLength": 2}]},
        {"anyOf": [{"type": "null"}, {"type": "string"}], "maxLength": 1},
        {"type": "string", "not": {"const": "a"}},
        {"type": "number", "minimum": math.nan},
        {"type": "number", "maximum": -math.inf},
    ],
)
def test_schemas_with_more_keywords_are_left_to_plain_python(schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = parse(json.dumps(schema))
    value = pa.array(["abc"]) if parsed.root.type == pa.string() else pa.array([1.5])
    assert by_kernel(Encoder(parsed, value.type), value, monkeypatch) == [None]


def test_a_required_property_that_is_missing_or_null_is_an_error() -> None:
    schema = parse('{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {}}}')
    for kind, row in ((pa.struct([("a", pa.int64())]), {"a": None}), (pa.struct([("b", pa.string())]), {"b": "1"})):
        (error,) = Encoder(schema, kind).encode(pa.array([row], kind), b"").errors
        assert error.what == "'a' is a required property"


def test_properties_without_a_name_in_the_schema_are_refused_at_any_depth() -> None:
    schema = parse('{"properties": {"a": {"type": "array", "items": {"properties": {"b": {}}}}}}')
    with pytest.raises(EncodeError, match=r"a\.c: the schema has no such property"):
        Encoder(schema, pa.struct([("a", pa.list_(pa.struct([("c", pa.string())])))]))


def test_bodies_of_any_length_and_numbers_at_their_limits_are_written_by_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lengths of one, two and three bytes; 32 bits unsigned and one more."""
    file = 'syntax = "proto3"; message A { B b = 1; fixed32 n = 2; } message B { string s = 1; }'
    kind = pa.struct([("b", pa.struct([("s", pa.string())])), ("n", pa.int64())])
    rows = [{"b": {"s": "x" * size}, "n": 1} for size in (0, 1, 125, 126, 127, 16380, 16381, 16382)]
    rows += [{"b": None, "n": number} for number in (2**32 - 1, 2**32, -1)]
    encoder = ProtobufEncoder(parse_file(file).messages[0], kind)
    with plain_python():
        wanted = encoder.encode(pa.array(rows, kind), b"")
    assert [error.row for error in wanted.errors] == [9, 10]
    assert by_kernel(encoder, pa.array(rows, kind), monkeypatch) == wanted.array.to_pylist()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_any_unit_are_the_same_message(unit: str) -> None:
    file = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp t = 1; }'
    kind = pa.struct([("t", pa.timestamp(unit, "UTC"))])
    rows = pa.array([{"t": 1_767_225_600 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]}], kind)
    encoded = ProtobufEncoder(parse_file(file).messages[0], kind).encode(rows, b"")
    assert encoded.array.to_pylist() == [bytes.fromhex("0a060880f2d6ca06")]  # of google.protobuf


def test_two_members_of_a_oneof_and_null_in_a_list_are_errors() -> None:
    file = 'syntax = "proto3"; message A { oneof o { int32 a = 1; string b = 2; } repeated int32 c = 3; }'
    kind = pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.int32()))])
    rows = [{"a": 0, "b": None, "c": [1, 300]}, {"a": 1, "b": "", "c": []}, {"a": None, "b": None, "c": [None]}]
    found = ProtobufEncoder(parse_file(file).messages[0], kind).encode(pa.array(rows, kind), b"")
    assert found.array.to_pylist() == [bytes.fromhex("08001a0301ac02"), None, None]
    assert [error.what for error in found.errors] == [
        "b: oneof 'o' has a value already, 'a'",
        "c: a list with null; Protobuf has no null elements",
    ]


def test_kernels_get_no_null_pointer_for_bytes() -> None:
    for array in (pa.array([], pa.string()), pa.nulls(2, pa.binary()), pa.array(["", ""])):
        assert source_words(array)[2]
