"""What does `kwire log pull` cost beside MirrorMaker 2 and librdkafka, and what does each copy preserve?

The source is a broker of real Kafka with its files in the page cache. kwire's pull writes a log directory, its start
included. MirrorMaker 2 writes to another broker, whose cost is not counted, nor is the first half of the topic, which
warms its JVM up. librdkafka, through confluent-kafka, consumes with checksums and writes nothing.

Equal batches are those whose SHA-256 is the same. Small topics have what else a copy may lose: a deleted beginning,
compression, idempotence, transactions, two leader epochs, LogAppendTime.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import KafkaBroker

from benchmarks.data import log_directory
from benchmarks.log.mirror_maker import mirror
from benchmarks.messages.timing import line
from benchmarks.processes import Cost, costs_of
from kwire.log import LogDirectory
from kwire.log.reading.readable_log import ReadableLog
from kwire.records import Batch, Record

ROUNDS = 3
RECORDS = 8_000_000
PARTITIONS = 2
SMALL = ("orders", "stamped")
DELETED = 30
CONSUMER = """
import sys
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "none", "enable.auto.commit": False,
                     "check.crcs": True, "fetch.queue.backoff.ms": 10})
consumer.assign([TopicPartition("bench", n, 0) for n in range(2)])
left = int(sys.argv[2])
while left > 0:
    left -= len(consumer.consume(10_000, 1.0))
consumer.close()
"""
PULL = """
import sys
from kwire.client import Client
from kwire.maintenance.pull import PullOptions, pull
with Client(sys.argv[1]) as client:
    assert pull(client, sys.argv[2], PullOptions(topics=["bench", "orders", "stamped"], groups=False)).is_complete
"""
FIELDS: Mapping[str, Callable[[Batch, Record], object]] = {
    "offset": lambda _, record: record.offset,
    "timestamp": lambda _, record: record.timestamp,
    "timestamp-type": lambda _, record: record.timestamp_type,
    "compression": lambda batch, _: batch.compression,
    "producer-id-and-sequence": lambda batch, record: (batch.producer_id, batch.producer_epoch, record.sequence),
    "transaction": lambda batch, _: batch.is_transactional,
    "leader-epoch": lambda batch, _: batch.leader_epoch,
}


def produce(server: str, topic: str, keys: range, **settings: str) -> None:
    """Write records with numbers as keys; with a transactional.id, in transactions of ten: every third aborts."""
    producer = Producer({"bootstrap.servers": server, "log_level": 0, "linger.ms": 5, **settings})
    if "transactional.id" not in settings:
        for key in keys:
            producer.produce(topic, key=b"%d" % key, value=b"value %d " % key * 20, partition=0)
        producer.flush()
        return
    producer.init_transactions()
    for n, start in enumerate(range(keys.start, keys.stop, 10)):
        producer.begin_transaction()
        for key in range(start, start + 10):
            producer.produce(topic, key=b"%d" % key, value=b"value %d " % key * 20, partition=0)
        producer.flush()
        producer.abort_transaction() if n % 3 == 2 else producer.commit_transaction()


def fill(folder: Path) -> None:
    """Write the source's topics."""
    with KafkaBroker(folder, heap="512m") as broker:
        server = broker.bootstrap_servers
        topics = [NewTopic("bench", PARTITIONS, 1), NewTopic("orders", 1, 1)]
        topics.append(NewTopic("stamped", 1, 1, config={"message.timestamp.type": "LogAppendTime"}))
        admin = AdminClient({"bootstrap.servers": server, "log_level": 0})
        for created in admin.create_topics(topics).values():
            created.result()
        produce(server, "orders", range(100), **{"enable.idempotence": "true", "compression.type": "zstd"})
        produce(server, "orders", range(100, 200), **{"transactional.id": "payments", "compression.type": "lz4"})
        for deleted in admin.delete_records([TopicPartition("orders", 0, DELETED)]).values():
            deleted.result()
    for n in range(PARTITIONS):
        place = folder / "data" / f"bench-{n}"
        for path in [*place.glob("0*"), place / "leader-epoch-checkpoint"]:
            path.unlink(missing_ok=True)
        shutil.copytree(log_directory(RECORDS) / place.name, place, dirs_exist_ok=True)
    with KafkaBroker(folder, heap="512m") as broker:  # in the next leader epoch
        produce(broker.bootstrap_servers, "orders", range(200, 300))
        produce(broker.bootstrap_servers, "stamped", range(100))


