"""`kwire log repair` and `kwire log index`: plans, new and repaired directories, exit codes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.maintenance.verify.damaging import flip, tree

from kwire.log import LogDirectory


@pytest.fixture
def data(kafka_logs: dict[str, Path], tmp_path: Path) -> Path:
    return shutil.copytree(kafka_logs["unclean"] / "damaged" / "data", tmp_path / "data")


def test_without_apply_the_plan_is_printed_and_nothing_written(data: Path, kwire: Callable) -> None:
    before = tree(data.parent)
    result = kwire("log", "repair", data)
    assert (result.code, result.err) == (1, "")
    assert "bytes 29993 to 30278 quarantined: stored CRC" in result.out
    assert result.out.splitlines()[-1] == "dry run, nothing was written: -o DIR or --apply repairs"
    assert tree(data.parent) == before
    rows = json.loads(kwire("log", "repair", data, "--format", "json", "--mode", "truncate").out)
    cut = [row["file"] for row in rows if row["log"] == "u-plain-4" and row["action"].startswith("quarantined")]
    assert "00000000000000000245.log" in cut
    assert {row["file"] for row in rows if row["log"] is None} == {
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    }


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["salvage", "truncate"])
def test_a_new_directory_is_clean(mode: str, data: Path, kwire: Callable, tmp_path: Path) -> None:
    before = tree(data)
    result = kwire("log", "repair", data, "-o", tmp_path / "new", "--mode", mode)
    assert (result.code, result.err) == (0, "")
    assert "7 logs were repaired" in result.out
    assert tree(data) == before
    assert kwire("log", "verify", tmp_path / "new").code == 0
    assert kwire("log", "repair", tmp_path / "new").out == "nothing to repair\n"


def test_in_place_requires_apply_and_keeps_the_originals(data: Path, kwire: Callable) -> None:
    result = kwire("log", "repair", data, "--apply")
    assert result.code == 0
    assert str(data) + ".quarantine-1" in result.out
    assert kwire("log", "verify", data).code == 0
    manifest = json.loads((data.parent / "data.quarantine-1" / "manifest.json").read_text())
    assert manifest["mode"] == "salvage"


def test_a_single_partition_can_be_repaired(data: Path, kwire: Callable, tmp_path: Path) -> None:
    result = kwire("log", "repair", data / "u-plain-4", "-o", tmp_path / "u-plain-4")
    assert (result.code, result.err) == (0, "")
    assert LogDirectory(tmp_path / "u-plain-4")["u-plain", 4].log_end_offset == 623


def test_a_transaction_with_a_lost_marker_is_reported(data: Path, kwire: Callable, tmp_path: Path) -> None:
    log = LogDirectory(data)["u-txn", 1]
    markers = [h for segment in log.segments[:-1] for h in segment.headers() if h.is_control]
    segment = log.segments[-2]
    last = [h for h in segment.headers() if h.is_control][-1]
    assert last in markers
    before = log.last_stable_offset
    flip(Path(segment.url), last.position + 70, 1)
    result = kwire("log", "repair", data, "--topic", "u-txn", "-o", tmp_path / "new")
    after = LogDirectory(tmp_path / "new")["u-txn", 1].last_stable_offset
    assert (f"open from offset {after}" in result.err) == (after < LogDirectory(data)["u-txn", 1].log_end_offset)
    assert after <= before


def test_unrepairable_damage_is_reported(data: Path, kwire: Callable, tmp_path: Path) -> None:
    (data / "__cluster_metadata-0" / "quorum-state").write_text("{")
    result = kwire("log", "repair", data, "-o", tmp_path / "new")
    assert result.code == 1
    assert "not repaired" in result.err
    assert "quorum-state" in result.err


def test_index_rebuilds_the_files_next_to_the_logs(data: Path, kwire: Callable) -> None:
    logs = {name: content for name, content in tree(data).items() if name.endswith(".log")}
    shown = kwire("log", "index", data)
    assert shown.code == 1
    assert {line.split()[0] for line in shown.out.splitlines()[1:-1]} == {"u-plain-2", "u-plain-3", "u-txn-0"}
    result = kwire("log", "index", data, "--apply")
    assert result.code == 1  # the damaged logs are left
    assert {name: content for name, content in tree(data).items() if name.endswith(".log")} == logs
    assert kwire("log", "index", data).out == "nothing to repair\n"


def test_wrong_usage_is_reported(data: Path, kwire: Callable, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert kwire("log", "repair", data, "-o", tmp_path / "new", "--apply").code == 2
    assert kwire("log", "repair", data, "-o", tmp_path / "full").code == 2
    assert kwire("log", "repair", data / "u-plain-4" / "00000000000000000000.log").code == 2
    assert kwire("log", "repair", tmp_path / "nothing").code == 2
