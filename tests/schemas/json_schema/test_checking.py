"""Values checked against a whole schema: with the outcome of jsonschema, and in bounded time."""

from __future__ import annotations

import json
import time
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from tests.sampling import mostly_slow

from kwire.errors import EncodeError
from kwire.schemas.json_schema import Encoder, parse
from kwire.schemas.json_schema.checking import Checker

DRAFT_7, DRAFT_2020 = "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"
SECONDS = 20


def fault(schema: Any, value: Any, references: dict[str, Any] | None = None) -> str | None:
    """Return what is wrong with a value."""
    texts = {name: json.dumps(each) for name, each in (references or {}).items()}
    try:
        Checker(parse(json.dumps(schema), texts)).check(value, len(json.dumps(value)))
    except EncodeError as error:
        return str(error)
    return None


VALUES: list[Any] = [None, True, 0, 1, 1.0, 2.5, "", "a", "ab", "b1", [], [1, 1.0], [1, True], [0, False], [[1], [1]]]
VALUES += [[{"a": 1}, {"a": 1.0}], [{"a": 1}, {"a": True}], [{"a": 1, "b": 2}, {"b": 2, "a": 1}], {}, {"a": 1}]
VALUES += [{"a": "x", "b1": 2}, {"b1": "x"}, {"c": 1}, {"a": {"a": {"a": 1}}}, {"a": [1, "x"], "c": {"b2": None}}]
SCHEMAS: list[Any] = [
    {"uniqueItems": True},
    {"uniqueItems": False},
    {"pattern": "^[ab]+$"},
    {"pattern": "1"},
    {"patternProperties": {"^b": {"type": "integer"}, "[0-9]": {"minimum": 1}}},
    {"patternProperties": {"^b": True}, "properties": {"a": {}}, "additionalProperties": False},
    {"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {
        "anyOf": [{"type": "integer"}, {"pattern": "a"}, {"$ref": "#/definitions/d"}],
        "definitions": {"d": {"maxItems": 1}},
    },
    {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False},
    {
        "$id": "http://x/y.json",
        "properties": {"a": {"$ref": "http://x/y.json#/definitions/d"}},
        "definitions": {"d": False},
    },
    {"not": {"required": ["a"]}},
    {"properties": {"a": {"$schema": DRAFT_7, "pattern": "^y"}}},
    True,
    False,
]


@pytest.mark.parametrize("dialect", [None, DRAFT_7, DRAFT_2020, "http://json-schema.org/draft-04/schema#"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda each: json.dumps(each)[:50])
def test_values_are_refused_that_jsonschema_refuses(schema: Any, dialect: str | None) -> None:
    if isinstance(schema, bool) and dialect is not None:
        pytest.skip("true and false name no dialect")
    if "draft-04" in (dialect or "") and any(word in json.dumps(schema) for word in ("true", "false", "$id")):
        pytest.skip("draft 4 has no boolean schemas, and id for $id")
    given = schema if dialect is None else {"$schema": dialect} | schema
    judge = jsonschema.validators.validator_for(given, jsonschema.Draft7Validator)(given)
    assert [fault(given, each) is None for each in VALUES] == [judge.is_valid(each) for each in VALUES]


def test_unevaluated_properties_are_checked_unless_patterns_take_part() -> None:
    schema = {"$schema": DRAFT_2020, "allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}
    assert fault(schema, {"a": 1}) is None
    assert "Unevaluated properties are not allowed" in str(fault(schema, {"b": 1}))
    beside = schema | {"patternProperties": {"^(b+)+$": {}}}
    assert fault(beside, {"a": 1}) == "unevaluatedProperties cannot be checked in a schema with patternProperties"


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^\p{L}+$", "é", "é1"),
        (r"^\p{Script=Greek}|^[α-ω]+$", None, None),  # RE2 has Greek without "Script="
        (r"^\u0041\u{1F600}$", "A\N{GRINNING FACE}", "u0041"),
        (r"^\\u0041$", "\\u0041", "A"),
        (r"^a$", "a", "a\n"),  # in JavaScript the end is the end
        (r"^\d$", "1", "\N{ARABIC-INDIC DIGIT THREE}"),
        (r"^(?=a)", None, None),
        (r"^(a)\1$", None, None),
        (r"(", None, None),
    ],
)
def test_patterns_are_javascripts(pattern: str, matching: str | None, other: str | None) -> None:
    schema = {"type": "string", "pattern": pattern}
    if matching is None:
        assert f"the schema's pattern {pattern!r} cannot be checked: " in str(fault(schema, "a"))
        return
    assert fault(schema, matching) is None
    assert "does not match" in str(fault(schema, other))


