"""Known defects of clients: scenarios of `kwire conformance client` show them again on the release that had them."""

from __future__ import annotations

from typing import Any

import pytest
from tools.clients import CLIENTS, program
from tools.matrix import read_defects

from kwire.conformance import Verdict
from kwire.conformance.check import select
from kwire.conformance.client import all_scenarios, run_scenarios

pytestmark = pytest.mark.slow


def verdicts(client: str, release: str | None, checks: list[str]) -> set[Verdict]:
    chosen = select(all_scenarios(), checks, ())
    report = run_scenarios(program(client, release), chosen, release="4.4", keeps_running=True)
    return {each.verdict for each in report.results}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("defect", read_defects(), ids=lambda each: f"{each['client']}-{each['source']}")
def test_a_known_defect_is_found_in_its_release(defect: dict[str, Any]) -> None:
    client, checks = defect["client"], defect["checks"]
    assert verdicts(client, defect["release"], checks) == {Verdict.FAIL}
    assert (Verdict.FAIL in verdicts(client, CLIENTS[client].version, checks)) == defect["open"]
