"""Copies of running Kafka brokers: fetched batches are the stored ones, byte for byte."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tools import kafka

from kwire.client import Client
from kwire.log import LogDirectory
from kwire.maintenance.pull import pull
from kwire.maintenance.verify import verify_directory
from kwire.storage.checkpoints import CLEANER_OFFSETS, parse_offset_checkpoint

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

ENOUGH_BYTES = 10_000_000

TOPICS: dict[str, dict[str, str]] = {
    "plain": {"segment.bytes": "1048576"},
    "zstd": {"compression.type": "zstd"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "300"},
    "rolling": {"retention.bytes": "300000", "segment.ms": "300"},
    "transactions": {"segment.ms": "1000"},
}
SETTINGS: dict[str, str | int] = {
    "log.retention.check.interval.ms": 200,
    "log.segment.delete.delay.ms": 50,
    "log.cleaner.backoff.ms": 50,
    "log.initial.task.delay.ms": 500,
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}


class Load:
    """Producers (plain, idempotent, transactional, of every codec) and a consumer that commits."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=run) for run in (self._plain, self._transactions, self._consume)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _plain(self) -> None:
        codecs = ("none", "gzip", "snappy", "lz4")
        producers = [
            Producer(
                {
                    "bootstrap.servers": self._server,
                    "linger.ms": 5,
                    "compression.type": codec,
                    "enable.idempotence": codec == "lz4",
                }
            )
            for codec in codecs
        ]
        i = 0
        while not self._stop.is_set():
            for producer in producers:
                for topic in ("plain", "zstd", "append-time", "compacted", "rolling"):
                    producer.produce(topic, key=b"%d" % (i % 300), value=b"v%d" % i * (i % 40), partition=i % 2)
                producer.poll(0)
            i += 1
            if i % 300 == 0:
                for producer in producers:
                    producer.flush()
        for producer in producers:
            producer.flush()

    def _transactions(self) -> None:
        producer = Producer({"bootstrap.servers": self._server, "transactional.id": str(uuid.uuid4()), "linger.ms": 1})
        producer.init_transactions()
        i = 0
        while not self._stop.is_set():
            producer.begin_transaction()
            for n in range(20):
                producer.produce("transactions", key=b"%d" % n, value=b"t%d" % i, partition=n % 2)
            producer.flush()
            producer.abort_transaction() if i % 3 == 0 else producer.commit_transaction()
            i += 1

    def _consume(self) -> None:
        consumer = Consumer({"bootstrap.servers": self._server, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["plain"])
        while not self._stop.is_set():
            consumer.poll(0.1)
        consumer.close()


@contextmanager
def busy(directory: Path, version: str) -> Iterator[tuple[kafka.KafkaBroker, Load]]:
    with kafka.KafkaBroker(directory, version=version, **SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        new = [NewTopic(name, 2, 1, config=config) for name, config in TOPICS.items()]
        for created in admin.create_topics(new).values():
            created.result()
        load = Load(broker.bootstrap_servers)
        load.start()
        try:
            yield broker, load
        finally:
            load.stop()


def batches(directory: Path | str) -> dict[tuple[str, int], dict[int, bytes]]:
    """Return the bytes of each batch by partition and base offset."""
    return {
        key: {batch.base_offset: bytes(batch.buffer) for _, batch in log.batches()}
        for key, log in LogDirectory(directory).items()
        if key[0] != "__cluster_metadata"
    }


@pytest.mark.parametrize("version", ["2.8.2", "3.9.1", "4.4.0"])
def test_copies_of_a_busy_broker_have_its_batches(version: str, tmp_path: Path) -> None:
    growing, fresh, bucket = str(tmp_path / "growing"), str(tmp_path / "fresh"), f"memory://{uuid.uuid4().hex}/copy"
    with busy(tmp_path / "kafka", version) as (broker, load):
        with Client(broker.bootstrap_servers) as client:
            runs = copied = 0
            while runs < 6 or copied < ENOUGH_BYTES:
                result = pull(client, growing)
                assert result.is_complete, result
                assert pull(client, bucket).is_complete
                runs, copied = runs + 1, copied + result.copied_bytes
            load.stop()
            assert pull(client, growing).is_complete
            assert pull(client, bucket).is_complete
            result = pull(client, fresh)
            assert result.is_complete
        data = broker.log_dir
    stored = batches(data)
    assert sum(map(len, stored.values())) > 1000
    cleaned = parse_offset_checkpoint((data / CLEANER_OFFSETS).read_bytes())
    for copy in (growing, fresh, bucket):
        assert [each for each in verify_directory(LogDirectory(copy)).damages if not each.is_harmless] == []
        copied = batches(copy)
        assert copied.keys() == stored.keys()
        for key, here in stored.items():
            start = cleaned.get(key, 0)  # below, the source was compacted again after it was copied
            there = copied[key]
            assert {at: data for at, data in here.items() if at >= start}.items() <= there.items(), key
            assert set(here) <= set(there), key
