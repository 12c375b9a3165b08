"""A short soak: the broker is killed a few times under load, and nothing is lost, duplicated or partial."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.soak.soak import soak


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_a_killed_broker_keeps_acknowledged_records(tmp_path: Path, seed: int) -> None:
    report = soak(tmp_path, seconds=15, seed=seed, pause_s=(1.0, 4.0))
    assert report.kills >= 3
    assert report.plain_records > 100
    assert report.copied_records > 0
    assert report.committed_transactions > 0
    assert report.aborted_transactions > 0
