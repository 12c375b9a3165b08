"""Random definitions and changes: no false or missing violations, and no violation means equal bytes."""

from __future__ import annotations

from hypothesis import given
from tests.schema.evolving import Draft, drafts, illegal_steps, legal_steps, text, wild_steps
from tests.schema.wire_tokens import agree, tokens

from kwire import schema
from kwire.schema.evolution import review


@given(drafts())
def test_an_unchanged_definition_has_no_findings(draft: Draft) -> None:
    made = schema.parse(text(draft))
    assert review(made, schema.parse(text(draft))) == []
    assert review(made, made) == []


@given(legal_steps())
def test_an_allowed_change_has_no_violation(step: tuple[str, str]) -> None:
    old, new = step
    assert schema.compare(schema.parse(old), schema.parse(new)) == []


@given(illegal_steps())
def test_a_forbidden_change_reports_its_rule(step: tuple[str, str, str]) -> None:
    old, new, rule = step
    assert rule in {violation.rule for violation in schema.compare(schema.parse(old), schema.parse(new))}


@given(wild_steps())
def test_without_findings_released_versions_have_the_same_bytes(step: tuple[str, str]) -> None:
    old, new = map(schema.parse, step)
    if schema.compare(old, new):
        return
    for version in old.valid:
        assert agree(tokens(old, old.struct, version), tokens(new, new.struct, version))
