"""Real clients in every scenario of `kwire conformance client`: what each does differently is known and judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tools.clients import CLIENTS, program
from tools.matrix import covers, read_judgements

from kwire.conformance import Report
from kwire.conformance.check import select
from kwire.conformance.client import Scenario, all_scenarios, run_scenarios

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[2] / "examples" / "conformance" / "client"
MAX_LINES = 300


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.jvm if each == "java" else ()) for each in CLIENTS]
)
def test_a_client_differs_only_where_it_is_judged(name: str) -> None:
    unknown = unjudged(name, all_scenarios())
    if unknown:  # once more, as in the matrix: on a loaded machine, some have timeouts
        unknown = unjudged(name, select(all_scenarios(), list(unknown), ()), jobs=1)
    assert unknown == {}


def unjudged(name: str, scenarios: Sequence[Scenario], jobs: int = 4) -> dict[str, str]:
    """Run scenarios, `jobs` in parallel. Returns the reasons of the failures that have no judgement, by id."""
    known = [check for each in read_judgements().get(f"client-{name}", []) for check in each["checks"]]
    report: Report = run_scenarios(program(name), scenarios, release="4.4", keeps_running=True, jobs=jobs)
    found = {each.check.id: each.reason for each in report.findings()}
    return {check: reason for check, reason in found.items() if not any(covers(k, check) for k in known)}


def test_programs_are_short() -> None:
    for pattern in ("*.py", "*.java", "go/*/*.go", "node/*.js"):
        for path in EXAMPLES.glob(pattern):
            assert len(path.read_text().splitlines()) <= MAX_LINES, path
