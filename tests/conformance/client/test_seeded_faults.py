"""Faults in a client: each is found by the scenario that is about it, which the client without faults passes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kwire.conformance import Report, Verdict
from kwire.conformance.check import select
from kwire.conformance.client import all_scenarios, run_scenarios

PROGRAM = Path(__file__).with_name("faulty_client.py")
FAULTS = {
    "new_sequence": "PRODUCER-003",
    "same_sequence": "PRODUCER-002",
    "no_retry": "PRODUCER-005",
    "no_backoff": "PRODUCER-025",
    "early_acknowledgement": "REPORT-PRODUCE-10",
    "swallowed_error": "REPORT-PRODUCE-29",
    "null_is_empty": "PRODUCER-016",
    "no_headers": "PRODUCER-016",
    "ignores_throttle": "PRODUCER-009",
    "reads_aborted": "CONSUME-022",
    "reads_markers": "CONSUME-021",
    "stops_at_gap": "CONSUME-009",
    "after_last_record": "CONSUME-011",
    "whole_batches": "CONSUME-002",
    "no_checksum": "CONSUME-025",
    "other_time": "CONSUME-013",
    "doubled": "CONSUME-001",
    "commits_too_little": "MEMBER-001",
    "no_heartbeat": "MEMBER-006",
    "keeps_member_id": "MEMBER-013",
    "keeps_coordinator": "MOVE-010",
    "commits_always": "TRANSACT-002",
    "does_not_add": "TRANSACT-004",
}
"""Fault -> the scenario that finds it. PRODUCER-016 finds two, with different reasons."""
QUICK = ("new_sequence", "reads_aborted", "commits_too_little")


def run(fault: str, *only: str) -> Report:
    command = [sys.executable, str(PROGRAM), *filter(None, [fault])]
    scenarios = select(all_scenarios(), only, ())
    return run_scenarios(command, scenarios, release="4.4", keeps_running=True, jobs=2, deadline_s=12)


@pytest.mark.parametrize(
    "fault", [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in FAULTS]
)
def test_a_fault_is_found(fault: str) -> None:
    (result,) = run(fault, FAULTS[fault]).results
    assert result.verdict is Verdict.FAIL, result.reason
    assert "exit code" not in result.reason  # the fault was judged, not a program that does not run


@pytest.mark.slow
def test_nothing_is_found_without_a_fault() -> None:
    report = run("", *sorted(set(FAULTS.values())))
    assert {each.check.id: each.reason for each in report.results if each.verdict is not Verdict.PASS} == {}
