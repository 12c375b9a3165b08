"""Reproductions of defects in released clients, as one would send them: each still shows its defect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parents[2] / "examples" / "conformance" / "reproductions"
SHOWN = {
    "aiokafka_failed_record.py": "committed, though the record failed",
    "aiokafka_mixed_formats.py": "CorruptRecordException",
}


def test_every_reproduction_is_run() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_a_reproduction_shows_its_defect(name: str) -> None:
    done = subprocess.run([sys.executable, str(FOLDER / name)], capture_output=True, text=True, timeout=60, check=True)
    assert SHOWN[name] in done.stdout
