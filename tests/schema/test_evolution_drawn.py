"""Drawn definitions and drawn changes: no false alarm, no silence, and silence means the same bytes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.schema.evolving import ILLEGAL, LEGAL, Draft, DrawFn, drafts, illegal_steps, legal_steps, text

from kwire import schema
from kwire.schema.evolution import review
from kwire.schema.model import Field, Message, Struct


@given(drafts())
def test_a_definition_may_stay_as_it_is(draft: Draft) -> None:
    made = schema.parse(text(draft))
    assert review(made, schema.parse(text(draft))) == []
    assert review(made, made) == []


@given(legal_steps())
def test_a_legal_step_gives_no_violation(step: tuple[str, str]) -> None:
    old, new = step
    assert schema.compare(schema.parse(old), schema.parse(new)) == []


@given(illegal_steps())
def test_an_illegal_step_gives_its_rule(step: tuple[str, str, str]) -> None:
    old, new, rule = step
    assert rule in {violation.rule for violation in schema.compare(schema.parse(old), schema.parse(new))}


@st.composite
def wild_steps(draw: DrawFn) -> tuple[Message, Message]:
    """Two definitions some steps of any kind apart."""
    old = draw(drafts())
    new = copy.deepcopy(old)
    for step in draw(st.lists(st.sampled_from([*LEGAL, *ILLEGAL]), min_size=1, max_size=3)):
        step(new, draw)
    message, errors = schema.check(text(new))
    assume(message is not None and not errors)
    assert message is not None
    return schema.parse(text(old)), message


@given(wild_steps())
def test_silence_means_that_released_versions_are_the_same_bytes(step: tuple[Message, Message]) -> None:
    old, new = step
    if schema.compare(old, new):
        return
    for version in old.valid:
        was, now = list(shape(old, old.struct, version)), list(shape(new, new.struct, version))
        assert untagged(was) == untagged(now)
        for tag, form in tags(was).items():
            assert tags(now).get(tag, form) == form


def shape(message: Message, struct: Struct, version: int) -> Iterator[Any]:
    """What a struct is on the wire, without names and in the plainest words: one entry a field."""
    yield "sections" if version in message.flexible else "no sections"
    for field in struct.fields:
        if version in field.versions:
            yield field.tag if version in field.tagged else "at its place", form(message, field, version)


def form(message: Message, field: Field, version: int) -> Any:
    inner = field.type if field.struct is None else list(shape(message, field.struct, version))
    return field.is_array, version in field.nullable, inner


def untagged(fields: list[Any]) -> list[Any]:
    """Without tagged fields, at any depth: old readers skip those they do not know."""
    if not isinstance(fields, list | tuple):
        return fields
    return [untagged(item) for item in fields if not (isinstance(item, tuple) and type(item[0]) is int)]


def tags(fields: list[Any]) -> dict[int, Any]:
    return {item[0]: untagged(item[1]) for item in fields if isinstance(item, tuple) and type(item[0]) is int}
