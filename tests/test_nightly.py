"""`./dev nightly`: a failing part does not end the run, logs and results are kept, figures come from the logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import nightly


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Three short parts in place of the real ones, of which the second fails."""
    programs = {"one": "print('kills   3\\nkills   4')", "two": "raise SystemExit('broken')", "three": "print('done')"}
    short = [nightly.Part(name=name, proves=name, command=("-c", text)) for name, text in programs.items()]
    monkeypatch.setattr(nightly, "parts", lambda minutes, inputs: short)
    monkeypatch.setattr(nightly, "RESULTS", tmp_path / "nightly.json")
    monkeypatch.setattr(nightly, "PAGE", tmp_path / "nightly.md")
    (tmp_path / "nightly.json").write_text("{}")
    return tmp_path


def test_a_failing_part_does_not_end_the_run(few: Path) -> None:
    assert nightly.main(["--folder", str(few / "logs")]) == 1
    kept = json.loads((few / "nightly.json").read_text())
    assert {name: each["passed"] for name, each in kept.items()} == {"one": True, "two": False, "three": True}
    assert kept["one"]["figures"] == "kills 7"
    assert "broken" in (few / "logs" / "two.log").read_text()
    assert "Every part has a result." in (few / "nightly.md").read_text()
    assert "| `two` | two | " in (few / "nightly.md").read_text()
    assert (few / "nightly.md").read_text().count("**failed**") == 1


def test_a_run_of_some_parts_keeps_the_results_of_others(few: Path) -> None:
    assert nightly.main(["--only", "one", "--folder", str(few / "logs")]) == 0
    assert "Parts without a result: `two`, `three`." in (few / "nightly.md").read_text()
    assert nightly.main(["--only", "three", "--folder", str(few / "logs")]) == 0
    assert json.loads((few / "nightly.json").read_text()).keys() == {"one", "three"}


def test_each_given_word_counts(few: Path) -> None:
    assert nightly.main(["--only", "one", "--only", "three", "--folder", str(few / "logs")]) == 0
    assert json.loads((few / "nightly.json").read_text()).keys() == {"one", "three"}


def test_unknown_parts_are_refused(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        nightly.main(["--only", "one", "four"])
    assert "no part is named four; there are one, two, three" in capsys.readouterr().err
    assert json.loads((few / "nightly.json").read_text()) == {}


def test_without_results_the_page_says_so(few: Path) -> None:
    assert "Newest run: none. Parts without a result: `one`, `two`, `three`." in nightly.page()


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("collected 9 items\n=== 3 passed, 2191 deselected in 58.18s ===\n", "3 passed, 2191 deselected"),
        ("==== 1 failed, 2 passed, 1 warning in 658.18s (0:10:58) ====\n", "1 failed, 2 passed, 1 warning"),
        ("3 passed in 5.10s\n", "3 passed"),
        ("# avro: run(1000, 7)\nok\n# avro-guarded: run(20, 7, True)\n", "avro 1,000, avro-guarded 20"),
        (
            "seed 3, in /tmp\nseed                    3\nlost                    0\nacknowledged            1200\n",
            "lost 0, acknowledged 1,200",
        ),
        ("Traceback\n", ""),
    ],
)
def test_figures_of_logs(log: str, expected: str) -> None:
    assert nightly.figures(log) == expected


def test_every_part_is_a_program_that_exists() -> None:
    """Each command names a module and paths of this project."""
    for part in nightly.parts(1, 10):
        assert part.command[0] == "-m"
        for word in part.command:
            path = word.removeprefix("--ignore=")
            assert not path.startswith("tests/") or (nightly.ROOT / path).exists()
