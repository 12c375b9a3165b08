"""Values described by JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwire.errors import EncodeError, InvalidSchema
from kwire.schemas.json_schema import Decoder, Encoder, parse
from kwire.schemas.json_schema.parsing import MAX_DEPTH, MAX_TEXT_CHARACTERS

ORDER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "price": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "name": {"type": ["string", "null"]},
        "state": {"enum": ["new", "paid"]},
        "paid": {"type": "boolean"},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/Line"}},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "other": {},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "parent": {"$ref": "#"},
        "base": {"allOf": [{"$ref": "#/definitions/Line"}, {"properties": {"extra": {"type": "integer"}}}]},
    },
    "definitions": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}}}},
}


def decode(schema: Any, *values: bytes | None, references: Any = None) -> Any:
    decoder = Decoder(parse(json.dumps(schema), references))
    return decoder.decode(
        pa.array(values, pa.binary()), np.zeros(len(values), np.int64), np.zeros(len(values), np.int32)
    )


def test_the_type_follows_the_schema() -> None:
    line = pa.struct([("sku", pa.string())])
    assert Decoder(parse(json.dumps(ORDER))).type == pa.struct(
        [
            ("id", pa.int64()),
            ("price", pa.float64()),
            ("name", pa.string()),
            ("state", pa.string()),
            ("paid", pa.bool_()),
            ("lines", pa.list_(pa.field("element", line))),
            ("tags", pa.map_(pa.string(), pa.string())),
            ("other", pa.string()),
            ("either", pa.string()),
            ("parent", pa.string()),
            ("base", pa.struct([("sku", pa.string()), ("extra", pa.int64())])),
        ]
    )


def test_values_become_columns_and_the_rest_json_text() -> None:
    value = {
        "id": 1.0,
        "price": 2,
        "name": None,
        "lines": [{"sku": "é"}, None],
        "tags": {"a": "b"},
        "other": [1, {"x": None}],
        "either": 5,
        "parent": {"id": 2},
        "unknown": 1,
    }
    decoded = decode(ORDER, json.dumps(value).encode(), b"{}", b" null ", None)
    assert not decoded.errors
    first, second, third, fourth = decoded.array.to_pylist()
    assert first == {
        "id": 1,
        "price": 2.0,
        "name": None,
        "state": None,
        "paid": None,
        "lines": [{"sku": "é"}, None],
        "tags": [("a", "b")],
        "other": '[1,{"x":null}]',
        "either": "5",
        "parent": '{"id":2}',
        "base": None,
    }
    assert set(second.values()) == {None}
    assert third is fourth is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b'{"id": "x"}', "id: expected an integer, got a string"),
        (b'{"id": 1.5}', "id: expected an integer, got a number"),
        (b'{"id": true}', "id: expected an integer, got a boolean"),
        (b'{"id": 9223372036854775808}', "id: out of the range of 64 bits"),
        (b'{"lines": [{"sku": 1}]}', "lines[0].sku: expected a string, got a number"),
        (b'{"tags": []}', "tags: expected an object, got an array"),
        (b'{"lines": {}}', "lines: expected an array, got an object"),
        (b"[]", "expected an object, got an array"),
        (b'{"id": 1} x', "not JSON"),
        (b'{"id": 1', "not JSON"),
        (b"", "not JSON"),
        (b'{"name": "\xff"}', "not JSON"),
        (b'{"other": ' + b"[" * 100_000, "not JSON"),
    ],
)
def test_values_of_other_types_are_errors_of_their_rows(value: bytes, message: str) -> None:
    decoded = decode(ORDER, b"{}", value)
    assert decoded.array.is_null().to_pylist() == [False, True]
    (error,) = decoded.errors
    assert error.row == 1
    assert message in error.what


def test_references_are_found_by_name_and_by_id() -> None:
    schema = {
        "$id": "http://example.org/order.json",
        "type": "object",
        "properties": {"a": {"$ref": "line.json"}, "b": {"$ref": "defs.json#/$defs/B"}},
    }
    references = {
        "http://example.org/line.json": '{"type": "object", "properties": {"sku": {"type": "string"}}}',
        "defs.json": '{"$defs": {"B": {"$ref": "#/$defs/C"}, "C": {"type": "integer"}}}',
    }
    decoded = decode(schema, b'{"a": {"sku": "x"}, "b": 2}', references=references)
    assert decoded.array.to_pylist() == [{"a": {"sku": "x"}, "b": 2}]


STRING = {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$id": "http://x/y.json", "properties": {"a": {"$ref": "http://x/y.json#/definitions/s"}}},
        {"$id": "http://x/y.json", "properties": {"a": {"$ref": "y.json#/definitions/s"}}},
        {"$id": "http://x/y.json#", "properties": {"a": {"$ref": "#/definitions/s"}}},
        {"properties": {"a": {"$ref": "#named"}}},
        {"$id": "http://x/y.json", "properties": {"a": {"$ref": "http://x/y.json#named"}}},
        {"properties": {"a": {"$ref": "#old"}}},
        {"$id": "http://x/y/", "properties": {"a": {"$ref": "inner.json"}}},
        {"$id": "http://x/y/", "properties": {"a": {"$ref": "inner.json#/definitions/deep"}}},
        {"$id": "http://x/y/", "properties": {"a": {"$ref": "inner.json#/definitions/again"}}},
        {"properties": {"a": {"type": "string", "pattern": r"^\\p{L}+$"}}},
        {"properties": {"a": {"type": "string", "pattern": "(?<year>[0-9]{4})"}}},
        {"properties": {"a": {"type": "string", "format": "regex", "pattern": "["}}},
    ],
    ids=lambda each: json.dumps(each),
)
def test_properties_are_read_whose_schema_has_an_id_an_anchor_or_any_pattern(schema: Any) -> None:
    inner = {
        "$id": "inner.json",
        "type": "string",
        "definitions": {"deep": STRING, "again": {"$ref": "#/definitions/deep"}},
    }
    definitions = {"s": STRING, "t": {"$anchor": "named"} | STRING, "u": {"$id": "#old"} | STRING, "v": inner}
    decoded = decode(schema | {"definitions": definitions}, b'{"a": "x"}', b'{"a": 1}')
    assert decoded.array.type == pa.struct([("a", pa.string())])
    assert decoded.array.to_pylist() == [{"a": "x"}, None]


def test_values_are_not_taken_for_schemas() -> None:
    schema = {"properties": {"a": {"$ref": "#x"}}, "const": {"$anchor": "x", "type": "integer"}}
    with pytest.raises(InvalidSchema, match="'#x': nothing is there"):
        parse(json.dumps(schema))


def test_a_faulty_place_that_only_a_reference_leads_to_has_no_type() -> None:
    references = {"r": '{"x": {"properties": 5, "type": [[1]], "enum": 3}}'}
    for schema in ({"$ref": "r#/x"}, {"allOf": [{"$ref": "r#/x"}]}):
        assert parse(json.dumps(schema), references).root.kind == "any"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('{"properties": {"\\ud800": {}}}', r"the property '.ud800' has half a surrogate pair in its name"),
        ('{"$ref": "http://[x"}', r"'http://\[x' is not a URL: Invalid IPv6 URL"),
        ('{"$id": "http://[x"}', r"'http://\[x' is not a URL"),
        ("{", "not JSON"),
        ("5", "a JSON schema has to be an object, true or false"),
        ('{"type": "integr"}', "type: 'integr' is not valid"),
        ('{"properties": {"a": {"$ref": "#/nope"}}}', r"\$ref '#/nope': nothing is there"),
        ('{"$ref": "x.json"}', r"\$ref 'x.json': no reference has this name"),
        ('{"$ref": "#"}', "circular references"),
        ('{"items": ' * 5000 + "{}" + "}" * 5000, "nested too deep|not JSON"),
    ],
)
def test_faults_of_schemas_are_named(schema: str, message: str) -> None:
    with pytest.raises(InvalidSchema, match=message):
        parse(schema)


def test_a_schema_of_the_longest_text_is_read() -> None:
    schema = json.dumps({"type": "string", "title": "x"})
    longest = schema + " " * (MAX_TEXT_CHARACTERS - len(schema))
    assert parse(longest).root.kind == "string"
    with pytest.raises(InvalidSchema, match=f"{MAX_TEXT_CHARACTERS + 1} characters, the limit is"):
        parse(longest + " ")


@pytest.mark.parametrize(
    "around",
    [
        lambda inner: {"type": "object", "properties": {"a": inner}},
        lambda inner: {"type": "object", "additionalProperties": inner},
        lambda inner: {"type": "array", "items": inner},
    ],
    ids=["properties", "additionalProperties", "items"],
)
def test_schemas_are_nested_up_to_the_limit(around: Callable[[Any], Any]) -> None:
    schema: Any = {"type": "string"}
    for _ in range(MAX_DEPTH):
        schema = around(schema)
    parse(json.dumps(schema))
    with pytest.raises(InvalidSchema, match=f"nested more than {MAX_DEPTH} deep"):
        parse(json.dumps(around(schema)))


@pytest.mark.parametrize("word", ["oneOf", "anyOf"])
def test_null_is_allowed_where_a_branch_is_null(word: str) -> None:
    alone = parse(json.dumps({word: [{"type": "string"}]}))
    with_null = parse(json.dumps({word: [{"type": "string"}, {"type": "null"}]}))
    assert (alone.root.kind, alone.root.takes_null) == ("string", False)
    assert (with_null.root.kind, with_null.root.takes_null) == ("string", True)


@pytest.mark.slow
def test_types_that_grow_without_end_are_refused() -> None:
    definitions = {
        f"M{i}": {"properties": {name: {"$ref": f"#/definitions/M{i + 1}"} for name in "ab"}} for i in range(40)
    }
    definitions["M40"] = {"type": "object"}  # type: ignore[dict-item]
    with pytest.raises(InvalidSchema, match="more than 100000 schemas"):
        parse(json.dumps({"$ref": "#/definitions/M0", "definitions": definitions}))


def test_encoded_values_are_checked_against_the_schema() -> None:
    schema = parse(json.dumps(ORDER))
    kind = pa.struct([("id", pa.int64()), ("name", pa.string()), ("state", pa.string()), ("other", pa.string())])
    rows = [
        {"id": 1, "name": None, "state": None, "other": '{"x": [1]}'},
        {"id": 1, "state": "sold"},
        {"state": "new"},
        None,
        {"id": 1, "other": "{"},
    ]
    encoded = Encoder(schema, kind).encode(pa.array(rows, kind), b"p")
    assert encoded.array.to_pylist() == [b'p{"id":1,"name":null,"other":{"x":[1]}}', None, None, None, None]
    assert [(row, what[:30]) for row, _, what in encoded.errors] == [
        (1, "state: 'sold' is not one of ['"),
        (2, "'id' is a required property"),
        (4, "other: expected JSON text: Inp"),
    ]
    with pytest.raises(EncodeError, match="nope: the schema has no such property"):
        Encoder(schema, pa.struct([("nope", pa.int64())]))


def test_columns_choose_the_properties() -> None:
    decoder = Decoder(parse(json.dumps(ORDER)), ["name", "id"])
    array = decoder.decode(
        pa.array([b'{"id": 1, "paid": "not read"}']), np.zeros(1, np.int64), np.zeros(1, np.int32)
    ).array
    assert array.to_pylist() == [{"name": None, "id": 1}]
    with pytest.raises(InvalidSchema, match=r"no property 'nam' .did you mean 'name'"):
        Decoder(parse(json.dumps(ORDER)), ["nam"])
