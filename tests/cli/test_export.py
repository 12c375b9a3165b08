"""`kwire log export` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kwire.cli.main import run


@pytest.fixture
def source(kafka_logs: dict[str, Path]) -> str:
    return str(kafka_logs["modern"] / "data")


def test_export_says_what_it_wrote(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["log", "export", source, "-o", str(tmp_path / "out"), "--topic", "txn", "--format", "json"]
    assert run([*arguments, "--isolation", "read_committed"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["topic"], row["partition"]) for row in rows] == [("txn", 0), ("txn", 1)]
    for row in rows:
        assert pq.ParquetFile(row["path"]).metadata.num_rows == row["records"] > 300


def test_the_files_name_says_the_format(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "orders.jsonl"
    arguments = ["log", "export", source, "-o", str(target), "--topic", "orders", "--partition", "0"]
    assert run([*arguments, "--offsets", "10:13", "--base64", "--headers"]) == 0
    assert [json.loads(line)["offset"] for line in target.read_text().splitlines()] == [10, 11, 12]
    assert run(arguments) == 2
    assert "already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "x.parquet", "--as", "jsonl"],
        ["-o", "x.parquet", "--base64"],
        ["-o", "nowhere/out"],
        ["-o", "out", "--topic", "no-such"],
        ["-o", "out", "--since", "yesterday"],
    ],
)
def test_wrong_usage_writes_nothing(
    arguments: list[str], source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["log", "export", source, *arguments]) == 2
    assert list(tmp_path.iterdir()) == []
