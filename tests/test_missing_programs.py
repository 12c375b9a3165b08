"""Tests of missing programs are skipped and listed; where nothing may be skipped, any skip fails the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HANG_S

ROOT = Path(__file__).parents[1]
NEEDS_KCAT = "tests/interop/test_broker_kcat.py::test_headers_timestamps_and_transactions_of_today"


@pytest.mark.sampled
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


@pytest.mark.sampled
@pytest.mark.parametrize(("value", "code"), [("", 0), ("1", 0), ("all", 1)])
def test_a_skip_for_another_reason_fails_the_gate_alone(value: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_sessionfinish\n")
    (tmp_path / "test_one.py").write_text(
        "import pytest\ndef test_one():\n    pytest.skip('today')\ndef test_two(): pass\n"
    )
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "KWIRE_NO_SKIPS"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)],
        cwd=tmp_path,
        env={**kept, "PYTHONPATH": str(ROOT), "KWIRE_NO_SKIPS": value},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert "1 passed, 1 skipped" in done.stdout
    assert done.returncode == code, done.stdout + done.stderr
