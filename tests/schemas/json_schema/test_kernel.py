"""The kernel of JSON: random schemas and values compared with plain Python, and odd but legal JSON."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.compiled import needs_compiled_code
from tests.fuzz.json_values import left_to_python, run

from kwire.schemas.json_schema import Decoder, parse

pytestmark = needs_compiled_code


def decoder(schema: Any) -> Decoder:
    return Decoder(parse(json.dumps(schema)))


def decode(schema: Any, *values: bytes | str) -> list[Any]:
    """Decode values that the kernel reads by itself, and of which nothing is wrong."""
    data, made = [each.encode() if isinstance(each, str) else each for each in values], decoder(schema)
    found = made.decode(pa.array(data, pa.binary()), np.zeros(len(data), np.int64), np.zeros(len(data), np.int32))
    found.array.validate(full=True)
    assert not found.errors
    assert not left_to_python(made, data)
    rows: list[Any] = found.array.to_pylist()
    return rows


def properties(**kinds: Any) -> Any:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}


def test_values_of_random_schemas_are_those_of_plain_python() -> None:
    run(10_000, seed=21)


@pytest.mark.slow
def test_many_values_of_random_schemas_are_those_of_plain_python() -> None:
    run(1_000_000, seed=22)


def test_nothing_outside_of_buffers_is_touched() -> None:
    code = "from tests.fuzz.json_values import run; run(1000, 23, True)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_numbers_are_rounded_as_python_does() -> None:
    source, texts = random.Random(3), ["0.0", "-0.0", "9007199254740993.0", "1e22", "1E-22", "123456789012345678.5"]
    for _ in range(30_000):
        digits = source.randrange(10 ** source.randint(1, 17))
        texts += [
            repr(source.uniform(0.001, 5)),
            f"{digits}.{source.randrange(100)}",
            f"0.{digits:017}",
            f"-{digits}e-1",
        ]
    found = decode({"type": "number"}, *texts)
    wrong = [each for each, value in zip(texts, found, strict=True) if value != float(each)]
    assert wrong == []
    assert math.copysign(1, found[1]) == -1


def test_integers_of_the_whole_range() -> None:
    texts = ["0", "9223372036854775807", "-9223372036854775808", " 7\n", "null"]
    assert decode({"type": "integer"}, *texts) == [0, 2**63 - 1, -(2**63), 7, None]


def test_properties_in_any_order_with_spaces_and_others() -> None:
    schema = properties(a="integer", bb="string", c="boolean", d=["number", "null"])
    text = '\t{ "x" : [ {"y": "\\u00e9\\n"}, 1.5e3 , null ] ,\r\n"d":1,"bb" : "ü","":{},"a" : 2 , "c":true } '
    assert decode(schema, text, "{}", '{"c":false}') == [
        {"a": 2, "bb": "ü", "c": True, "d": 1.0},
        {"a": None, "bb": None, "c": None, "d": None},
        {"a": None, "bb": None, "c": False, "d": None},
    ]


def test_escape_sequences_of_strings() -> None:
    texts = ["", '"\\/\b\f\n\r\t', "é€\U0001f600\0", "ascii only, and longer than a word", "x" * 7 + '"', "\x7f"]
    written = [json.dumps(each) for each in texts] + ['"\\/\\u004A\\ud83D\\uDE00"']
    assert decode({"type": "string"}, *written) == [*texts, "/J\U0001f600"]


def test_maps_lists_and_text() -> None:
    schema = {
        "type": "object",
        "properties": {
            "tags": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
            "any": {},
        },
    }
    many = {f"key {n}": [n, None] for n in range(300)}
    value = {"tags": many, "any": {"a": [1, {"b": None}, "é"], "c": {}}}
    (row, other) = decode(schema, json.dumps(value, ensure_ascii=False, indent=2), '{"any": [ ], "tags": {"": []}}')
    assert row == {"tags": list(many.items()), "any": '{"a":[1,{"b":null},"é"],"c":{}}'}
    assert other == {"tags": [("", [])], "any": "[]"}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (properties(a="integer"), '{"a": 1, "a": 2}', {"a": 2}),
        (properties(a="integer"), '{"\\u0061": 1}', {"a": 1}),
        (properties(a="integer"), '{"a": 1e2}', {"a": 100}),
        (properties(a="number"), '{"a": 0.1234567890123456789012}', {"a": 0.12345678901234568}),
        (properties(a="number"), '{"a": 1e-300}', {"a": 1e-300}),
        (properties(a="number"), '{"a": -0}', {"a": 0.0}),
        ({"type": "object", "additionalProperties": {}}, '{"a": 1, "b": 2, "a": 3}', [("a", "3"), ("b", "2")]),
        ({}, '{"a": 1.50, "b": "\\u00e9"}', '{"a":1.5,"b":"é"}'),
        ({}, '{"a": 1, "a": 2}', '{"a":2}'),
    ],
)
def test_rare_forms_are_left_to_plain_python(schema: Any, text: str, value: Any) -> None:
    made, data = decoder(schema), [b"null", text.encode(), b"null"]
    found = made.decode(pa.array(data), np.zeros(3, np.int64), np.zeros(3, np.int32))
    assert found.array.to_pylist() == [None, value, None]
    assert left_to_python(made, data) == [1]


def test_twenty_digits_do_not_become_another_number() -> None:
    """2^64 is 0 in 64 bits."""
    made, data = decoder({"type": "number"}), [str(k * 2**64).encode() for k in range(1, 6)]
    found = made.decode(pa.array(data), np.zeros(5, np.int64), np.zeros(5, np.int32))
    assert found.array.to_pylist() == [float(k * 2**64) for k in range(1, 6)]


def test_objects_with_many_properties() -> None:
    schema = properties(**{f"p{n}": "integer" for n in range(1000)})
    wanted = {f"p{n}": n for n in range(1000)}
    shuffled = random.Random(1).sample(list(wanted.items()), 1000)
    assert decode(schema, json.dumps(dict(shuffled))) == [wanted]


def test_values_that_are_nested_deeply() -> None:
    """Skipped values and text may be as deep as plain Python allows; the kernel leaves what is deeper than 200."""
    made = decoder(properties(a="integer", b="string") | {"properties": {"a": {"type": "integer"}, "t": {}}})
    for depth in (100, 300, 2_000_000):
        deep = "[" * depth + "]" * depth
        data = [f'{{"x": {deep}, "a": 1}}'.encode(), f'{{"t": {deep}}}'.encode()]
        found = made.decode(pa.array(data), np.zeros(2, np.int64), np.zeros(2, np.int32))
        if depth < 1000:
            assert found.array.to_pylist() == [{"a": 1, "t": None}, {"a": None, "t": deep}]
        else:
            assert [error.what[:8] for error in found.errors] == ["not JSON"] * 2
