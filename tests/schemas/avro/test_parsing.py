"""Avro schemas from JSON: names, references, logical types, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwire.errors import InvalidSchema
from kwire.schemas.avro import Logical, Schema, parse
from kwire.schemas.avro.defaults import zigzag


def schema(value: Any, **references: Any) -> Schema:
    return parse(json.dumps(value), {name: json.dumps(each) for name, each in references.items()})


def record(*fields: Any, **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields)} | attributes


def test_names_are_in_the_namespace_around_them() -> None:
    found = schema(
        record(
            {"name": "a", "type": {"type": "fixed", "name": "F", "size": 2}},
            {"name": "b", "type": {"type": "enum", "name": "other.E", "symbols": ["X"], "aliases": ["Old", "n.Older"]}},
            {"name": "c", "type": {"type": "fixed", "name": "G", "namespace": "", "size": 2}},
            {"name": "d", "type": ["null", "F", "other.E", "G", "ns.R"]},
            namespace="ns",
            aliases=["Former"],
        )
    )
    assert (found.name, found.short_name, found.aliases) == ("ns.R", "R", ("ns.Former",))
    assert [each.schema.name for each in found.fields] == ["ns.F", "other.E", "G", ""]
    assert found.fields[1].schema.aliases == ("other.Old", "n.Older")
    assert found.fields[3].schema.branches[4] is found


def test_references_define_types_that_use_each_other() -> None:
    address = {"type": "record", "name": "shop.Address", "fields": [{"name": "country", "type": "Country"}]}
    country = {"type": "enum", "name": "Country", "namespace": "shop", "symbols": ["FI", "SE"]}
    found = schema(
        record({"name": "to", "type": "shop.Address"}, {"name": "of", "type": "shop.Country"}),
        **{"shop.Address": address, "shop.Country": country},
    )
    assert found.fields[0].schema.fields[0].schema is found.fields[1].schema
    parsed = parse('{"type": "array", "items": "shop.Country"}', {"shop.Country": found.fields[1].schema})
    assert parsed.items.symbols == ("FI", "SE")


@pytest.mark.parametrize(
    ("kind", "attributes", "expected"),
    [
        ("int", {"logicalType": "date"}, Logical(name="date")),
        ("long", {"logicalType": "date"}, None),  # invalid ones are ignored, as the specification says
        ("long", {"logicalType": "timestamp-nanos"}, Logical(name="timestamp-nanos")),
        ("string", {"logicalType": "uuid"}, Logical(name="uuid")),
        (
            "bytes",
            {"logicalType": "decimal", "precision": 4, "scale": 2},
            Logical(name="decimal", precision=4, scale=2),
        ),
        ("bytes", {"logicalType": "decimal", "precision": 4}, Logical(name="decimal", precision=4, scale=0)),
        ("bytes", {"logicalType": "decimal", "precision": 4, "scale": 5}, None),
        ("bytes", {"logicalType": "decimal", "precision": 0}, None),
        ("bytes", {"logicalType": "decimal"}, None),
        ("fixed", {"logicalType": "decimal", "precision": 4, "size": 2}, Logical(name="decimal", precision=4)),
        ("fixed", {"logicalType": "decimal", "precision": 5, "size": 2}, None),
        ("fixed", {"logicalType": "duration", "size": 12}, Logical(name="duration")),
        ("fixed", {"logicalType": "duration", "size": 11}, None),
        ("long", {"logicalType": "unheard-of"}, None),
    ],
)
def test_logical_types(kind: str, attributes: dict[str, Any], expected: Logical | None) -> None:
    assert schema({"type": kind, "name": "N"} | attributes).logical == expected


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (record({"name": "a", "type": "strin"}), "R.a: unknown type 'strin' (did you mean 'string'?)"),
        (record({"name": "a", "type": "other.Type"}), "pass schemas that are defined elsewhere as references"),
        (record({"name": "a"}), "R.a: type of the field missing"),
        (record({"type": "int"}), "R: field without a name"),
        (record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "R.a: field defined twice"),
        (record({"name": "a", "type": [["int"]]}), "R.a: a union in a union"),
        (record({"name": "a", "type": ["int", {"type": "int"}]}), "R.a: union has int twice"),
        (record({"name": "a", "type": "int", "aliases": "b"}), "R.a: aliases: expected an array of names, got 'b'"),
        ({"type": "record", "name": "R"}, "R: fields missing"),
        ({"type": "record", "fields": []}, "name of a record missing"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "E: symbols: one is listed twice"),
        (ENUM | {"default": "C"}, "E: default 'C' is not one of the symbols"),
        ({"type": "fixed", "name": "F", "size": -1}, "F: size of a fixed: expected a number of bytes, got -1"),
        ({"type": "fixed", "name": "int", "size": 1}, "has the name of a primitive type"),
        ({"type": "array"}, "items missing"),
        ({"items": "int"}, "type missing"),
        (7, "expected a type: a name, an array or an object, got 7"),
        ([ENUM, {"type": "array", "items": ENUM | {"symbols": ["C"]}}], "E: defined twice, with different contents"),
    ],
)
def test_invalid_schemas_name_the_field(value: Any, message: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        schema(value)
    assert message in str(caught.value)


def test_an_equal_definition_may_be_repeated() -> None:
    parsed = schema([ENUM, {"type": "array", "items": ENUM}])
    assert parsed.branches[0] is parsed.branches[1].items


@pytest.mark.parametrize("text", ["", "{", "[1,", "\ud800", "[" * 5000, '{"type":' * 5000])
def test_text_that_is_not_a_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(text)


def test_deep_schemas_are_refused() -> None:
    deep: Any = "int"
    for _ in range(300):
        deep = {"type": "array", "items": deep}
    with pytest.raises(InvalidSchema, match="nested more than 150 levels deep"):
        schema(deep)


@pytest.mark.parametrize(("levels", "is_refused"), [(150, False), (151, True)])
def test_the_deepest_schema_that_is_taken(levels: int, is_refused: bool) -> None:
    deep: Any = "int"
    for _ in range(levels):
        deep = {"type": "array", "items": deep}
    if is_refused:
        with pytest.raises(InvalidSchema, match="nested more than 150 levels deep"):
            schema(deep)
    else:
        assert schema(deep).type == "array"


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, b"\0"),
        (-1, b"\1"),
        (63, b"\x7e"),
        (-64, b"\x7f"),
        (64, b"\x80\1"),
        (-8192, b"\xff\x7f"),
        (8192, b"\x80\x80\1"),
    ],
)
def test_numbers_of_defaults_are_written_in_the_fewest_bytes(number: int, data: bytes) -> None:
    assert zigzag(number) == data
