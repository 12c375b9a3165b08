"""The checks and their records."""

from __future__ import annotations

import json

import pytest
from tools.conformance import versions_text

from kwire.conformance import Verdict
from kwire.conformance.broker import Baseline, all_checks, read_baseline
from kwire.conformance.broker.baseline import RELEASES, render_baseline
from kwire.conformance.broker.checks import Allowed, BrokerCheck
from kwire.conformance.broker.differences import difference
from kwire.conformance.broker.runner import CLOSED
from kwire.errors import OptionError

RECORDED = read_baseline("4.4").recorded


def check(check_id: str = "A-1", **fields: object) -> BrokerCheck:
    values = {"chapter": "A", "title": "t", "observe": lambda bench: None, **fields}
    return BrokerCheck(id=check_id, **values)  # type: ignore[arg-type]


def test_at_least_600_checks_with_ids_of_their_own() -> None:
    ids = [each.id for each in all_checks()]
    assert len(ids) == len(set(ids)) >= 600


def test_every_check_says_what_it_does() -> None:
    for each in all_checks():
        assert each.title, each.id
        assert each.source, each.id
        assert each.steps, each.id
        assert all(step.endswith((".", ",")) or step[0].isupper() for step in each.steps), each.id


def test_nearly_every_check_has_a_record() -> None:
    missing = [each.id for each in all_checks() if each.id not in RECORDED]
    assert len(missing) <= 10, missing
    assert set(RECORDED) <= {each.id for each in all_checks()}


def test_every_difference_between_releases_has_its_sentence() -> None:
    differing = [
        check_id
        for check_id, by_release in RECORDED.items()
        if len({json.dumps(value, sort_keys=True) for value in by_release.values()}) > 1
    ]
    assert [each for each in differing if difference(each) is None] == []


def test_versions_are_those_of_the_definitions() -> None:
    from kwire.conformance.broker.chapters import tables

    assert json.loads(versions_text()) == tables._table()


def test_a_release_that_was_not_recorded() -> None:
    with pytest.raises(OptionError, match=r"2\.8\.2"):
        read_baseline("3.5")
    assert read_baseline("3.9").release == "3.9.1"


def judge(expected: object, observed: object, **fields: object) -> Verdict:
    baseline = Baseline(release="4.4.0", recorded={"A-1": {"4.4.0": expected}})
    return baseline.judge(check(**fields), observed).verdict  # type: ignore[arg-type]


def test_judgements() -> None:
    value = {"errors": ["NONE", "X"], "n": 1}
    assert judge(value, {"errors": ["NONE", "X"], "n": 1}) is Verdict.PASS
    assert judge(value, {"errors": ["NONE"], "n": 1}) is Verdict.FAIL
    assert judge(value, {"errors": [], "n": 1}) is Verdict.FAIL
    assert judge(value, {**value, "more": 1}) is Verdict.FAIL
    assert judge(value, CLOSED) is Verdict.FAIL
    assert judge(CLOSED, CLOSED) is Verdict.PASS
    assert judge({"n": None}, {}) is Verdict.FAIL
    allowed = (Allowed(path="n", values=(2,), reason="two"),)
    assert judge(value, {**value, "n": 2}, allowed=allowed) is Verdict.DEVIATION
    assert judge(value, {**value, "n": 3}, allowed=allowed) is Verdict.FAIL
    assert judge(value, {"errors": ["X", "X"], "n": 2}, allowed=allowed) is Verdict.FAIL


def test_what_a_release_no_longer_has_is_compared_with_an_older_one() -> None:
    baseline = Baseline(release="4.4.0", recorded={"A-1": {"2.8.2": "old", "3.9.1": "new", "4.4.0": CLOSED}})
    removed = check(until="3.9")
    assert baseline.judge(removed, "new").verdict is Verdict.PASS
    assert baseline.judge(removed, CLOSED).verdict is Verdict.PASS
    assert baseline.judge(removed, "old").verdict is Verdict.FAIL
    assert baseline.judge(check(), "new").verdict is Verdict.FAIL


def test_records_both_ways() -> None:
    text = render_baseline(RECORDED, RECORDED)
    assert len(text.splitlines()) == len(RECORDED)
    assert set(RELEASES) == {release for by_release in RECORDED.values() for release in by_release}