LETTERS = "a" * 40 + "b"
WIDE = {f"d{i}": {"anyOf": [{"$ref": f"#/definitions/d{i + 1}"}] * 4} for i in range(12)} | {"d12": {"type": "integer"}}


@pytest.mark.parametrize("dialect", mostly_slow([DRAFT_2020, DRAFT_7]))
@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"pattern": "^(a+)+$"}, LETTERS, "does not match"),
        ({"patternProperties": {"^(a+)+$": False}}, {LETTERS: 1}, None),
        ({"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {LETTERS: 1}, "was unexpected"),
        ({"propertyNames": {"pattern": "^(a+)+$"}}, {LETTERS: 1}, "does not match"),
        ({"anyOf": [{"$ref": "#/definitions/d0"}]}, "x", "more than 100000 steps"),
        ({"anyOf": [{"$ref": "#/definitions/e"}]}, "x", "more than 100000 steps"),
        ({"uniqueItems": True}, [{"a": i} for i in range(50_000)], None),
        ({"allOf": [{"$ref": "#"}]}, 1, "refers to itself without end"),
        ({"anyOf": [{"$ref": "#"}]}, 1, "refers to itself without end"),
        ({"not": {"$ref": "nope.json"}}, 1, "the schema's $ref 'nope.json' leads nowhere; register it as a reference"),
        ({"not": {"$ref": "#/definitions/nope"}}, 1, "leads nowhere"),
    ],
)
def test_no_schema_takes_long_or_raises_other_errors(
    dialect: str, schema: Any, value: Any, message: str | None
) -> None:
    definitions = WIDE | {"e": {"$schema": dialect, "anyOf": [{"$ref": "#/definitions/d0"}]}}
    before = time.process_time()
    found = fault({"$schema": dialect, "definitions": definitions} | schema, value)
    assert time.process_time() - before < SECONDS
    assert found is None if message is None else message in str(found)


def test_a_large_value_may_take_more_steps() -> None:
    schema = {"items": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}}}
    assert fault(schema, [{"name": "x"}] * 100_000) is None


def test_a_dynamic_reference_that_leads_nowhere_is_an_error_of_its_value() -> None:
    assert "leads nowhere" in str(fault({"$schema": DRAFT_2020, "$dynamicRef": "#nope"}, 1))


def test_references_relative_to_the_schemas_id_are_followed() -> None:
    schema = {
        "$id": "http://e/o.json",
        "properties": {"a": {"$ref": "line.json"}, "b": {"$ref": "http://e/o.json#/$defs/b"}},
    }
    schema |= {"$defs": {"b": {"type": "string"}}}
    line = {"line.json": {"$schema": DRAFT_7, "type": "integer"}}
    assert fault(schema, {"a": 1, "b": "x"}, line) is None
    assert "a: 'x' is not of type 'integer'" in str(fault(schema, {"a": "x"}, line))
    assert "b: 1 is not of type 'string'" in str(fault(schema, {"b": 1}, line))


def test_a_value_that_cannot_be_checked_is_an_error_of_its_row() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=a)"}, "b": {"type": "integer"}}}
    kind = pa.struct([("a", pa.string()), ("b", pa.int64())])
    rows = pa.array([{"a": None, "b": 1}, {"a": "a", "b": 1}], kind)
    encoded = Encoder(parse(json.dumps(schema)), kind).encode(rows, b"")
    assert encoded.array.to_pylist() == [b'{"b":1}', None]
    assert encoded.errors[0].what.startswith("the schema's pattern '^(?=a)' cannot be checked")


def test_a_value_may_take_all_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each keyword."""
    monkeypatch.setattr("kwire.schemas.json_schema.checking.MAX_STEPS", 2)
    monkeypatch.setattr("kwire.schemas.json_schema.checking.STEPS_A_BYTE", 0)
    schema = {"type": "integer", "minimum": 1}
    assert fault(schema, 5) is None
    assert fault(schema | {"maximum": 9}, 5) == "the check against the schema takes more than 2 steps"
