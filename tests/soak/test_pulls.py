"""A short soak of pulls that are killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.soak.broker_process import BrokerProcess
from tests.soak.pulls import soak_pulls


@pytest.mark.slow
def test_a_killed_pull_loses_and_doubles_nothing(tmp_path: Path) -> None:
    report = soak_pulls(tmp_path, BrokerProcess(tmp_path), kills=5, seed=3)
    assert report.batches > 100
    assert (report.lost, report.doubled, report.different, report.damages) == (0, 0, 0, 0)
