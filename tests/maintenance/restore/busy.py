"""A busy broker and what must hold for every cut of its logs.

Every transactional record carries its transaction's name and the number of records in it, as does the offset that is
committed with it. So each cut can be checked without knowing how it was made.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kwire.internal_topics.groups_state import GroupsState
from kwire.internal_topics.transactions_state import TransactionState
from kwire.log import LogDirectory
from kwire.log.topics import replay_groups, replay_transactions
from kwire.maintenance.restore import RestoreResult
from kwire.maintenance.verify import verify_directory
from tests.waiting import HANG_S

TOPICS = {"orders": 4, "payments": 3, "plain": 3, "stamped": 2}
QUIET: dict[str, Any] = {"log_level": 0}
INTERNAL = {
    "offsets_topic_num_partitions": 3,
    "transaction_state_log_num_partitions": 3,
}


def create(servers: str, segment_bytes: int = 1 << 20, replicas: int = 1) -> None:
    """Create the topics."""
    new = []
    for name, partitions in TOPICS.items():
        configs = {"segment.bytes": str(segment_bytes), "segment.ms": "700"}
        if name == "stamped":
            configs["message.timestamp.type"] = "LogAppendTime"
        new.append(NewTopic(name, partitions, replicas, config=configs))
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    for done in admin.create_topics(new).values():
        done.result()


class Load:
    """Plain, idempotent and transactional producers, and groups that commit with and without transactions."""

    def __init__(self, servers: str, *, seed: int = 1, transactional: int = 3) -> None:
        self.servers, self.stopped = servers, threading.Event()
        self.transactions = self.commits = 0
        runs = [lambda n=n: self._transact(n, random.Random(seed * 100 + n)) for n in range(transactional)]
        runs += [self._plain, self._consume]
        self.threads = [threading.Thread(target=run) for run in runs]

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def run_until(self, transactions: int) -> None:
        """Wait until that many transactions have ended, and the group of readers has committed offsets."""
        deadline = time.monotonic() + HANG_S * 4
        while self.transactions < transactions or not self.commits:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _transact(self, number: int, choose: random.Random) -> None:
        settings = {"bootstrap.servers": self.servers, "linger.ms": 1, "transactional.id": f"t{number}", **QUIET}
        producer = Producer(settings)
        producer.init_transactions(HANG_S)
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": f"eos{number}", **QUIET})
        group = consumer.consumer_group_metadata()
        n = 0
        while not self.stopped.is_set():
            name = f"t{number}.{n}"
            producer.begin_transaction()
            places = [
                (t, choose.randrange(TOPICS[t]))
                for t in choose.choices(["orders", "payments"], k=choose.randrange(1, 7))
            ]
            with_offset = choose.random() < 0.6
            for topic, partition in places:
                key = f"{name}/{len(places)}/{int(with_offset)}".encode()
                producer.produce(topic, b"x" * choose.randrange(300), key, partition)
                if choose.random() < 0.3:
                    producer.poll(0)
                    time.sleep(choose.random() * 0.003)
            if with_offset:
                at = TopicPartition("plain", number % 3, n % 50, metadata=name)
                producer.send_offsets_to_transaction([at], group, HANG_S)
            if choose.random() < 0.2:
                producer.flush()
                producer.abort_transaction(HANG_S)
            else:
                producer.commit_transaction(HANG_S)
            n += 1
            self.transactions += 1
        producer.begin_transaction()  # and leave it open
        for topic in ("orders", "payments"):
            producer.produce(topic, b"open", f"t{number}.open/2/0".encode(), number)
        producer.flush()
        consumer.close()

    def _plain(self) -> None:
        producers = [
            Producer(
                {"bootstrap.servers": self.servers, "enable.idempotence": n == 1, "compression.type": codec, **QUIET}
            )
            for n, codec in enumerate(("none", "lz4", "zstd"))
        ]
        n = 0
        while not self.stopped.is_set():
            for producer in producers:
                for topic in ("plain", "stamped"):
                    for partition in range(TOPICS[topic]):
                        producer.produce(topic, b"v%d" % n, b"k%d" % n, partition)
                producer.flush()
            n += 1
            time.sleep(0.003)

    def _consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **QUIET,
            }
        )
        consumer.subscribe(["plain", "stamped"])
        while not self.stopped.is_set():
            if consumer.consume(200, 0.05):
                try:
                    consumer.commit(asynchronous=False)
                    self.commits += 1
                except KafkaException as error:
                    if error.args[0].code() not in (KafkaError._NO_OFFSET, KafkaError.REBALANCE_IN_PROGRESS):
                        raise
        consumer.close()


def check_cut(source: Path, target: Path, result: RestoreResult) -> None:
    """Check a restored directory of one node against its source."""
    before, after = LogDirectory(source), LogDirectory(target)
    damages = [each for each in verify_directory(after).damages if not each.is_harmless]
    assert damages == [], damages[:3]
    ends = {(each.topic, each.partition): each for each in result.partitions}
    aborted = {key for each in result.transactions if not each.is_committed for key in each.partitions}
    for key, log in after.items():
        if key[0] == "__cluster_metadata":
            continue
        cut = ends[key].cut_offset
        assert log.log_end_offset == ends[key].log_end_offset >= cut, key
        assert log.last_stable_offset == log.log_end_offset, key  # no transaction is open
        found = [batch for _, batch in log.batches() if batch.base_offset < cut]
        if found and found[-1].count == 0 and found[-1].base_offset == cut - 1:
            found.pop()  # compaction left no batch there
        kept = {batch.base_offset: bytes(batch.buffer) for batch in found}
        stored = {
            batch.base_offset: bytes(batch.buffer) for _, batch in before[key].batches() if batch.base_offset < cut
        }
        assert kept.keys() == stored.keys(), key
        changed = [offset for offset in kept if kept[offset] != stored[offset]]
        assert not changed or key in aborted
        assert all(len(kept[offset]) == len(stored[offset]) for offset in changed)  # a marker for a marker
    check_offsets(after, replay_groups(after), check_transactions(after))
    states = replay_transactions(after).transactions if "__transaction_state" in after.topics else {}
    for transaction in states.values():
        assert transaction.status in (
            TransactionState.EMPTY,
            TransactionState.COMPLETE_COMMIT,
            TransactionState.COMPLETE_ABORT,
        ), transaction


def check_transactions(after: LogDirectory) -> dict[str, str]:
    """Check that all records of a transaction are committed, or none.

    Returns the last transaction of each group that committed an offset.
    """
    seen: dict[str, int] = defaultdict(int)
    for (topic, _), log in after.items():
        if topic in ("orders", "payments"):
            for record in log.read(isolation="read_committed"):
                assert record.key is not None
                seen[record.key.decode()] += 1
    latest: dict[str, int] = {}
    for key, count in seen.items():
        name, expected, with_offset = key.split("/")
        assert count == int(expected), f"{name}: {count} of {expected} records"
        producer, n = name.split(".")
        if with_offset == "1":
            latest[producer] = max(latest.get(producer, -1), int(n))
    return {f"eos{producer[1:]}": f"{producer}.{n}" for producer, n in latest.items()}


def check_offsets(after: LogDirectory, groups: GroupsState, latest: dict[str, str]) -> None:
    """Check that no offset is beyond its log, and that those of transactions are of the latest committed one."""
    found = {}
    for group_id, group in groups.groups.items():
        assert not group.pending_offsets
        for (topic, partition), offset in group.offsets.items():
            assert offset.offset <= after[topic, partition].log_end_offset, (group_id, topic, partition)
            if group_id.startswith("eos"):
                found[group_id] = offset.metadata.rstrip("\0")  # librdkafka sends the end of a C string
    assert found == latest
