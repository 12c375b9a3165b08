"""Streaming queries and their brokers are killed at random: the sink has every committed record once, in order.

Producers write keys, which stay in their partition, and values numbered by key to the topic `in`, partly in
transactions, some of them aborted; partitions are added meanwhile. A query of tests.soak.stream_query copies the topic.
Driver, JVM, Python workers and broker are killed at random moments, and while a micro-batch is committed.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlparse

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyarrow import parquet
from tests.soak.broker_process import BrokerProcess
from tests.soak.clients import CLIENT, GIVE_UP_S, PRODUCER, Outcome, Transactions, Worker
from tests.soak.query_process import QueryProcess
from tests.soak.stream_query import LAKE, PREFIX, table_options
from tests.waiting import HANG_S
from tools.kafka import KafkaBroker

from kwire.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kwire.client.client import GROUP
from kwire.client.group_offsets import fetch_offsets
from kwire.errors import BrokerError, ConnectionFailed
from kwire.log import LogDirectory
from kwire.messages import registry
from kwire.spark.lake.options import parse_lake_options
from kwire.spark.live.batch_marks import driver_group
from kwire.spark.live.reading import read_range
from kwire.spark.offsets import OffsetRange

__all__ = ["RealKafka", "StreamReport", "soak_streams"]

LEAST_STRIKES = 4  # however short a run is to be: one of each kind
MOMENT_S = 30  # how long to wait for the moment to kill; a query takes as long to start on a busy machine
KEYS = 5  # of each partition and producer
FIRST_PARTITIONS, MOST_PARTITIONS = 3, 8
OUT_PARTITIONS = 4
Values = dict[str, list[str]]
"""Values by key, in their order."""


class KillableBroker(Protocol):
    """The interface of a broker in a soak. data: its log directory. kills: number so far."""

    data: Path
    kills: int
    bootstrap_servers: str

    def start(self) -> None: ...

    def kill(self) -> None: ...

    def close(self) -> None: ...


class RealKafka:
    """Kafka as a broker that is killed and restarted on the same port and directory."""

    def __init__(self, directory: Path, version: str) -> None:
        self._broker = KafkaBroker(directory, version=version, heap="512m", **{"log.segment.bytes": 1 << 20})
        self.data, self.bootstrap_servers, self.kills = self._broker.log_dir, self._broker.bootstrap_servers, 0

    def start(self) -> None:
        """Start, and wait until it listens."""
        self._broker.__enter__()

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._broker.stop(kill=True)
        self.kills += 1

    def close(self) -> None:
        """Stop it if it is still running."""
        self._broker.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReport:
    """The report of a soak of a stream.

    commits_cut: how often a micro-batch was found with some of its transactions committed and others not.
    """

    variant: str
    seed: int
    seconds: float
    records: int
    aborted_transactions: int
    partitions: int
    batches: int
    broker_kills: int
    query_kills: int
    worker_kills: int
    queries_ended: int
    commits_cut: int


class Partitions:
    """The current number of partitions of the topic `in`."""

    def __init__(self, servers: str) -> None:
        self.admin = AdminClient({"bootstrap.servers": servers, **CLIENT})
        self.count = FIRST_PARTITIONS

    def create(self) -> None:
        """Create `in` and `out`."""
        made = [NewTopic("in", self.count, 1), NewTopic("out", OUT_PARTITIONS, 1)]
        for future in self.admin.create_topics(made).values():
            future.result(HANG_S)

    def add(self) -> None:
        """Add a partition, unless there are enough or the broker is down."""
        if self.count < MOST_PARTITIONS:
            with contextlib.suppress(KafkaException):
                self.admin.create_partitions([NewPartitions("in", self.count + 1)])["in"].result(HANG_S)
            there = self.admin.list_topics("in", timeout=HANG_S).topics["in"].partitions
            self.count = max(self.count, len(there))


class Feeder(Worker):
    """Idempotent producer of values `number padding`. sent: values by key."""

    def __init__(self, name: str, servers: str, seed: int, partitions: Partitions) -> None:
        super().__init__(name, servers, seed)
        self.partitions = partitions
        self.sent: Counter[str] = Counter()
        self.acknowledged: Counter[str] = Counter()
        self.errors: list[str] = []

    def work(self) -> None:
        producer = Producer({**self.servers, **PRODUCER, "compression.type": "lz4"})
        while not self.finish.is_set():
            for _ in range(self.random.randint(1, 60)):
                partition = self.random.randrange(self.partitions.count)
                key = f"{self.name}-{partition}-{self.random.randrange(KEYS)}"
                value = f"{self.sent[key]} {'.' * self.random.choice((0, 30, 300))}"
                with contextlib.suppress(BufferError, KafkaException):  # away, or a partition it has not heard of
                    producer.produce("in", value, key, partition=partition, on_delivery=self._delivered)
                    self.sent[key] += 1
            producer.poll(0)
            self.finish.wait(self.random.random() * 0.2)
        left = producer.flush(GIVE_UP_S)
        if left or self.errors or self.acknowledged != self.sent:
            raise AssertionError(f"{left} records without a response, errors {self.errors[:3]}")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged[message.key().decode()] += 1


class TransactionalFeeder(Worker):
    """Writes values `transaction:i` in transactions. outcomes: of each transaction, with its records by key."""

    def __init__(self, name: str, servers: str, seed: int, partitions: Partitions) -> None:
        super().__init__(name, servers, seed)
        self.partitions = partitions
        self.outcomes: list[tuple[Outcome, dict[str, int]]] = []

    def work(self) -> None:
        transactions = Transactions(self.servers, self.name)
        while not self.finish.is_set():
            some = self.random.sample(range(self.partitions.count), self.random.randint(1, self.partitions.count))
            counts = {partition: self.random.randint(1, 30) for partition in some}
            outcome = self._transact(transactions, counts)
            self.outcomes.append((outcome, {f"{self.name}-{each}": count for each, count in counts.items()}))
            self.finish.wait(self.random.random() * 0.2)

    def _transact(self, transactions: Transactions, counts: Mapping[int, int]) -> Outcome:
        wanted = self.random.random()
        try:
            transactions.producer.begin_transaction()
            for partition, count in counts.items():
                for i in range(count):
                    value, key = f"{len(self.outcomes)}:{i}", f"{self.name}-{partition}"
                    transactions.producer.produce("in", value, key, partition=partition)
            if wanted > 0.6:
                transactions.producer.flush(5)  # so that there is something to abort
        except KafkaException:
            return transactions.end(commit=False)
        if wanted > 0.95:
            transactions.replace()  # the old one is fenced with a transaction open
            return Outcome.ABORTED
        return transactions.end(commit=wanted < 0.75)


def soak_streams(
    directory: Path,
    *,
    variant: str,
    seconds: float,
    seed: int,
    broker: KillableBroker | None = None,
    pause_s: tuple[float, float] = (0.5, 8.0),
) -> StreamReport:
    """Run one variant for this time. broker: kwire's own by default. pause_s: between two kills.

    Raises AssertionError with the first error; the directory is kept for inspection.
    """
    used = BrokerProcess(directory) if broker is None else broker
    used.start()
    query = QueryProcess(directory, variant, used.bootstrap_servers, used.data)
    try:
        return Soak(used, query, seed, pause_s).run(variant, seconds)
    finally:
        query.close()
        used.close()


class Soak:
    """One run."""

    def __init__(self, broker: KillableBroker, query: QueryProcess, seed: int, pause_s: tuple[float, float]) -> None:
        self.broker, self.query, self.seed, self.pause_s = broker, query, seed, pause_s
        self.choose = random.Random(seed)
        self.commits_cut = self.strikes = 0
        self.next_strikes: list[str] = []
        self.quick = {"bootstrap.servers": broker.bootstrap_servers, "default.api.timeout.ms": "2000"}

    def run(self, variant: str, seconds: float) -> StreamReport:
        """Run the soak."""
        servers = self.broker.bootstrap_servers
        partitions = Partitions(servers)
        partitions.create()
        feeders = [Feeder(f"p{i}", servers, self.seed, partitions) for i in range(2)]
        transactional = [TransactionalFeeder(f"t{i}", servers, self.seed, partitions) for i in range(2)]
        workers: list[Worker] = [*feeders, *transactional]
        for worker in workers:
            worker.start()
        self.query.start()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline or self.strikes < LEAST_STRIKES:
            time.sleep(self.choose.uniform(*self.pause_s))
            for worker in workers:
                if not worker.is_alive():
                    worker.end()
            self.query.look()
            if self.choose.random() < 0.3:
                partitions.add()
            self.strike(is_live=variant.endswith("live"))
        for worker in workers:
            worker.end()
        self.query.kill()
        self.query.finish()
        written = read_topic(servers, "in")
        check_written(written, feeders, transactional)
        wanted = {key: [f"<{value}>" for value in values] for key, values in written.items()}
        for name, found in self.sinks(variant):
            check_once(name, found, wanted)
        return StreamReport(
            variant=variant,
            seed=self.seed,
            seconds=seconds,
            records=sum(map(len, wanted.values())),
            aborted_transactions=sum(each is Outcome.ABORTED for one in transactional for each, _ in one.outcomes),
            partitions=partitions.count,
            batches=self.query.batches,
            broker_kills=self.broker.kills,
            query_kills=self.query.kills,
            worker_kills=self.query.worker_kills,
            queries_ended=self.query.ended,
            commits_cut=self.commits_cut,
        )

    def strike(self, *, is_live: bool) -> None:
        """Kill something: immediately, or while a micro-batch is written or committed."""
        choose = self.choose
        moment = choose.random()
        if moment < 0.5 and is_live:
            self.query.wait_for_workers(MOMENT_S)
            self.query.aim()
            self.wait_for_commit()
            time.sleep(choose.choice((0, choose.uniform(0, 0.06))))
        elif moment < 0.75:
            self.query.wait_for_batch(MOMENT_S)
            time.sleep(choose.uniform(0, 0.6))
        if not self.next_strikes:
            self.next_strikes = ["query", "worker", "both", choose.choice(("query", "worker", "broker"))]
            choose.shuffle(self.next_strikes)
        what = self.next_strikes.pop()
        self.strikes += 1
        if what == "worker":
            for _ in range(choose.choice((1, 1, 3))):
                self.query.wait_for_workers(3 * MOMENT_S)
                self.query.kill_worker(choose)
            return
        if what in ("broker", "both"):
            self.broker.kill()
        if what in ("query", "both"):
            self.query.kill(with_workers=choose.random() < 0.6)
        if what in ("broker", "both"):
            time.sleep(choose.choice((0.0, 0.0, 1.0, 3.0)))
            self.broker.start()
        if what in ("query", "both"):
            self.commits_cut += is_live and self.is_partially_committed()
            self.query.start()

    def wait_for_commit(self) -> None:
        """Wait until the driver starts a commit, or has committed a task, up to a timeout."""
        group = self.choose.choice((driver_group(PREFIX), f"{PREFIX}-0", f"{PREFIX}-0", f"{PREFIX}-1"))
        deadline = time.monotonic() + MOMENT_S
        with contextlib.suppress(BrokerError, ConnectionFailed), Client(**self.quick) as client:
            before = newest(client, group)
            while time.monotonic() < deadline and newest(client, group) == before:
                time.sleep(0.002)

    def is_partially_committed(self) -> bool:
        """Return whether the last micro-batch is partially committed."""
        with contextlib.suppress(BrokerError, ConnectionFailed), Client(**self.quick) as client:
            for mark in fetch_offsets(client, driver_group(PREFIX)).values():
                noted: Any = json.loads(mark.metadata)
                done = [
                    any(each.offset == mark.offset for each in fetch_offsets(client, f"{PREFIX}-{task}").values())
                    for task in range(noted["tasks"])
                ]
                return 0 < sum(done) < noted["transactions"]
        return False

    def sinks(self, variant: str) -> Iterator[tuple[str, Values]]:
        """Return the contents of the sink for each kind of reader."""
        if variant.endswith("live"):
            yield "confluent-kafka", read_topic(self.broker.bootstrap_servers, "out")
            yield "kwire", read_with_kwire(self.broker.bootstrap_servers, "out")
        elif variant == "live-parquet":
            yield "Parquet files", read_parquet(self.query.folder / "parquet")
        elif variant in LAKE:
            yield variant, read_table(variant, self.query.folder)
        else:
            yield "log directories", read_directories(self.query.folder / "logs")


def newest(client: Client, group: str) -> list[int]:
    """Return the current offsets of a group; fetch_offsets would wait for pending transactions."""
    cls: Any = registry.get("OffsetFetchRequest")
    connection = client.connection(client.coordinator(group, GROUP))
    response = connection.request(cls(group_id=group, topics=None, require_stable=False), version=7)
    return [each.committed_offset for topic in response.topics for each in topic.partitions]


def read_topic(servers: str, topic: str) -> Values:
    """Return committed records, read by librdkafka."""
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
    left = set(consumer.list_topics(topic, timeout=HANG_S).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, 0) for number in left])
    found: dict[str, list[str]] = defaultdict(list)
    deadline = time.monotonic() + GIVE_UP_S
    while left:
        assert time.monotonic() < deadline, f"{topic}: the ends of {left} did not come"
        for message in consumer.consume(5000, 0.2):
            if message.error() is None:
                found[message.key().decode()].append(message.value().decode())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
    consumer.close()
    return dict(found)


def read_with_kwire(servers: str, topic: str) -> Values:
    """Return committed records, read like a task of kafka-live."""
    found: dict[str, list[str]] = defaultdict(list)
    with Client(servers) as client:
        keys = [(topic, number) for number in client.metadata([topic]).topics[topic].partitions]
        first = client.list_offsets(dict.fromkeys(keys, EARLIEST_TIMESTAMP))
        last = client.list_offsets(dict.fromkeys(keys, LATEST_TIMESTAMP), isolation="read_committed")
        open_end = client.list_offsets(dict.fromkeys(keys, LATEST_TIMESTAMP))
    assert last == open_end, f"transactions are left open: {last} of {open_end}"
    for key in keys:
        wanted = OffsetRange(*key, first[key].offset, last[key].offset)
        settings = {"bootstrap.servers": servers}
        for rows in read_range(wanted, ("key", "value"), settings, "read_committed", fail_on_data_loss=True):
            add_rows(found, rows.column("key").to_pylist(), rows.column("value").to_pylist())
    return dict(found)


def read_parquet(folder: Path) -> Values:
    """Return the rows of files in Spark's sink log, in order; other files are of uncommitted batches."""
    batches = {int(each.name.partition(".")[0]): each for each in (folder / "_spark_metadata").glob("[0-9]*")}
    whole = max((number for number, each in batches.items() if each.suffix == ".compact"), default=-1)
    found: dict[str, list[str]] = defaultdict(list)
    for number in sorted(number for number in batches if number >= whole):
        for line in batches[number].read_text().splitlines()[1:]:
            table = parquet.read_table(unquote(urlparse(json.loads(line)["path"]).path))
            add_rows(found, table.column("key").to_pylist(), table.column("value").to_pylist())
    return dict(found)


