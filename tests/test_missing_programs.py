"""Tests of missing programs are skipped and listed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HANG_S

ROOT = Path(__file__).parents[1]
NEEDS_KCAT = "tests/interop/test_broker_kcat.py::test_headers_timestamps_and_transactions_of_today"


@pytest.mark.parametrize(("variables", "code"), [({}, 0), ({"KWIRE_NO_SKIPS": "1"}, 1)], ids=["test", "interop"])
def test_a_run_lists_tests_skipped_for_missing_programs(variables: dict[str, str], code: int) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "KWIRE_NO_SKIPS"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", NEEDS_KCAT],
        cwd=ROOT,
        env={**kept, "PATH": "/nowhere", **variables},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "kcat is not installed; on Debian or Ubuntu: apt-get install kcat\n" in done.stdout
    assert "   1 of tests/interop/test_broker_kcat.py\n" in done.stdout
