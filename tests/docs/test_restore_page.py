"""The walk of docs/restore.md: a busy cluster is copied and lost, and clients continue on the restored directory."""

from __future__ import annotations

import datetime
import shlex
import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.docs.examples import blocks
from tests.maintenance.restore.busy import INTERNAL, QUIET, Load, check_offsets, check_transactions, create

from kwire.broker import Broker
from kwire.cli.main import run
from kwire.log import LogDirectory
from kwire.log.topics import replay_groups

IN_PAGE = "2026-11-01T12:03:20Z"


def commands() -> list[str]:
    """Return the commands of the page, in order."""
    return [line for block in blocks("restore.md", "sh") for line in block.splitlines()]


def test_the_walk_of_restore_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pull, restore, spread = commands()
    with Broker(data_dir=tmp_path / "cluster", **INTERNAL) as broker:
        create(broker.bootstrap_servers)
        with Load(broker.bootstrap_servers) as load:
            load.run_until(40)
            moment = datetime.datetime.now(datetime.UTC)
            load.run_until(80)
        pull = pull.replace("broker:9092", broker.bootstrap_servers).replace(" --follow", "")  # it would never end
        assert run(shlex.split(pull)[1:]) == 0
    shutil.rmtree(tmp_path / "cluster")
    text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert run(shlex.split(restore.replace(IN_PAGE, text))[1:]) == 0
    assert run(shlex.split(spread.replace(IN_PAGE, text).replace("-o restored", "-o spread"))[1:]) == 0
    assert sorted(path.name for path in (tmp_path / "spread").iterdir()) == ["node-1", "node-2", "node-3"]

    restored = LogDirectory(tmp_path / "restored")
    check_offsets(restored, replay_groups(restored), check_transactions(restored))
    plain = [record for p in range(3) for record in restored["plain", p].read()]
    now_ms = int(moment.timestamp() * 1000)
    assert plain
    assert all(record.timestamp <= now_ms for record in plain)
    key, committed = max(replay_groups(restored).groups["readers"].offsets.items())
    expected = [record.value for record in restored[key].read(committed.offset)]
    with Broker(data_dir=tmp_path / "restored") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
        producer.produce(key[0], b"after", b"k", key[1])
        assert producer.flush(10) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers", **QUIET})
        (position,) = consumer.committed([TopicPartition(*key)], timeout=10)
        consumer.assign([position])
        found: list[bytes | None] = []
        deadline = time.monotonic() + 30
        while (not found or found[-1] != b"after") and time.monotonic() < deadline:
            found += [message.value() for message in consumer.consume(100, 0.2)]
        consumer.close()
    assert found == [*expected, b"after"]

    shutil.rmtree(tmp_path / "restored")
    (example,) = blocks("restore.md", "python")
    exec(compile(example.replace("1_793_534_600_000", str(now_ms)), "restore.md", "exec"), {})
    assert (tmp_path / "restored" / "__cluster_metadata-0").is_dir()