def read_table(variant: str, folder: Path) -> Values:
    """Return the rows of a table in the order of their offsets, each of which it has once; delete its orphans."""
    options = parse_lake_options(table_options(variant, folder), "delta" if variant == "live-delta" else "iceberg")
    table: Any = options.open()
    orphans = table.find_orphans(0)
    table.delete_orphans(orphans)
    assert table.find_orphans(0) == []
    rows = table.table.to_pyarrow_table() if variant == "live-delta" else table.table.scan().to_arrow()
    places = list(zip(*(rows.column(name).to_pylist() for name in ("partition", "offset")), strict=True))
    assert len(set(places)) == len(places), "an offset is there twice"
    last = {number: max(offset for each, offset in places if each == number) for number in {each for each, _ in places}}
    assert not table.state().holes
    ends = {partition: ranges[-1][1] for (_, partition), ranges in table.state().spans.items()}
    assert ends == {number: offset + 1 for number, offset in last.items()}
    print(f"{variant}: {len(rows)} rows, {len(orphans)} orphans deleted", flush=True)
    rows = rows.sort_by([("partition", "ascending"), ("offset", "ascending")])
    found: dict[str, list[str]] = defaultdict(list)
    add_rows(found, rows.column("key").to_pylist(), rows.column("value").to_pylist())
    return dict(found)


