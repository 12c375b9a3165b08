"""`kwire log compact`: previews, copies, and changes only the selected partitions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.log.cleaner.compared import log_content

from kwire.cli.main import run as run_kwire
from kwire.log import LogDirectory, LogManager
from kwire.log.cleaner import Cleaner
from kwire.maintenance.compaction import OfflineSettings, compact, preview, stored_topic_configs
from kwire.storage.checkpoints import parse_offset_checkpoint

NOW = "1800000000000"
TXN = ("--topic", "logappend", "--now", NOW, "--config", "delete.retention.ms=0")


@pytest.fixture
def directory(kafka_logs: dict[str, Path], tmp_path: Path) -> Path:
    """A writable log directory of a real broker, with few partitions."""
    source, target = kafka_logs["modern"] / "data", tmp_path / "data"
    target.mkdir()
    for each in source.iterdir():
        if each.is_file():
            shutil.copy2(each, target)
        elif each.name in ("logappend-0", "logappend-1", "ids-0", "__cluster_metadata-0"):
            shutil.copytree(each, target / each.name)
    (target / ".kafka_cleanshutdown").touch()
    return target


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Function that runs the command: run(arguments, code=expected exit code) -> printed rows."""

    def call(*arguments: str | Path, code: int = 0) -> list[dict[str, Any]]:
        capsys.readouterr()
        found = run_kwire(["log", "compact", *map(str, arguments), "--format", "json"])
        captured = capsys.readouterr()
        assert found == code, captured.err
        return list(json.loads(captured.out)) if captured.out else []

    return call


def test_a_dry_run_reports_removals_and_changes_nothing(directory: Path, run: Run) -> None:
    before = files(directory)
    rows = run(directory, *TXN)
    assert files(directory) == before
    assert [(row["topic"], row["partition"]) for row in rows] == [("logappend", 0), ("logappend", 1)]
    for row in rows:
        assert row["clean_offset"] == row["end_offset"]
        assert 0 < row["records_after"] < row["records_before"]
        assert row["bytes_after"] < row["bytes_before"]
        assert row["problem"] is None


@pytest.mark.requirement("X-22", "X-35", "X-36")
def test_apply_matches_the_dry_run_and_the_copy(directory: Path, tmp_path: Path, run: Run) -> None:
    foretold = run(directory, *TXN)
    before = files(directory)
    copied = run(directory, *TXN, "-o", tmp_path / "copy")
    assert files(directory) == before
    assert run(directory, *TXN, "--apply") == copied == foretold
    assert sorted(each.name for each in (tmp_path / "copy").iterdir() if each.is_dir()) == [
        "__cluster_metadata-0",
        "logappend-0",
        "logappend-1",
    ]
    for row in foretold:
        name = f"logappend-{row['partition']}"
        assert log_content(directory / name) == log_content(tmp_path / "copy" / name)
        assert not list((directory / name).glob("*.deleted"))
        log = LogDirectory(directory)["logappend", row["partition"]]
        kept = [each for each in log.read() if each.offset < row["end_offset"]]
        assert len(kept) == row["records_after"]
        assert len({each.key for each in kept}) == len(kept)
    for path, data in before.items():
        if path.startswith("ids-0/") and path.endswith(".log"):
            assert (directory / path).read_bytes() == data
    assert (directory / ".kafka_cleanshutdown").exists()
    again = run(directory, *TXN)
    assert [row["passes"] for row in again] == [0, 0]  # nothing is dirty any more


