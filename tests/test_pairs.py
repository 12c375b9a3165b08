"""The page of tested versions says what ran, what failed and what did not run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import pairs


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Three pairs, of which one works, one fails and one has not run."""
    names = ("one", "two", "three")
    monkeypatch.setattr(pairs, "PAIRS", [pairs.Pair(name=name, what=name, program="") for name in names])
    monkeypatch.setattr(pairs, "RESULTS", tmp_path / "pairs.json")
    kept = {
        "one": {"date": "2026-11-24", "versions": "Python 3.11.7, kwire 0.2.0", "passed": True},
        "two": {"date": "2026-11-23", "versions": "Python 3.12.1", "passed": False, "error": "TypeError: no"},
    }
    (tmp_path / "pairs.json").write_text(json.dumps(kept))
    return tmp_path


def test_the_page_has_each_pair_with_its_result(few: Path) -> None:
    rows = [line for line in pairs.page().splitlines() if line.startswith(("| one", "| two", "| three"))]
    assert rows == [
        "| one | Python 3.11.7, kwire 0.2.0 | 2026-11-24 | works |",
        "| two | Python 3.12.1 | 2026-11-23 | **fails**: `TypeError: no` |",
        "| three | Python 3.11 | | not run |",
    ]


def test_the_names_of_pairs_are_unique() -> None:
    names = [pair.name for pair in pairs.PAIRS]
    assert len(names) == len(set(names))


def test_unknown_pairs_are_refused(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        pairs.main(["--only", "four"])
    assert "no such pair; there are one, two, three" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")  # of other clients
@pytest.mark.parametrize(
    "program", [pairs.PLAIN, pairs.CONFLUENT, pairs.KAFKA_PYTHON, pairs.AIOKAFKA], ids=["plain", "c", "python", "aio"]
)
def test_programs_run_with_the_releases_of_the_lock(program: str) -> None:
    exec(compile(pairs.BROKER + program, "pair", "exec"), {"__name__": "pair"})


def test_a_wrong_record_fails_a_program() -> None:
    wrong = pairs.PLAIN.replace("== ALL", "== ALL[1:]")
    with pytest.raises(AssertionError):
        exec(compile(pairs.BROKER + wrong, "pair", "exec"), {"__name__": "pair"})