def read_directories(folder: Path) -> Values:
    """Return the rows of the log directories of all micro-batches, which must be undamaged."""
    found: dict[str, list[str]] = defaultdict(list)
    for directory in sorted(each for each in folder.iterdir() if each.name.removeprefix("batch-").isdecimal()):
        logs = LogDirectory(directory)
        assert [each for each in logs.verify() if not each.is_harmless] == []
        for log in logs.values():
            rows = [(bytes(each.key or b""), bytes(each.value or b"")) for each in log.read()]
            add_rows(found, *([row[i] for row in rows] for i in (0, 1)))
    return dict(found)


def add_rows(found: dict[str, list[str]], keys: Iterable[Any], values: Iterable[Any]) -> None:
    for key, value in zip(keys, values, strict=True):
        found[key.decode()].append(value if isinstance(value, str) else value.decode())


def check_written(written: Values, feeders: Iterable[Feeder], transactional: Iterable[TransactionalFeeder]) -> None:
    """Check the source against the acknowledged records; otherwise an equal sink proves nothing."""
    left = dict(written)
    for feeder in feeders:
        for key, count in feeder.acknowledged.items():
            numbers = [int(value.partition(" ")[0]) for value in left.pop(key, [])]
            assert numbers == list(range(count)), f"the source has {len(numbers)} of {count} records of {key}"
    for one in transactional:
        for key in {key for _, counts in one.outcomes for key in counts}:
            by_transaction: dict[int, list[int]] = defaultdict(list)
            for value in left.pop(key, []):
                number, _, i = value.partition(":")
                by_transaction[int(number)].append(int(i))
            assert list(by_transaction) == sorted(by_transaction), f"transactions of {key} are out of order"
            for number, (outcome, counts) in enumerate(one.outcomes):
                whole = list(range(counts.get(key, 0)))
                allowed = {Outcome.COMMITTED: [whole], Outcome.ABORTED: [[]], Outcome.UNKNOWN: [whole, []]}[outcome]
                assert by_transaction[number] in allowed, f"transaction {number} of {key} is {outcome}"
    assert not left


def check_once(name: str, found: Values, wanted: Values) -> None:
    """Check that exactly the values of every key exist once, in order."""
    if found == wanted:
        return
    for key in sorted(found.keys() | wanted.keys()):
        got, expected = found.get(key, []), wanted.get(key, [])
        if got == expected:
            continue
        missing, extra = Counter(expected) - Counter(got), Counter(got) - Counter(expected)
        raise AssertionError(
            f"{name}, key {key}: {len(got)} values, {len(expected)} expected; missing {missing.total()}: "
            f"{[*missing][:5]}, too many {extra.total()}: {[*extra][:5]}"
            + ("" if missing or extra else ", out of order")
        )


def remove(directory: Path) -> None:
    """Remove the directory of a successful run; killed processes may still hold files in it briefly."""
    subprocess.run(["rm", "-rf", str(directory)], check=False)
