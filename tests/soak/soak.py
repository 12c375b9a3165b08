"""A broker is killed at random while clients write and read; at the end every record exists once, in order."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.soak.broker_process import BrokerProcess
from tests.soak.clients import (
    CLIENT,
    GIVE_UP_S,
    PARTITIONS,
    Copier,
    LiveReader,
    Outcome,
    PlainWriter,
    TransactionalWriter,
    Worker,
)
from tests.waiting import HANG_S

__all__ = ["Report", "soak"]

TOPICS = ("plain", "in", "out", "tx")
Rows = dict[int, list[tuple[int, str]]]
"""Offset and value of a topic's records, by partition."""
LEAST_KILLS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of a soak."""

    seed: int
    seconds: float
    kills: int
    slowest_start_s: float
    plain_records: int
    copied_records: int
    copies_aborted: int
    committed_transactions: int
    aborted_transactions: int
    unknown_transactions: int
    producers_replaced: int


def soak(directory: Path, *, seconds: float, seed: int, pause_s: tuple[float, float] = (1.0, 6.0)) -> Report:
    """Run for `seconds`, and until every event of a report has occurred.

    pause_s: the shortest and the longest life of the broker, in seconds.

    Raises AssertionError with the first error; the directory is kept for inspection.
    """
    choose = random.Random(seed)
    broker = BrokerProcess(directory)
    broker.start()
    try:
        return _soak(broker, seconds, seed, pause_s, choose)
    finally:
        broker.close()


def _soak(
    broker: BrokerProcess, seconds: float, seed: int, pause_s: tuple[float, float], choose: random.Random
) -> Report:
    servers = broker.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, **CLIENT})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in TOPICS]).values():
        future.result(HANG_S)
    plain = [PlainWriter(f"p{i}", servers, seed, "plain", codec) for i, codec in enumerate(("none", "zstd"))]
    feeder = PlainWriter("feeder", servers, seed, "in", "lz4")
    copier = Copier("copier", servers, seed)
    writers = [TransactionalWriter(f"t{i}", servers, seed) for i in range(2)]
    live = [
        LiveReader("live-plain", servers, seed, "plain"),
        LiveReader("live-tx", servers, seed, "tx"),
        LiveReader("live-group", servers, seed, "plain", "readers"),
    ]
    workers: list[Worker] = [*plain, feeder, copier, *writers, *live]
    for worker in workers:
        worker.start()
    deadline = time.monotonic() + seconds

    def is_enough() -> bool:
        outcomes = {outcome for writer in writers for outcome, _ in writer.outcomes}
        written = all(writer.acknowledged.total() > 100 for writer in [*plain, feeder])
        ended = {Outcome.COMMITTED, Outcome.ABORTED} <= outcomes
        return broker.kills >= LEAST_KILLS and written and ended and copier.copied > 0

    give_up = deadline + HANG_S
    while time.monotonic() < deadline or not is_enough():
        assert time.monotonic() < give_up, "the clients get nothing done"
        time.sleep(choose.uniform(*pause_s))
        for worker in workers:
            if not worker.is_alive():
                worker.end()
        broker.kill()
        while choose.random() < 0.25:  # while it recovers, and again
            broker.start(kill_after_s=choose.uniform(0.1, 1.5))
        time.sleep(choose.choice((0.0, 0.0, 0.5)))
        broker.start()
    for writer in [*plain, feeder, *writers]:
        writer.end()
    copier.goal = feeder.acknowledged
    copier.end()
    found = {topic: read(servers, topic) for topic in TOPICS}
    for reader in live:
        reader.goal = sum(map(len, found[reader.topic].values()))
        reader.end()
        everything = {(n, offset): value for n, rows in found[reader.topic].items() for offset, value in rows}
        assert {place: value.decode() for place, value in reader.seen.items()} == everything, reader.name
    check_plain(found["plain"], plain)
    check_plain(found["in"], [feeder])
    assert values(found["out"]) == values(found["in"]), "the copy is not what was copied"
    unknown = check_transactions(found["tx"], writers)
    broker.stop()
    check_directory(broker.data)
    shutil.rmtree(broker.data)
    outcomes = [outcome for writer in writers for outcome, _ in writer.outcomes]
    return Report(
        seed=seed,
        seconds=seconds,
        kills=broker.kills,
        slowest_start_s=round(broker.slowest_start_s, 2),
        plain_records=sum(writer.acknowledged.total() for writer in [*plain, feeder]),
        copied_records=copier.copied,
        copies_aborted=copier.aborted,
        committed_transactions=outcomes.count(Outcome.COMMITTED),
        aborted_transactions=outcomes.count(Outcome.ABORTED),
        unknown_transactions=unknown,
        producers_replaced=copier.replaced + sum(writer.replaced for writer in writers),
    )


def read(servers: str, topic: str) -> Rows:
    """Return all records of a read_committed consumer."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            **CLIENT,
            "group.id": "check",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    rows: Rows = {number: [] for number in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, number, 0) for number in rows])
    at_end: set[int] = set()
    deadline = time.monotonic() + GIVE_UP_S
    while len(at_end) < PARTITIONS:
        assert time.monotonic() < deadline, f"{topic}: the ends of {set(rows) - at_end} did not come"
        for message in consumer.consume(5000, 0.2):
            if message.error() is not None:
                assert message.error().code() == -191, message.error()  # _PARTITION_EOF
                at_end.add(message.partition())
            else:
                rows[message.partition()].append((message.offset(), message.value().decode()))
    consumer.close()
    return rows


def values(rows: Rows) -> dict[int, list[str]]:
    return {partition: [value for _, value in each] for partition, each in rows.items()}


def check_plain(rows: Rows, writers: list[PlainWriter]) -> None:
    """Check that exactly the acknowledged records exist once, in the order of their producer."""
    for partition, partition_values in values(rows).items():
        numbers = defaultdict(list)
        for value in partition_values:
            name, of, number = value.split(":")
            assert int(of) == partition
            numbers[name].append(int(number))
        for writer in writers:
            expected = list(range(writer.acknowledged[partition]))
            assert numbers.pop(writer.name, []) == expected, f"{writer.name} in partition {partition}"
        assert not numbers


def check_transactions(rows: Rows, writers: list[TransactionalWriter]) -> int:
    """Check that committed transactions are complete and in order, and aborted ones absent. Returns their number."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    latest: dict[tuple[str, int], int] = {}
    for partition, partition_values in values(rows).items():
        for value in partition_values:
            name, number, of, i, _ = value.split(":")
            assert int(of) == partition
            assert latest.get((name, partition), 0) <= int(number), f"{value} is late"
            latest[name, partition] = int(number)
            found[name, int(number)].append((partition, int(i)))
    unknown = 0
    for writer in writers:
        for number, (outcome, counts) in enumerate(writer.outcomes):
            whole = sorted((partition, i) for partition, count in counts.items() for i in range(count))
            got = found.pop((writer.name, number), [])
            unknown += outcome is Outcome.UNKNOWN
            allowed = {Outcome.COMMITTED: [whole], Outcome.ABORTED: [[]], Outcome.UNKNOWN: [whole, []]}[outcome]
            assert sorted(got) in allowed, f"transaction {number} of {writer.name} is {outcome}: {len(got)} records"
            assert got == sorted(got), f"transaction {number} of {writer.name} is out of order"
    assert not found
    return unknown


def check_directory(data: Path) -> None:
    """Check that `kwire log verify` finds no damage."""
    command = [sys.executable, "-m", "kwire.cli", "log", "verify", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
