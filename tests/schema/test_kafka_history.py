"""Kafka's history: every definition is read, and every change is judged by its bytes.

tests/data/definitions-history.jsonl.gz has each distinct definition of Kafka's releases, and of the commits between
them, with its successors. Compatibility is decided by the wire form alone: two definitions agree in a version if the
same bytes mean the same (`tokens`). This shares no code with the rules.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.schema.wire_tokens import agree, tokens

from kwire import schema
from kwire.schema.evolution import review
from kwire.schema.model import Field, Message, Struct

DATA = Path(__file__).parents[1] / "data" / "definitions-history.jsonl.gz"
ON_THE_WIRE = {
    *("V-03", "V-12", "V-13", "V-14", "V-15", "V-16", "V-21", "V-23", "V-41", "V-42", "V-43", "V-44", "V-47", "V-48"),
    *("V-51", "V-55"),
}
"""Rules about the bytes of released versions; the others are about names, keys, kinds, ranges and defaults."""


@pytest.fixture(scope="module")
def history() -> tuple[list[str], list[tuple[int, int]]]:
    head, *definitions = gzip.decompress(DATA.read_bytes()).decode().splitlines()
    return definitions, [(old, new) for old, new in json.loads(head)["changes"]]


@pytest.fixture(scope="module")
def messages(history: tuple[list[str], list[tuple[int, int]]]) -> list[Message]:
    return [schema.parse(text, dialect="kafka") for text in history[0]]


@pytest.mark.requirement("E-04", "E-28", "T-01", "T-02")
def test_every_definition_in_kafkas_history_is_accepted(history: tuple[list[str], list[tuple[int, int]]]) -> None:
    assert len(history[0]) == len(set(history[0])) == 1326
    for text in history[0]:
        message, errors = schema.check(text, dialect="kafka")
        assert not errors, (errors, text)
        assert message is not None
        assert schema.parse(schema.render(message)).name == message.name  # facts are in the strict language


@pytest.mark.slow
@pytest.mark.requirement("V-21", "V-23", "V-25", "V-47", "V-51")
def test_changes_in_kafkas_history_have_exactly_the_known_violations(
    history: tuple[list[str], list[tuple[int, int]]], messages: list[Message]
) -> None:
    broken = 0
    assert len(history[1]) == 1208
    for a, b in history[1]:
        old, new = messages[a], messages[b]
        released = old.stable.intersect(new.valid)
        differing = [v for v in released if not agree(tokens(old, old.struct, v), tokens(new, new.struct, v))]
        violations = [finding for finding in review(old, new) if finding.kind == "violation"]
        found = [str(finding) for finding in violations if finding.rule in ON_THE_WIRE]
        assert bool(found) == bool(differing), (old.name, differing, found)
        broken += bool(differing)
        rules = {finding.rule for finding in violations}
        assert ("V-02" in rules) == (old.kind != new.kind)
        assert ("V-50" in rules) == any(other_defaults(old, new)), old.name
        assert ("V-01" in rules) == (old.api_key != new.api_key and old.kind == new.kind)
        if old.kind == new.kind and old.stable and new.valid:
            assert ("V-53" in rules) == (new.valid.lowest > old.stable.lowest)
            assert ("V-04" in rules) == (new.valid.highest < old.stable.highest)
    assert broken == 97


def other_defaults(old: Message, new: Message) -> Iterator[bool]:
    """Return whether common fields, by name and array depth, have different defaults."""
    then, now = dict(fields(old, old.struct, ())), dict(fields(new, new.struct, ()))
    for path in then.keys() & now.keys():
        was, will = then[path], now[path]
        if was.type_text == will.type_text and was.versions.intersect(old.stable):
            yield repr(was.default) != repr(will.default)


def fields(message: Message, struct: Struct, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for field in struct.fields:
        here = (*path, field.name)
        yield here, field
        if field.struct is not None:
            yield from fields(message, field.struct, (*path, "[]") if field.is_array else path)
