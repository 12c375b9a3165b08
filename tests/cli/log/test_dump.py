"""`kwire log dump` as tables and JSON."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.crafted import segment
from tests.records.building import batch, record


def unpacked(row: dict, name: str) -> str | None:
    """Return the bytes of a key or value in base64, as in the consumer's file."""
    if f"{name}_base64" in row:
        return row[f"{name}_base64"]
    return None if row[name] is None else base64.b64encode(row[name].encode()).decode()


@pytest.mark.parametrize(
    ("archive", "topic"), [("modern", "orders-1"), ("modern", "compacted-0"), ("legacy", "mixed-format-1")]
)
def test_deep_json_lines_equal_the_records_of_kafkas_consumer(
    archive: str, topic: str, kafka_logs: dict[str, Path], kwire: Callable
) -> None:
    consumed = kafka_logs[archive] / "expected" / "consumed" / f"{topic}.read_uncommitted.jsonl.gz"
    expected = [json.loads(line) for line in gzip.decompress(consumed.read_bytes()).splitlines()]
    result = kwire("log", "dump", "--deep", "--format", "jsonl", kafka_logs[archive] / "data" / topic)
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert result.code == 0
    assert [
        {
            "partition": row["partition"],
            "offset": row["offset"],
            "timestamp": row["timestamp"],
            "timestampType": row["timestamp_type"],
            "key": unpacked(row, "key"),
            "value": unpacked(row, "value"),
            "headers": [[header["key"], unpacked(header, "value")] for header in row["headers"]],
            "leaderEpoch": row["leader_epoch"],
        }
        for row in rows
    ] == expected


def test_batches_as_json_are_one_array(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("log", "dump", "--format", "json", kafka_logs["modern"] / "data" / "txn-0")
    rows = json.loads(result.out)
    assert [row["base_offset"] for row in rows] == sorted(row["base_offset"] for row in rows)
    assert rows[0] | {"file": ""} == {
        "file": "",
        "topic": "txn",
        "partition": 0,
        "position": 0,
        "size_bytes": 315,
        "base_offset": 0,
        "last_offset": 1,
        "count": 2,
        "magic": 2,
        "compression": "gzip",
        "timestamp_type": "CreateTime",
        "max_timestamp": 1760000000779,
        "producer_id": 1027,
        "producer_epoch": 0,
        "base_sequence": 0,
        "partition_leader_epoch": 2,
        "is_transactional": True,
        "is_control": False,
        "delete_horizon_ms": None,
        "crc": rows[0]["crc"],
        "is_valid": True,
    }


def test_no_records_are_an_empty_array(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("log", "dump", "--format", "json", kafka_logs["modern"] / "data" / "empty-0")
    assert json.loads(result.out) == []
    assert kwire("log", "dump", kafka_logs["modern"] / "data" / "empty-0").out == "empty\n"


def offsets(kwire: Callable, *arguments: str | Path) -> list[int]:
    result = kwire("log", "dump", "--deep", "--format", "jsonl", *arguments)
    return [json.loads(line)["offset"] for line in result.out.splitlines()]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("40:52", range(40, 52)),
        (":3", range(3)),
        ("6913:", range(6913, 7015)),
        ("500", range(500, 501)),
        ("7:7", range(0)),
        ("9000:", range(0)),
    ],
)
def test_offset_ranges_are_half_open(asked: str, given: range, kafka_logs: dict[str, Path], kwire: Callable) -> None:
    assert offsets(kwire, kafka_logs["modern"] / "data" / "orders-0", "--offsets", asked) == list(given)


def test_timestamp_ranges_are_half_open_in_iso_or_milliseconds(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    log = kafka_logs["modern"] / "data" / "orders-0"
    consumed = kafka_logs["modern"] / "expected" / "consumed" / "orders-0.read_uncommitted.jsonl.gz"
    records = [json.loads(line) for line in gzip.decompress(consumed.read_bytes()).splitlines()]
    since, until = 1760000100000, 1760000200000
    expected = [r["offset"] for r in records if since <= r["timestamp"] < until]
    assert expected
    assert offsets(kwire, log, "--since", str(since), "--until", str(until)) == expected
    assert offsets(kwire, log, "--since", "2025-10-09T08:55:00", "--until", "2025-10-09T10:56:40+02:00") == expected


def test_every_file_type_has_a_table(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    folder = kafka_logs["modern"] / "data" / "txn-0"
    name = "00000000000000000012"
    files = [folder / f"{name}{kind}" for kind in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")]
    result = kwire("log", "dump", *files)
    assert result.code == 0
    for heading in ("LARGEST TIME", "POSITION", "TIME", "LAST STABLE", "COORDINATOR EPOCH"):
        assert heading in result.out
    rows = json.loads(kwire("log", "dump", "--format", "json", files[3]).out)
    assert rows[0]["first_offset"] == 69


def test_a_checkpoint_of_the_metadata_quorum_is_a_record_set(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    rows = kwire("log", "dump", "--deep", "--format", "jsonl", data / "bootstrap.checkpoint").out.splitlines()
    assert json.loads(rows[0])["control"] == "SNAPSHOT_HEADER"


def test_markers_print_their_transaction(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    log = kafka_logs["modern"] / "data" / "txn-1"
    rows = [json.loads(line) for line in kwire("log", "dump", "--deep", "--format", "jsonl", log).out.splitlines()]
    assert {row["control"] for row in rows if row["is_control"]} == {"COMMIT", "ABORT"}


def test_records_after_damage_are_printed(kwire: Callable, tmp_path: Path) -> None:
    """An undecodable batch, then a valid one; an invalid header ends the file."""
    torn = batch(b"\x7f" * 20, base_offset=1)
    file = segment(tmp_path / "t-0", batch(record()), torn, batch(record(), base_offset=2), b"\xff" * 40)
    result = kwire("log", "dump", "--deep", "--format", "jsonl", file)
    assert result.code == 1
    assert [json.loads(line)["offset"] for line in result.out.splitlines()] == [0, 2]
    assert len(result.err.splitlines()) == 2
    assert all(str(file) in line for line in result.err.splitlines())


def test_a_batch_larger_than_the_read_size_is_read_whole(kwire: Callable, tmp_path: Path) -> None:
    value = b"x" * (5 << 20)
    file = segment(tmp_path / "t-0", batch(record(value=value)), batch(record(), base_offset=1))
    rows = [json.loads(line) for line in kwire("log", "dump", "--deep", "--format", "jsonl", file).out.splitlines()]
    assert [len(row["value"]) for row in rows] == [len(value), 1]


def test_urls_are_read(kafka_logs: dict[str, Path], kwire: Callable, tmp_path: Path) -> None:
    import shutil

    archive = shutil.make_archive(str(tmp_path / "logs"), "zip", kafka_logs["modern"] / "data", "ids-0")
    rows = json.loads(kwire("log", "dump", "--format", "json", f"zip://ids-0::{archive}").out)
    assert sum(row["count"] for row in rows) == 736
