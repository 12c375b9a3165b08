"""The published matrix: each failure has a judgement, and each judgement a failure."""

from __future__ import annotations

import pytest
from tools import matrix

from kwire.conformance.check import select
from kwire.conformance.client import all_scenarios


def test_every_failure_is_judged_and_every_judgement_is_of_a_failure() -> None:
    judgements = matrix.read_judgements()
    for party, kept in matrix.read().items():
        assert set(kept.failures) == set(matrix.judged(party, kept, judgements)), party
        for each in judgements.get(party, []):
            assert each["kind"] in ("defect", "deviation", "limit"), each
            for pattern in each["checks"]:
                assert any(matrix.covers(pattern, check) for check in kept.failures), (party, pattern)


def test_no_page_is_made_with_failures_that_nobody_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    judgements = matrix.read_judgements()
    party = next(name for name, each in matrix.read().items() if each.failures)
    monkeypatch.setattr(matrix, "read_judgements", lambda: {**judgements, party: []})
    with pytest.raises(matrix.Unjudged, match=f"{party} .* has no judgement in tools/matrix_judgements.json: "):
        matrix.page()


def test_a_judgement_covers_an_id_or_a_beginning() -> None:
    assert matrix.covers("FETCH-*", "FETCH-001")
    assert matrix.covers("FETCH-001", "FETCH-001")
    assert not matrix.covers("FETCH-001", "FETCH-0011")
    assert not matrix.covers("FETCH-*", "ERROR-FETCH-01")


def test_known_defects_name_scenarios() -> None:
    for each in matrix.read_defects():
        assert select(all_scenarios(), each["checks"], ())
