"""`kwire conformance compare`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.test_report import report

from kwire.cli.main import run
from kwire.conformance import Verdict


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, verdict in (("kafka", Verdict.PASS), ("mine", Verdict.FAIL)):
        (tmp_path / f"{name}.json").write_text(report(verdict).to_json())
    return [str(tmp_path / "kafka.json"), str(tmp_path / "mine.json")]


def test_differences_are_shown(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conformance", "compare", *files]) == 1
    out = capsys.readouterr().out
    assert "FETCH-001" in out
    assert "META-001" not in out
    assert "1 difference" in out


def test_equal_reports(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conformance", "compare", files[0], files[0], "--all"]) == 0
    assert "META-001" in capsys.readouterr().out


def test_wrong_usage(files: list[str], tmp_path: Path) -> None:
    assert run(["conformance", "compare", files[0]]) == 2
    assert run(["conformance", "compare", files[0], str(tmp_path / "missing.json")]) == 2
