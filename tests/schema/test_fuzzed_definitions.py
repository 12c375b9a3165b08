"""Hostile definitions give an error with a rule or a message, in bounded time."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schema.writing import common, field, message, tagged

from kwire import schema
from kwire.errors import SchemaError

WORDS = st.sampled_from(
    ["type", "name", "fields", "versions", "0+", "none", "int32", "[]Foo", "Foo", "tag", "default", "null", "0-3", ""]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
VALID = message(
    field("string", default="x", nullableVersions="1+"),
    field("[]Item", "Items", fields=[field(mapKey=True), tagged(0)]),
    field("Shared", "One"),
    commonStructs=[common("Shared", field("uuid"))],
)


def outcome(text: str) -> None:
    message, errors = schema.check(text)
    assert (message is not None) or errors
    assert all(isinstance(error, SchemaError) and error.rule for error in errors)
    if message is not None and not errors:
        assert schema.render(schema.parse(schema.render(message))) == schema.render(message)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(WORDS, VALUES), max_size=3), st.randoms(use_true_random=False))
def test_random_json_values_give_a_message_or_a_schema_error(
    changes: list[tuple[str, object]], rng: random.Random
) -> None:
    content = json.loads(VALID)
    for name, change in changes:
        place = content
        while rng.random() < 0.7:
            inner = [
                v for v in (place.values() if isinstance(place, dict) else place) if isinstance(v, dict | list) and v
            ]
            if not inner:
                break
            place = rng.choice(inner)
        if isinstance(place, dict):
            place[rng.choice([*place, name])] = change
        else:
            place.append(change)
    outcome(json.dumps(content))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(VALID) - 1), st.characters())
def test_any_changed_character_gives_a_message_or_a_schema_error(at: int, character: str) -> None:
    outcome(VALID[:at] + character + VALID[at + 1 :])


@pytest.mark.parametrize("opening", ["[", '{"fields":', '{"a":[', "/*", '"', '{"commonStructs":[{"fields":['])
def test_deep_or_endless_nesting_ends_in_an_error(opening: str) -> None:
    with pytest.raises(SchemaError):
        schema.parse(opening * 50_000)


@pytest.mark.requirement("E-36")
@pytest.mark.parametrize("uses", [1, 2])
def test_exponentially_nested_structs_are_rejected_quickly(uses: int) -> None:
    # 60 structs that use the next one twice have 2**60 fields; a chain of thousands has no bottom to wait for.
    last = {1: 5000, 2: 60}[uses]
    structs = [common(f"S{i}", *(field(f"S{i + 1}", f"A{n}") for n in range(uses))) for i in range(last)]
    text = message(field("S0", "First"), commonStructs=[*structs, common(f"S{last}", field())])
    with pytest.raises(SchemaError) as caught:
        schema.parse(text)
    assert caught.value.rule == "E-36"
