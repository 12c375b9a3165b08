"""Verdicts: what passes, what fails, and what a list of known failures changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.conformance import Verdict
from kwire.conformance.vectors import Case, KnownFailures, RunnerFault, judge, judge_all
from kwire.conformance.vectors.judging import first_difference
from kwire.errors import OptionError


def case(**changes: Any) -> Case:
    fields: dict[str, Any] = {
        "id": "messages/X/1/full",
        "chapter": "messages",
        "type": "X",
        "version": 1,
        "since": "2.4.1",
        "until": None,
        "bytes": "0102",
        "value": {"a": 258},
        "verdict": "accept",
        "encoding": "canonical",
        "reason": "every field is set",
        "source": "",
        "made": "4.4.0",
    }
    return Case(**{**fields, **changes})


def answers(decode: dict[str, Any], encode: dict[str, Any] | None = None) -> Any:
    def ask(request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "decode":
            return decode
        if encode is None:
            raise AssertionError("encode was not expected")
        return encode

    return ask


RIGHT = {"value": {"a": 258}, "bytes": "0102"}


@pytest.mark.parametrize(
    ("changes", "decode", "encode", "verdict"),
    [
        ({}, RIGHT, {"bytes": "0102"}, Verdict.PASS),
        ({}, {"accepted": True}, {"unsupported": "no"}, Verdict.PASS),
        ({}, {"unsupported": "no X"}, None, Verdict.UNSUPPORTED),
        ({}, {"rejected": "short"}, None, Verdict.FAIL),
        ({}, {"value": {"a": 257}}, None, Verdict.FAIL),
        ({}, {"value": {}}, None, Verdict.FAIL),
        ({}, {"value": {"a": 258}, "bytes": "0103"}, None, Verdict.FAIL),
        ({}, RIGHT, {"bytes": "010203"}, Verdict.FAIL),
        ({}, RIGHT, {"rejected": "no"}, Verdict.FAIL),
        ({}, RIGHT, {}, Verdict.FAIL),
        ({}, {}, None, Verdict.FAIL),
        ({"encoding": "kept"}, {"bytes": "01"}, None, Verdict.DEVIATION),
        ({"encoding": "kept"}, {"bytes": "0102"}, None, Verdict.PASS),
        ({"encoding": "free"}, {"bytes": "01"}, None, Verdict.PASS),
        ({"verdict": "reject", "value": None}, {"rejected": "short"}, None, Verdict.PASS),
        ({"verdict": "reject", "value": None}, RIGHT, None, Verdict.FAIL),
        ({"verdict": "reject", "value": None}, {"accepted": True}, None, Verdict.FAIL),
        ({"verdict": "either"}, {"rejected": "short"}, None, Verdict.PASS),
        ({"verdict": "either"}, {"value": 5}, None, Verdict.PASS),
    ],
)
def test_verdicts(changes: Any, decode: Any, encode: Any, verdict: Verdict) -> None:
    assert judge(case(**changes), answers(decode, encode)).verdict is verdict


def test_a_fault_of_the_program_fails_its_case_only() -> None:
    def ask(request: dict[str, Any]) -> dict[str, Any]:
        if request["version"] == 1:
            raise RunnerFault("it died")
        return {**RIGHT}

    results = list(judge_all([case(), case(id="messages/X/2/full", version=2)], ask))
    assert [(each.verdict, each.reason) for each in results] == [(Verdict.FAIL, "it died"), (Verdict.PASS, "")]
    assert results[0].evidence[0].data == b"\1\2"


def test_known_failures_do_not_count_and_have_to_fail() -> None:
    known = KnownFailures(cases=frozenset({"messages/X/1/full"}))
    failing, passing = answers({"rejected": "short"}), answers(RIGHT, {"bytes": "0102"})
    assert [each.verdict for each in judge_all([case()], failing, known_failures=known)] == [Verdict.DEVIATION]
    (result,) = judge_all([case()], passing, known_failures=known)
    assert result.verdict is Verdict.FAIL
    assert "remove it" in result.reason


def test_the_list_of_known_failures_has_comments_and_causes(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    path.write_text("# all of them\na/b/1/c  # because\n\n  d/e/1/f\na/*: too short\na/*/null\n")
    known = KnownFailures.read(path)
    assert known.cases == {"a/b/1/c", "d/e/1/f"}
    assert known.causes == (("a/*", "too short"), ("a/*/null", ""))
    with pytest.raises(OptionError, match="cannot be read"):
        KnownFailures.read(tmp_path / "missing.txt")


def test_a_known_cause_covers_its_failures_only_and_has_to_have_one() -> None:
    known = KnownFailures(causes=(("messages/*", "too short"), ("messages/Y/*", "")))
    results = list(judge_all([case()], answers({"rejected": "it is too short"}), known_failures=known))
    assert [each.verdict for each in results] == [Verdict.DEVIATION]
    assert [each.check.id for each in known.unused(results)] == ["messages/Y/*"]
    for decode in ({"rejected": "it is too long"}, {}):
        assert [each.verdict for each in judge_all([case()], answers(decode), known_failures=known)] == [Verdict.FAIL]
    assert [each.verdict for each in judge_all([case()], answers(RIGHT, RIGHT), known_failures=known)] == [Verdict.PASS]


@pytest.mark.parametrize(
    ("expected", "observed", "difference"),
    [
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None, "more": 1}], "more": 2}, None),
        ({"a": [1]}, {"a": [1, 2]}, "a has 2 elements, expected 1 elements"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, "a[0].b is 2, expected 1"),
        (True, 1, "value is 1, expected True"),
        (0, False, "value is False, expected 0"),
        (None, "", "value is '', expected None"),
        ({"a": 1}, [], "value is [], expected an object"),
        (2**63 - 1, 2**63 - 1, None),
        (1.5, 1.5, None),
        (2.0, 2, None),
    ],
)
def test_the_first_difference_of_values(expected: Any, observed: Any, difference: str | None) -> None:
    assert first_difference(expected, observed) == difference
