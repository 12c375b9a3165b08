"""Reproductions of defects in clients and brokers, as one would send them: each still shows its defect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools.matrix import BROKERS

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parents[2] / "examples" / "conformance" / "reproductions"
SHOWN = {
    "aiokafka_failed_record.py": "committed, though the record failed",
    "aiokafka_mixed_formats.py": "CorruptRecordException",
}
SHOWN_BY_TANSU = {
    "tansu_aborted_records.py": "read_committed: b'aborted'",
    "tansu_empty_topic_list.py": "topics for an empty list: ['orders']",
    "tansu_fetch_without_wait.py": "fetch.wait.max.ms=100: b'one'\nfetch.wait.max.ms=0: None",
}
MAX_LINES = 25


def test_every_reproduction_is_run_and_short() -> None:
    assert {path.name for path in FOLDER.glob("*.py")} == {*SHOWN, *SHOWN_BY_TANSU}
    for path in FOLDER.glob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) <= MAX_LINES, path


@pytest.mark.parametrize("name", SHOWN)
def test_a_reproduction_shows_its_defect(name: str) -> None:
    assert SHOWN[name] in output(name)


@pytest.mark.parametrize("name", SHOWN_BY_TANSU)
def test_a_reproduction_shows_its_defect_in_tansu(name: str) -> None:
    with BROKERS["tansu"].start() as address:
        assert SHOWN_BY_TANSU[name] in output(name, address)


def output(name: str, *arguments: str) -> str:
    words = [sys.executable, str(FOLDER / name), *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