def logs(root: Path) -> list[ReadableLog]:
    """Return the logs of a directory that are compared."""
    return [log for (topic, _), log in sorted(LogDirectory(root).items()) if topic in ("bench", *SMALL)]


def hashes(root: Path) -> set[tuple[str, int, bytes]]:
    """Return the SHA-256 of each batch."""
    return {
        (log.topic, log.partition, hashlib.sha256(batch.buffer).digest())
        for log in logs(root)
        for _, batch in log.batches(log.log_start_offset)
    }


def fields(root: Path) -> dict[tuple[str, bytes | None], dict[str, object]]:
    """Return the fields of each record of the small topics, by key; `committed` is whether consumers see it as such."""
    found: dict[tuple[str, bytes | None], dict[str, object]] = {}
    for log in logs(root):
        if log.topic in SMALL:
            committed = {record.offset for record in log.read(isolation="read_committed")}
            for _, batch in log.batches(log.log_start_offset):
                for record in () if batch.is_control else batch.records():
                    if record.offset >= log.log_start_offset:
                        values = {name: value(batch, record) for name, value in FIELDS.items()}
                        found[log.topic, record.key] = values | {"committed": record.offset in committed}
    return found


def print_costs(size: int, pulled: Cost, mirrored: Cost, consumed: Cost) -> None:
    """Print the figures of speed; all costs are of `size` bytes."""
    mb = size / 1e6
    for peer, theirs in {"MirrorMaker": mirrored, "confluent-kafka-consuming": consumed}.items():
        print(line("log.pull.cpu", mb / pulled.cpu_s, "MB/s", mb / theirs.cpu_s, peer))
        print(line("log.pull.wall", mb / pulled.wall_s, "MB/s", mb / theirs.wall_s, peer))
    print(line("log.pull.peak", pulled.peak_mb, "MB"))


def print_equality(source: Path, copy: Path, target: Path) -> None:
    """Print what is the same in pull's copy and in MirrorMaker's target."""

    def show(name: str, ours: int, mirrored: int, total: int) -> None:
        print(f"log.pull.equal-{name} {ours} of-{total} - MirrorMaker:{mirrored}")

    batches = hashes(source)
    show("batches", len(batches & hashes(copy)), len(batches & hashes(target)), len(batches))
    ids, pulled, mirrored = ({(log.topic, log.topic_id) for log in logs(root)} for root in (source, copy, target))
    show("topic-ids", len(ids & pulled), len(ids & mirrored), len(ids))
    records, ours, theirs = fields(source), fields(copy), fields(target)
    for name in [*FIELDS, "committed"]:
        equal, mirrored_equal = (
            sum(key in found and found[key][name] == record[name] for key, record in records.items())
            for found in (ours, theirs)
        )
        show(name, equal, mirrored_equal, len(records))


def main() -> None:
    """Print the figures."""
    folder = Path(tempfile.mkdtemp())
    source, target, copy = folder / "source", folder / "target", folder / "copy"
    try:
        fill(source)
        counts = {log.topic: [0] * (PARTITIONS if log.topic == "bench" else 1) for log in logs(source / "data")}
        for log in logs(source / "data"):
            counts[log.topic][log.partition] = log.log_end_offset
        records = sum(counts["bench"])
        counts |= {topic: [sum(key[0] == topic for key in fields(source / "data"))] for topic in SMALL}
        size = sum(path.stat().st_size for path in source.glob("data/bench-*/*.log"))
        pulled, consumed = [], []
        own = {"auto.create.topics.enable": "false"}
        with KafkaBroker(source, heap="512m") as broker:
            for _ in range(ROUNDS):
                shutil.rmtree(copy, ignore_errors=True)
                pulled.append(costs_of(sys.executable, "-c", PULL, broker.bootstrap_servers, str(copy)))
                consumed.append(costs_of(sys.executable, "-c", CONSUMER, broker.bootstrap_servers, str(records)))
            with KafkaBroker(target, heap="512m", **own) as other:
                copied = mirror(broker.bootstrap_servers, other.bootstrap_servers, counts, "bench", "1g", folder)
        share = records / copied.records
        cost = copied.cost._replace(cpu_s=copied.cost.cpu_s * share, wall_s=copied.cost.wall_s * share)
        print_costs(size, min(pulled), cost, min(consumed))
        print_equality(source / "data", copy, target / "data")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
