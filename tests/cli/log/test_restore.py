"""`kwire log restore` after `kwire log export`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kwire.cli.main import run
from kwire.log import LogDirectory


def test_an_exported_directory_is_restored(
    kafka_logs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(kafka_logs["modern"] / "data")
    parquet, new = str(tmp_path / "out"), str(tmp_path / "new")
    assert run(["log", "export", source, "-o", parquet, "--topic", "ids", "--headers"]) == 0
    capsys.readouterr()
    arguments = ["log", "restore", parquet, "--codec", "zstd", "--topic-id", "ids=FdLbL8xnRjCBHSJyw8VnZg"]
    assert run([*arguments, "-o", new, "--format", "json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert [(row["topic"], row["partition"], row["topic_id"]) for row in reported] == [
        ("ids", 0, "FdLbL8xnRjCBHSJyw8VnZg"),
        ("ids", 1, "FdLbL8xnRjCBHSJyw8VnZg"),
    ]
    for key, log in LogDirectory(new).items():
        old = [(r.offset, r.key, r.value, r.headers, r.timestamp) for r in LogDirectory(source)[key].read()]
        assert [(r.offset, r.key, r.value, r.headers, r.timestamp) for r in log.read()] == old
    assert run([*arguments, "-o", new]) == 2
    assert "not an empty directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.parquet"], "no Parquet files"),
        (["nothing.parquet", "--topic-id", "x"], "expected TOPIC=ID"),
        (["nothing.parquet", "--offset-table", "x.parquet"], "requires new offsets"),
    ],
)
def test_wrong_usage_is_reported(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["log", "restore", *arguments, "-o", "new"]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
