"""`kwire log convert` on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.maintenance.verify.damaging import tree

from kwire.cli.main import run
from kwire.log import LogDirectory


@pytest.fixture
def source(kafka_logs: dict[str, Path], tmp_path: Path) -> Path:
    target = tmp_path / "data"
    target.mkdir()
    for file in (kafka_logs["modern"] / "data").iterdir():
        if file.is_file() or file.name == "txn-0":
            (shutil.copy2 if file.is_file() else shutil.copytree)(file, target / file.name)
    return target


def test_a_dry_run_changes_nothing_and_reports_the_loss(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(source)
    assert run(["log", "convert", str(source), "--magic", "1", "--codec", "lz4", "--format", "json"]) == 1
    reported = capsys.readouterr()
    (row,) = json.loads(reported.out)
    assert row["loss"]["control_batches"] == 75
    assert "75 control batches" in row["lost"]
    assert row["source_bytes"] == LogDirectory(source)["txn", 0].size_bytes
    assert "nothing was written" in reported.err
    assert run(["log", "convert", str(source), "--codec", "zstd"]) == 0
    assert tree(source) == before


def test_convert_writes_a_copy_or_in_place(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["log", "convert", str(source), "--codec", "zstd", "--level", "9"]
    assert run([*arguments, "-o", str(tmp_path / "new"), "--jobs", "1"]) == 0
    assert run([*arguments, "--apply"]) == 0
    records = [list(LogDirectory(path)["txn", 0].read()) for path in (source, tmp_path / "new")]
    assert records[0] == records[1]
    assert len(records[0]) == 626
    assert run([*arguments, "-o", str(tmp_path / "new")]) == 2
    assert "not an empty directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no target"),
        (["--magic", "3"], "magic 3"),
        (["--magic", "1", "--codec", "zstd"], "zstd is not supported"),
        (["--codec", "gzip", "--level", "17"], "level"),
        (["--magic", "2", "--level", "3"], "--level requires --codec"),
        (["--codec", "lz4", "--apply", "-o", "x"], "mutually exclusive"),
        (["--codec", "lz4", "--apply", "--jobs", "2"], "one process converts in place"),
        (["--codec", "lz4", "--topic", "none-such"], "no topic matches"),
        (["--magic", "1", "--codec", "lz4", "--apply"], "accept the loss"),
    ],
)
def test_wrong_usage_changes_nothing(
    arguments: list[str], said: str, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(source)
    assert run(["log", "convert", str(source), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert tree(source) == before


def test_an_interrupt_of_the_listing_says_that_nothing_has_changed(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LogDirectory, "__init__", interrupted)
    assert run(["log", "convert", str(source), "--codec", "zstd", "--apply"]) == 130
    assert capsys.readouterr().err == f"kwire: interrupted: {source} is unchanged\n"