def test_unselected_partitions_stay_byte_for_byte(directory: Path, run: Run) -> None:
    (directory / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":77}')
    before = files(directory)
    run(directory, *TXN, "--partition", "0", "--apply")
    changed = {path for path, data in files(directory).items() if before.get(path) != data}
    changed |= set(before) - set(files(directory))
    own = {"cleaner-offset-checkpoint", "recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".lock"}
    assert {path for path in changed if not path.startswith("logappend-0/")} <= own
    for name in own - {".lock"}:
        old, new = (parse_offset_checkpoint(data) for data in (before[name], (directory / name).read_bytes()))
        others = {key for key in old if (directory / f"{key[0]}-{key[1]}").exists()} - {("logappend", 0)}
        assert {key: old[key] for key in others} == {key: new.get(key) for key in others}


def test_an_unclean_directory_stays_unclean(directory: Path, run: Run) -> None:
    (directory / ".kafka_cleanshutdown").unlink()
    run(directory, *TXN, "--apply")
    assert not (directory / ".kafka_cleanshutdown").exists()


def test_options_override_topic_configs_of_the_metadata_log(
    directory: Path, kafka_logs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(kafka_logs["modern"] / "data" / "compacted-0", directory / "compacted-0")
    stored = stored_topic_configs(LogDirectory(directory))
    assert stored["compacted"]["delete.retention.ms"] == "600000"
    settings = OfflineSettings.parse({"segment.bytes": "1048576"}, stored)
    assert settings.config_of("compacted").delete_retention_ms == 600_000
    assert settings.config_of("compacted").segment_bytes == 1 << 20
    assert settings.config_of("logappend").message_timestamp_type == "LogAppendTime"
    assert settings.config_of("another").delete_retention_ms == 86_400_000
    for topic, warns in (("compacted", False), ("logappend", True)):
        assert run_kwire(["log", "compact", str(directory), "--topic", topic]) == 0
        assert ("cleanup.policy is not compact" in capsys.readouterr().err) == warns


def test_the_directory_of_a_partition_is_rejected_with_a_remedy(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_kwire(["log", "compact", str(directory / "logappend-0"), "--all", "--apply"]) == 2
    assert f"name the log directory {directory} and select the partition" in capsys.readouterr().err


def test_progress_is_bytes_of_logs_and_ends_at_their_size(directory: Path) -> None:
    steps: list[int] = []
    size = LogDirectory(directory)["logappend", 0].size_bytes
    chosen = ("logappend", 0).__eq__
    for work in (preview, compact):
        steps.clear()
        list(work(str(directory), lambda *key: chosen(key), OfflineSettings.parse({}), int(NOW), steps.append))
        assert sum(steps) == size
        assert all(step > 0 for step in steps)


def test_an_interrupt_reports_the_state_on_disk_and_how_to_continue(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Cleaner, "clean_fully", interrupted)
    assert run_kwire(["log", "compact", str(directory), *TXN, "--apply"]) == 130
    assert "run the command again for the rest" in capsys.readouterr().err
    assert run_kwire(["log", "compact", str(directory), *TXN, "-o", str(tmp_path / "copy")]) == 130
    assert f"{tmp_path / 'copy'} was not written" in capsys.readouterr().err
    assert not list(tmp_path.glob("copy*"))


def test_a_locked_directory_is_rejected(directory: Path, run: Run) -> None:
    with LogManager.open(directory, now_ms=int(NOW)):
        run(directory, *TXN, "--apply", code=2)


def test_a_damaged_partition_is_reported_and_the_others_are_compacted(directory: Path, run: Run) -> None:
    path = sorted((directory / "logappend-0").glob("*.log"))[0]
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    rows = run(directory, *TXN, "--apply", code=1)
    assert "stored CRC" in str(rows[0]["problem"])
    assert path.read_bytes() == data
    assert rows[1]["problem"] is None
    assert rows[1]["passes"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name the topics with --topic"),
        (("--all", "--topic", "x"), "name the topics with --topic"),
        (("--topic", "nothing"), "no topic matches"),
        (("--all", "--apply", "-o", "x"), "mutually exclusive"),
        (("--all", "--config", "nonsense"), "NAME=VALUE"),
        (("--all", "--config", "no.such.setting=1"), "no.such.setting"),
        (("--all", "--config", "log.cleaner.dedupe.buffer.size=10"), "dedupe"),
        (("--all", "--config", "log.cleaner.io.buffer.load.factor=x"), "load.factor"),
        (("--all", "--now", "soon"), "--now"),
        (("--all", "-o", "."), "not an empty directory"),
    ],
)
def test_wrong_usage_is_reported(
    directory: Path, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(directory)
    assert run_kwire(["log", "compact", str(directory), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert files(directory) == before


def test_the_table_says_that_nothing_was_changed(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_kwire(["log", "compact", str(directory), *TXN]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].split()[:2] == ["TOPIC", "PARTITION"]
    assert "nothing was changed: --apply" in captured.err
