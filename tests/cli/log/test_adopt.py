"""`kwire log adopt`: the report, the exit codes, and what --apply writes."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest
from tests.maintenance.adopt.nodes import CLUSTER_ID, ONE_EPOCH, ORDERS, node
from tests.maintenance.adopt.test_plan import write_old_metadata

from kwire.cli.main import run
from kwire.identifiers import render_uuid
from kwire.log import LogDirectory
from kwire.log.topics import replay_cluster


def two(tmp_path: Path) -> list[str]:
    logs = [{("orders", 0): [(0, 10)], ("orders", 1): ONE_EPOCH}, {("orders", 0): [(0, 7)], ("orders", 1): ONE_EPOCH}]
    return [str(node(tmp_path / f"n{n}", n, each)) for n, each in enumerate(logs, 1)]


def test_the_dry_run_shows_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = two(tmp_path)
    assert run(["log", "adopt", *paths, "--kafka-version", "3.9.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["TOPIC", "PARTITION", "REPLICAS", "ISR", "EPOCH", "START", "END", "BEHIND", "MISSING"]
    assert lines[1].split() == ["orders", "0", "1,2", "1", "0", "0", "10", "2:3"]
    assert lines[2].split() == ["orders", "1", "2,1", "2,1", "0", "0", "10"]
    assert f"cluster {CLUSTER_ID}, nodes 1, 2" in lines
    assert "metadata.version 21: for Kafka 3.9 and newer" in lines
    assert f"metadata log to be written: {paths[1]}/__cluster_metadata-0" in lines
    assert lines[-1] == "dry run, nothing was written: --apply writes"
    assert not list(tmp_path.glob("*/__cluster_metadata-0"))


def test_apply_writes_what_the_report_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths, controller = two(tmp_path), tmp_path / "controller"
    arguments = ["log", "adopt", *paths, "--controller-dir", f"100={controller}", "--format", "json"]
    assert run([*arguments, "--apply"]) == 0
    cluster, *rows = json.loads(capsys.readouterr().out)
    assert (cluster["kind"], cluster["cluster_id"], cluster["is_written"]) == ("cluster", CLUSTER_ID, True)
    assert cluster["metadata_logs"] == [*paths, str(controller)]
    assert [(row["topic"], row["partition"], row["isr"], row["behind"]) for row in rows] == [
        ("orders", 0, [1], {"2": 3}),
        ("orders", 1, [2, 1], {}),
    ]
    written = replay_cluster(LogDirectory(controller))
    assert rows[0]["topic_id"] == render_uuid(ORDERS) == render_uuid(written.topics["orders"].topic_id)
    assert written.features == cluster["features"]


def test_missing_parts_and_problems_have_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gap = str(node(tmp_path / "gap", 1, {("orders", 1): ONE_EPOCH}))
    assert run(["log", "adopt", gap, "--apply"]) == 1
    captured = capsys.readouterr()
    assert "no log found; it will be empty" in captured.out
    assert f"metadata log written: {gap}/__cluster_metadata-0" in captured.out
    one = node(tmp_path / "one", 1, {("orders", 0): ONE_EPOCH})
    two = node(tmp_path / "two", 2, {("orders", 0): ONE_EPOCH}, topic_id=UUID(int=5))
    assert run(["log", "adopt", str(one), str(two), "--apply"]) == 1
    captured = capsys.readouterr()
    assert "prevents adoption: orders: several topic ids" in captured.err
    assert "nothing was written: see the problems" in captured.out
    assert not (one / "__cluster_metadata-0").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing"], "missing: no such directory"),
        (["n1", "--kafka-version", "2.8"], "unknown Kafka version '2.8'"),
        (["n1", "--controller-dir", "x"], "--controller-dir 'x': expected ID=DIR"),
        (["n1", "--controller-dir", "1=c"], "node 1 has another directory"),
        (["n1", "n1"], "the same directory as"),
    ],
)
def test_wrong_usage_is_reported(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    node(tmp_path / "n1", 1, {("orders", 0): ONE_EPOCH})
    monkeypatch.chdir(tmp_path)
    assert run(["log", "adopt", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_strays_that_are_all_adopted_have_exit_code_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As after Kafka has started without the metadata: its own has none of the topics, and it set their logs aside."""
    logs = {("payments", 0): ONE_EPOCH, ("payments", 1): ONE_EPOCH}
    path = node(tmp_path / "n1", 1, logs, topic_id=UUID(int=5))
    write_old_metadata(str(path), {})
    for number in (0, 1):
        (path / f"payments-{number}").rename(path / f"payments-{number}.{UUID(int=5).hex}-stray")
    assert run(["log", "adopt", str(path), "--apply"]) == 1
    assert "set aside by Kafka, not adopted; --strays adopts it" in capsys.readouterr().err
    assert run(["log", "adopt", str(path), "--strays", "--apply"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "assumed: payments: not in the old metadata; adopted from its directories" in captured.out
    assert sorted(each.name for each in path.glob("payments-*")) == ["payments-0", "payments-1"]
