"""`kwire log export` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from kwire.cli.main import run
from kwire.log import PartitionLog
from kwire.maintenance import export


@pytest.fixture
def source(kafka_logs: dict[str, Path]) -> str:
    return str(kafka_logs["modern"] / "data")


def test_export_reports_the_files_it_wrote(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["log", "export", source, "-o", str(tmp_path / "out"), "--topic", "txn", "--format", "json"]
    assert run([*arguments, "--isolation", "read_committed"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["topic"], row["partition"]) for row in rows] == [("txn", 0), ("txn", 1)]
    for row in rows:
        assert pq.ParquetFile(row["path"]).metadata.num_rows == row["records"] > 300


def test_threads_do_not_change_an_export(source: str, tmp_path: Path) -> None:
    for threads in ("1", "3"):
        path = str(tmp_path / f"{threads}.arrow")
        assert run(["log", "export", source, "-o", path, "--topic", "txn", "--threads", threads]) == 0
    one, three = (ipc.open_file(tmp_path / f"{name}.arrow").read_all() for name in ("1", "3"))
    assert one.equals(three)
    assert run(["log", "export", source, "-o", str(tmp_path / "x"), "--threads", "0"]) == 2


def test_the_file_name_selects_the_format(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "orders.jsonl"
    arguments = ["log", "export", source, "-o", str(target), "--topic", "orders", "--partition", "0"]
    assert run([*arguments, "--offsets", "10:13", "--base64", "--headers"]) == 0
    assert [json.loads(line)["offset"] for line in target.read_text().splitlines()] == [10, 11, 12]
    assert run(arguments) == 2
    assert "file exists" in capsys.readouterr().err


def test_a_name_with_a_file_suffix_is_a_directory_only_with_a_format_option(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["log", "export", source, "--topic", "trimmed", "-o"]
    assert run([*arguments, str(tmp_path / "x.csv")]) == 2
    assert ".csv is not an export format; name a file .parquet, .arrow or .jsonl" in capsys.readouterr().err
    assert run([*arguments, str(tmp_path / "x.csv"), "--file-format", "parquet"]) == 0
    assert (tmp_path / "x.csv" / "trimmed" / "partition=0" / "records.parquet").is_file()
    assert run([*arguments, str(tmp_path / "backup.2024")]) == 0
    assert (tmp_path / "backup.2024").is_dir()


def test_an_interrupted_export_continues_with_the_remaining_records(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["log", "export", source, "--topic", "txn", "--file-format", "jsonl", "--base64", "--format", "json"]
    assert run([*arguments, "-o", str(tmp_path / "whole")]) == 0
    rows = json.loads(capsys.readouterr().out)

    exported: list[int] = []
    original = export.export_partition

    def second_interrupted(log: PartitionLog, *rest: Any) -> export.Exported:
        if log.partition == 1:
            raise KeyboardInterrupt
        exported.append(log.partition)
        return original(log, *rest)

    target = tmp_path / "out"
    monkeypatch.setattr(export, "export_partition", second_interrupted)
    assert run([*arguments, "-o", str(target)]) == 130
    assert f"{target}.part has the finished part; run the command again to continue" in capsys.readouterr().err
    assert not target.exists()

    monkeypatch.setattr(
        export, "export_partition", lambda log, *rest: exported.append(log.partition) or original(log, *rest)
    )
    assert run([*arguments, "-o", str(target), "--headers"]) == 2
    assert "left by another export; delete it" in capsys.readouterr().err
    assert run([*arguments, "-o", str(target)]) == 0
    assert exported == [0, 1]
    again = json.loads(capsys.readouterr().out)
    assert again == [row | {"path": row["path"].replace("whole", "out")} for row in rows]
    for row in rows:
        assert Path(row["path"]).read_bytes() == Path(row["path"].replace("whole", "out")).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "whole"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "x.parquet", "--file-format", "jsonl"],
        ["-o", "x.parquet", "--base64"],
        ["-o", "nowhere/out"],
        ["-o", "x.csv"],
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
