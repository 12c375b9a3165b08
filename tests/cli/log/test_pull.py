"""`kwire log pull`: the table, events, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.maintenance.pull.test_pull import create, delete_records, write

from kwire.broker import Broker
from kwire.client import Client
from kwire.maintenance.pull import MANIFEST


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with Broker(data_dir=tmp_path / "source") as broker, Client(broker.bootstrap_servers) as client:
        create(broker, "orders", 2)
        create(broker, "users")
        write(client, "orders", 3)
        delete_records(broker, "orders", 10)
        yield f"kafka://{broker.bootstrap_servers}"


def test_the_table_lists_what_the_copy_has(url: str, kwire: Callable, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    result = kwire("log", "pull", url, "-o", copy)
    assert (result.code, result.err) == (0, "")
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0][:5] == ["TOPIC", "PARTITION", "STATE", "START", "END"]
    assert lines[1][:5] == ["orders", "0", "complete", "10", "30"]
    assert lines[-1][:2] == ["3", "partitions,"]
    assert kwire("log", "verify", copy).out.endswith("no damage\n")
    assert json.loads((copy / MANIFEST).read_text())["complete"] is True


def test_a_url_may_name_a_topic_or_a_partition(url: str, kwire: Callable, tmp_path: Path) -> None:
    kwire("log", "pull", f"{url}/orders-1", "-o", tmp_path / "one")
    assert sorted(path.name for path in (tmp_path / "one").iterdir() if path.is_dir()) == ["orders-1"]
    result = kwire("log", "pull", f"{url}/orders", "--topic", "users", "-o", tmp_path / "two")
    assert result.code == 2
    assert "use --topic with the URL of a cluster" in result.err
    assert not (tmp_path / "two").exists()


def test_a_target_that_is_a_file_and_a_run_without_topics_are_reported(
    url: str, kwire: Callable, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    result = kwire("log", "pull", url, "-o", tmp_path / "file")
    assert (result.code, result.err) == (2, f"kwire: {tmp_path}/file: a file; a copy is a directory\n")
    assert (tmp_path / "file").read_text() == "mine"
    with Broker() as empty:
        result = kwire("log", "pull", f"kafka://{empty.bootstrap_servers}", "-o", tmp_path / "copy")
    said = "kwire: nothing to copy: the cluster has no topics that the account may see\n"
    assert (result.code, result.err) == (1, said)


def test_a_changed_segment_is_found_by_verify(url: str, kwire: Callable, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    kwire("log", "pull", url, "-o", copy)
    segment = next(copy.glob("orders-0/*.log"))
    segment.write_bytes(segment.read_bytes()[:-10])
    result = kwire("log", "verify", copy, "--format", "json")
    assert result.code == 1
    (found,) = (row for row in json.loads(result.out) if row["kind"] == "copy")
    assert found["file"] == str(segment)
    assert "the manifest has" in found["cause"]


def test_verify_compares_a_copy_with_its_cluster(url: str, kwire: Callable, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    kwire("log", "pull", url, "-o", copy)
    result = kwire("log", "verify", copy, "--against", url)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-1] == f"compared with {url}"
    segment = next(copy.glob("orders-0/*.log"))
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    result = kwire("log", "verify", copy, "--against", url, "--format", "json")
    assert result.code == 1
    found = [row for row in json.loads(result.out) if "source's batch" in row["cause"]]
    assert [(row["topic"], row["partition"], row["first_offset"], row["last_offset"]) for row in found] == [
        ("orders", 0, 20, 29)
    ]
    wrong = kwire("log", "verify", copy, "--against", tmp_path / "source", "-c", "client.id=x")
    assert (wrong.code, "requires a path that begins with kafka://" in wrong.err) == (2, True)


def test_verify_notes_what_compaction_has_removed_since(
    kafka_logs: dict[str, Path], kwire: Callable, tmp_path: Path
) -> None:
    original, source = kafka_logs["modern"] / "data", tmp_path / "compacted"
    configs = ("-c", "cleanup.policy=compact", "-c", "min.cleanable.dirty.ratio=0")
    kwire("log", "compact", original, "--topic", "orders", *configs, "-o", source)
    arguments = ("log", "verify", original, "--against", source, "--topic", "orders", "--format", "json")
    assert (kwire(*arguments).code, json.loads(kwire(*arguments).out)) == (0, [])
    notes = [row for row in json.loads(kwire(*arguments, "--notes").out) if row["kind"] == "copy"]
    assert {row["cause"] for row in notes} == {"compacted in the source since it was copied"}
    assert notes[0]["last_offset"] > notes[0]["first_offset"]


def test_wrong_usage_creates_nothing(kwire: Callable, tmp_path: Path) -> None:
    for source, message in (
        ("orders", "expected kafka://host:port"),
        ("kafka://127.0.0.1:1", "cannot connect"),
    ):
        result = kwire("log", "pull", source, "-o", tmp_path / "copy", "-c", "default.api.timeout.ms=300")
        assert message in result.err
        assert result.code != 0
    assert not (tmp_path / "copy").exists()
