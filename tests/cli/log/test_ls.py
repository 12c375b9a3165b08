"""`kwire log ls` on real log directories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.crafted import segment
from tests.records.building import batch, record

from kwire.cli.main import run


def partition_of(key: str) -> tuple[str, int]:
    """`orders-0 read_committed` as ("orders", 0)."""
    topic, _, partition = key.split()[0].rpartition("-")
    return topic, int(partition)


def listed(kwire: Callable, *arguments: str | Path) -> dict[tuple[str, int], dict]:
    result = kwire("log", "ls", "--format", "json", *arguments)
    assert result.code == 0, result.err
    return {(row["topic"], row["partition"]): row for row in json.loads(result.out)}


@pytest.mark.parametrize("archive", ["modern", "modern44", "legacy"])
def test_offsets_equal_those_of_kafkas_consumer(archive: str, kafka_logs: dict[str, Path], kwire: Callable) -> None:
    rows = listed(kwire, kafka_logs[archive] / "data")
    reported = json.loads((kafka_logs[archive] / "expected" / "consumed" / "offsets.json").read_text())
    ends = {"read_uncommitted": "log_end_offset", "read_committed": "last_stable_offset"}
    for key, entry in reported.items():
        row = rows[partition_of(key)]
        assert (row["log_start_offset"], row[ends[key.split()[1]]]) == (entry["beginning"], entry["end"]), key
    assert len(reported) > 20


def test_wide_counts_equal_those_of_kafkas_consumer(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    rows = listed(kwire, kafka_logs["modern"] / "data", "--wide")
    reported = json.loads((kafka_logs["modern"] / "expected" / "consumed" / "offsets.json").read_text())
    for key, entry in reported.items():
        if key.endswith(" read_uncommitted"):
            assert rows[partition_of(key)]["records"] == entry["records"], key
    assert set(rows["orders", 0]["codecs"]) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert rows["txn", 0]["control_records"] == 701 - rows["txn", 0]["records"]


def test_wide_supports_all_record_formats(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    rows = listed(kwire, kafka_logs["legacy"] / "data", "--wide", "--topic", "mixed-format")
    assert rows["mixed-format", 0]["magics"] == [0, 1, 2]


def test_topics_sum_their_partitions(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    partitions = listed(kwire, data)
    result = kwire("log", "ls", data, "--topics", "--format", "jsonl", "--sort", "size")
    topics = [json.loads(line) for line in result.out.splitlines()]
    assert topics[0]["topic"] == "orders"
    assert topics[0]["partitions"] == 3
    assert topics[0]["size_bytes"] == sum(row["size_bytes"] for key, row in partitions.items() if key[0] == "orders")
    sizes = [topic["size_bytes"] for topic in topics]
    assert sizes == sorted(sizes, reverse=True)


def test_topic_patterns_and_partitions_select(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    rows = listed(kwire, kafka_logs["modern"] / "data", "--topic", "orders*", "--topic", "txn", "--partition", "1")
    assert set(rows) == {("orders", 1), ("txn", 1)}


def test_the_table_has_one_line_per_partition(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    lines = kwire("log", "ls", data).out.splitlines()
    assert lines[0].split()[:5] == ["TOPIC", "PARTITION", "SEGMENTS", "START", "END"]
    assert len(lines) == 1 + len(listed(kwire, data))
    trimmed = next(line for line in lines if line.startswith("trimmed"))
    assert trimmed.split()[1:6] == ["0", "6", "555", "1200", "1200"]


def test_paths_without_a_log_are_reported_on_standard_error(kwire: Callable, tmp_path: Path) -> None:
    segment(tmp_path / "orders-0", batch(record()))
    (tmp_path / f"orders-1.{'0' * 32}-delete").mkdir()
    result = kwire("log", "ls", tmp_path)
    assert result.code == 0
    assert "a log that is being deleted" in result.err


def test_a_damaged_end_is_reported_with_exit_code_1(kwire: Callable, tmp_path: Path) -> None:
    segment(tmp_path / "orders-0", batch(record()), b"\x00" * 11 + b"\x05" + b"garbage" * 20)
    result = kwire("log", "ls", tmp_path)
    assert result.code == 1
    assert "DAMAGE" in result.out


def test_the_parent_of_a_log_directory_suggests_it(
    kafka_logs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["log", "ls", str(kafka_logs["modern"])]) == 2
    assert f"found data/, expected/; use {kafka_logs['modern']}/data" in capsys.readouterr().err
