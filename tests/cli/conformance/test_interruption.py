"""Runs that a signal ends: the report has what was done, the exit code the signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import until

PROGRAM = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"


@pytest.mark.sampled
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "run", [["client", "--only", "PRODUCER", "--timeout", "1", "--jobs", "1"], ["codec", "--only", "primitives"]]
)
def test_a_signal_ends_a_run_with_a_report(tmp_path: Path, run: list[str], number: signal.Signals) -> None:
    began, folder = tmp_path / "began", tmp_path / "report"
    command = [sys.executable, "-m", "kwire.cli", "conformance", *run]
    program = [sys.executable, "-c", PROGRAM, str(began)]
    with subprocess.Popen([*command, "-o", str(folder), "--", *program], stderr=subprocess.PIPE, text=True) as process:
        until(began.exists)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert errors.endswith("kwire: interrupted\n" if number == signal.SIGINT else "kwire: terminated\n")
    assert json.loads((folder / "report.json").read_text())["interrupted"] is True
