"""Streams into tables are killed, most of them while a micro-batch is committed; each row is in the table once.

Drivers, the Python processes of commits and tasks, and the broker are killed: when data files appear, when metadata is
written, while Iceberg's catalog is locked, when a commit is made, or at any time. `kwire lake clean` runs meanwhile; at
the end, it must find exactly the files that no snapshot refers to.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.soak.broker_process import BrokerProcess
from tests.soak.clients import CLIENT, GIVE_UP_S, PRODUCER, Worker
from tests.soak.object_store_process import ObjectStoreProcess
from tests.soak.streams import KillableBroker, Partitions, RealKafka, TransactionalFeeder
from tests.soak.table_files import NAME, TableFiles
from tests.soak.table_query import COMMITTER, RECORDS, TASK, QuerySettings, TableQuery, is_dead, record_schema
from tests.waiting import HANG_S

from kwire.lake.record_tables import suffix_of

__all__ = [
    "FORMATS",
    "SCENARIOS",
    "Cleaner",
    "Place",
    "Scenario",
    "TableReport",
    "check_clean",
    "soak_tables",
]

FORMATS = ("iceberg", "delta")
MOMENT_S = 120  # how long to wait for the moment to kill; a session starts in this time on a busy machine
PARTITIONS = 3
KEYS_OF_PARTITION = 40
CLEAN_EVERY_S, CLEAN_AGE_S = 60, 300
DAY_S = 86_400
COLUMNS = ("topic", "partition", "offset", "CAST(key AS string) AS key", "CAST(value AS string) AS value")
PROPERTIES = {  # so that a soak meets what happens after many commits
    "iceberg": {"write.metadata.previous-versions-max": "4", "commit.manifest.min-count-to-merge": "5"},
    "delta": {"delta.checkpointInterval": "7"},
}
ROW = ("topic", "partition", "offset", "key", "value")
Place = tuple[str, int, int]
"""Topic, partition, offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is written, and where. streams: number of queries, each of a topic, that write the same table.

    is_direct: whether copy_stream writes it. shape: of the rows that it writes, see SHAPES of table_query.
    """

    name: str
    options: dict[str, str]
    streams: int = 1
    in_object_store: bool = False
    on_kafka: bool = False
    is_direct: bool = False
    shape: str = "text"

    @property
    def by_key(self) -> bool:
        """Whether the table has the latest value of each key."""
        return "mergeKey" in self.options


SCENARIOS = (
    Scenario(name="appended", options={}),
    Scenario(name="partitioned, from Kafka", options={"partitionBy": "partition"}, on_kafka=True),
    Scenario(name="merged by key", options={"mergeKey": "key"}),
    Scenario(name="in S3", options={"partitionBy": "partition"}, in_object_store=True),
    Scenario(name="merged by key, in S3", options={"mergeKey": "key"}, in_object_store=True),
    Scenario(name="two streams", options={"partitionBy": "topic"}, streams=2),
    Scenario(name="without rows in the JVM", options={}, is_direct=True),
    Scenario(name="compacted in the stream", options={"compactEvery": "3"}),
    Scenario(name="dead letters", options={}, is_direct=True, shape="letters"),
    Scenario(
        name="changes of a database",
        options={"changes": "debezium", "mergeKey": "key"},
        is_direct=True,
        shape="changes",
    ),
    Scenario(
        name="changes of a database, in S3",
        options={"changes": "debezium", "mergeKey": "key"},
        in_object_store=True,
        is_direct=True,
        shape="changes",
    ),
    Scenario(
        name="record types",
        options={"tableBy": "record", "compactEvery": "4"},
        is_direct=True,
        shape="records",
    ),
    Scenario(
        name="dead letters, compacted, in S3",
        options={"compactEvery": "3"},
        in_object_store=True,
        is_direct=True,
        shape="letters",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """The report of a soak.

    found: what kills of drivers and Python processes have met. "written": data files of a batch without its commit;
    "committing": metadata as well; "committed": a batch that is in the table and not in the checkpoint.
    """

    format: str
    scenario: str
    seed: int
    seconds: float
    rows: int
    batches: int
    driver_kills: int
    committer_kills: int
    worker_kills: int
    broker_kills: int
    found: dict[str, int]
    orphans: int
    cleaned_meanwhile: int

    @property
    def kills(self) -> int:
        """Kills of any kind."""
        return self.driver_kills + self.committer_kills + self.worker_kills + self.broker_kills


class KeyFeeder(Worker):
    """Idempotent producer of numbered values of some keys of each partition, and now and then of tombstones."""

    def __init__(self, topic: str, servers: str, seed: int) -> None:
        super().__init__(f"feeder-{topic}", servers, seed)
        self.topic = topic

    def work(self) -> None:
        producer = Producer({**self.servers, **PRODUCER})
        number = 0
        while not self.finish.is_set():
            for _ in range(self.random.randint(1, 60)):
                partition = self.random.randrange(PARTITIONS)
                key = f"{self.topic}-{partition}-{self.random.randrange(KEYS_OF_PARTITION)}"
                value = None if self.random.random() < 0.15 else f"{number} {'.' * self.random.choice((0, 100))}"
                with contextlib.suppress(BufferError, KafkaException):
                    producer.produce(self.topic, value, key, partition=partition)
                    number += 1
            producer.poll(0)
            self.finish.wait(self.random.random())
        assert producer.flush(GIVE_UP_S) == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """What to kill and when. moment: see TableFiles.wait_for; "swap": when the catalog is locked; "any"."""

    moment: str
    victim: str
    query: int
    delay_s: float
    with_workers: bool


def strikes(seed: int, format: str, queries: int) -> Iterator[Strike]:
    """Return the strikes of a seed."""
    choose = random.Random(seed)
    victims = {"data": ["driver", "task", "task", "task", "committer"], "any": ["task", "broker", "broker", "both"]}
    while True:
        moments = ["data", "data", "metadata", "metadata", "commit", "commit", "any"]
        moments += ["swap", "swap"] if format == "iceberg" else ["metadata", "commit"]
        choose.shuffle(moments)
        for moment in moments:
            yield Strike(
                moment=moment,
                victim=choose.choice(victims.get(moment, ["driver", "committer", "committer"])),
                query=choose.randrange(queries),
                delay_s=choose.choice((0, choose.uniform(0, {"data": 0.8, "any": 2.0}.get(moment, 0.05)))),
                with_workers=choose.random() < 0.7,
            )


def soak_tables(directory: Path, *, format: str, scenario: Scenario, kills: int, seed: int) -> TableReport:
    """Kill a number of times while a table is written, and check it.

    Raises AssertionError with the first error; the directory is kept for inspection.
    """
    with contextlib.ExitStack() as stack:
        broker: KillableBroker = BrokerProcess(directory)
        if scenario.on_kafka:
            broker = RealKafka(directory / "kafka", "3.9.1")
        stack.callback(broker.close)
        broker.start()
        store = ObjectStoreProcess() if scenario.in_object_store else None
        if store is not None:
            stack.callback(store.close)
        moments_of = f"_{suffix_of(RECORDS[1])}" if scenario.shape == "records" else ""
        files = TableFiles(format, directory, store, moments_of=moments_of)
        return Soak(directory, broker, files, scenario, seed).run(kills, stack)


class Soak:
    """One run."""

    def __init__(
        self, directory: Path, broker: KillableBroker, files: TableFiles, scenario: Scenario, seed: int
    ) -> None:
        self.directory, self.broker, self.files, self.scenario, self.seed = directory, broker, files, scenario, seed
        self.topics = ["in", "in2"][: scenario.streams]
        self.queries: list[TableQuery] = []
        self.found: Counter[str] = Counter()
        self.orphans: set[str] = set()
        self.cleaner = Cleaner(files)

    def run(self, kills: int, stack: contextlib.ExitStack) -> TableReport:
        """Run the soak."""
        started, servers = time.monotonic(), self.broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, **CLIENT})
        for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in self.topics]).values():
            future.result(HANG_S)
        workers: list[Worker] = [KeyFeeder(topic, servers, self.seed) for topic in self.topics]
        transactional = Partitions(servers)
        transactional.count = PARTITIONS
        workers.append(TransactionalFeeder("t0", servers, self.seed, transactional))
        for worker in workers:
            worker.start()
        for number, topic in enumerate(self.topics):
            folder = self.directory / f"query{number}"
            folder.mkdir()
            self.queries.append(TableQuery(folder, self.settings(topic, folder), with_reserve=len(self.topics) == 1))
            stack.callback(self.queries[-1].close)
        self.cleaner.start()
        for strike in strikes(self.seed, self.files.format, len(self.queries)):
            if self.kills >= kills:
                break
            for worker in workers:
                if not worker.is_alive():
                    worker.end()
            self.strike(strike)
            print(f"{time.monotonic() - started:.0f} s, {self.kills} kills: {strike} {dict(self.found)}", flush=True)
        for worker in workers:
            worker.end()
        for query in self.queries:
            query.finish()
        self.cleaner.end()
        return self.report(started)

    def settings(self, topic: str, folder: Path) -> QuerySettings:
        """Return the settings of the query of a topic."""
        files = self.files
        if files.format == "iceberg":
            options = {"table": NAME} | {f"catalog.{name}": value for name, value in files.catalog.items()}
        else:
            options = {"path": files.name} | {f"storage.{name}": value for name, value in files.storage.items()}
        options |= {"tableProperties": json.dumps(PROPERTIES[files.format])}
        if self.scenario.shape == "letters":
            options["deadLetters"] = files.dead_letters
        if self.scenario.shape == "records":
            options["value.registry"] = str(self.write_schemas(topic))
        return QuerySettings(
            servers=self.broker.bootstrap_servers,
            topic=topic,
            checkpoint=str(folder / "checkpoint"),
            format=f"kwire-{files.format}",
            options=options | self.scenario.options,
            columns=COLUMNS,
            is_direct=self.scenario.is_direct,
            shape=self.scenario.shape,
        )

    def write_schemas(self, topic: str) -> Path:
        """Write the schemas of the record types of a topic; return the folder, which is a registry."""
        folder = self.directory / "schemas"
        folder.mkdir(exist_ok=True)
        for number, record in enumerate(RECORDS, 1):
            (folder / f"{topic}-{record}.1.{number}.avsc").write_text(record_schema(record))
        return folder

    @property
    def kills(self) -> int:
        """Kills so far."""
        own = sum(each.kills + each.committer_kills + each.worker_kills for each in self.queries)
        return own + self.broker.kills

    # ---- kills

    def strike(self, strike: Strike) -> None:
        """Wait for the moment and kill."""
        query, kind = self.queries[strike.query], TASK if strike.victim == "task" else COMMITTER
        self.look()
        processes: list[int] = []
        if strike.moment in ("metadata", "swap", "commit") or strike.victim in ("task", "committer"):
            processes = query.wait_for_processes(kind, MOMENT_S)
        with self.moment(strike.moment):
            time.sleep(strike.delay_s)
            if strike.victim in ("broker", "both"):
                self.broker.kill()
            if strike.victim in ("driver", "both"):
                query.kill(with_workers=strike.with_workers)
            if strike.victim in ("task", "committer"):
                query.kill_process(processes, kind)
            if strike.victim != "broker":
                self.classify(query)
        if strike.victim in ("broker", "both"):
            self.broker.start()
        if strike.victim in ("driver", "both"):
            query.replace()

    @contextlib.contextmanager
    def moment(self, moment: str) -> Iterator[None]:
        """Wait for the moment, or until a timeout."""
        if moment == "swap":
            self.files.wait_for("metadata", MOMENT_S, self.look)
            with self.locked_catalog():
                self.files.wait_for("metadata.json", 1.0, self.look)
                yield
            return
        if moment != "any":
            self.files.wait_for(moment, MOMENT_S, self.look)
        yield

    @contextlib.contextmanager
    def locked_catalog(self) -> Iterator[None]:
        """Prevent commits to the catalog, which wait for five seconds."""
        catalog = sqlite3.connect(self.directory / "catalog.db", timeout=1, isolation_level=None)
        with contextlib.suppress(sqlite3.OperationalError):
            catalog.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            catalog.close()

    def look(self) -> None:
        """Start queries again that ended because a process was killed."""
        for query in self.queries:
            query.look()

    def classify(self, query: TableQuery) -> None:
        """Count what a kill has met."""
        batch = query.batch("offsets")
        if batch == query.batch("commits"):
            self.found["other"] += 1
            return
        now = self.files.all() - self.files.referenced()
        new, self.orphans = now - self.orphans, now
        if self.files.last_batch(query.id) == batch:
            self.found["committed"] += 1
        elif any(name.startswith(("metadata/", "_delta_log/")) for name in new):
            self.found["committing"] += 1
        else:
            self.found["written" if new else "other"] += 1

    # ---- checks

    @property
    def record_files(self) -> list[TableFiles]:
        """The tables by record type."""
        suffixes = [f"_{suffix_of(record)}" for record in RECORDS] if self.scenario.shape == "records" else []
        return [replace(self.files, suffix=suffix) for suffix in suffixes]

    def rows(self) -> Any:
        """Return the rows of the table, or of all tables by record type. Raises AssertionError for wrong types."""
        if self.scenario.shape != "records":
            return self.files.rows()
        tables = []
        for number, files in enumerate(self.record_files):
            rows = files.rows()
            others = [offset for offset in rows.column("offset").to_pylist() if offset % len(RECORDS) != number]
            assert not others, f"{files.name} has rows of other types, such as at offset {others[0]}"
            tables.append(rows.select(["topic", "partition", "offset", "value"]).flatten().rename_columns(list(ROW)))
        assert sorted(self.files.rows().column("record").to_pylist()) == sorted(RECORDS)
        return pa.concat_tables(tables)

    def report(self, started: float) -> TableReport:
        """Check the table, clean it, and check it again."""
        files = self.files
        wanted = read_places(self.broker.bootstrap_servers, self.topics)
        every = wanted
        if self.scenario.shape == "letters":
            wanted = {place: row for place, row in every.items() if not is_dead(place[2])}
            check_letters(files.rows(files.dead_letters), every.keys() - wanted.keys())
        check_rows(self.rows(), wanted, by_key=self.scenario.by_key)
        check_offsets(self.cleaner.command("offsets"), every)
        orphans = check_clean(files, self.cleaner)
        for each in self.record_files:
            orphans |= check_clean(each, Cleaner(each))
        check_rows(self.rows(), wanted, by_key=self.scenario.by_key)
        return TableReport(
            format=files.format,
            scenario=self.scenario.name,
            seed=self.seed,
            seconds=round(time.monotonic() - started, 1),
            rows=len(every),
            batches=sum(query.batch("commits") + 1 for query in self.queries),
            driver_kills=sum(query.kills for query in self.queries),
            committer_kills=sum(query.committer_kills for query in self.queries),
            worker_kills=sum(query.worker_kills for query in self.queries),
            broker_kills=self.broker.kills,
            found=dict(sorted(self.found.items())),
            orphans=len(orphans),
            cleaned_meanwhile=self.cleaner.deleted,
        )


class Cleaner:
    """Runs `kwire lake` on a table; from start() to end(), it deletes orphans that are older than any write takes."""

    def __init__(self, files: TableFiles) -> None:
        self.files, self.deleted = files, 0
        self._finish = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._problem: BaseException | None = None

    def start(self) -> None:
        """Begin to clean."""
        self._thread.start()

    def end(self) -> None:
        """Stop cleaning. Raises its error."""
        self._finish.set()
        self._thread.join(HANG_S)
        if self._problem is not None:
            raise self._problem

    def clean(self, older_than_s: float, *, apply: bool = False) -> set[str]:
        """Run `kwire lake clean`; return the paths that it prints, as of the table's directory."""
        hours = f"{older_than_s / 3600:.6f}"
        rows = self.command("clean", "--older-than", hours, *(["--apply"] if apply else []))
        return {each["path"].partition(f"soak/rows{self.files.suffix}/")[2] or each["path"] for each in rows}

    def command(self, name: str, *options: str) -> list[Any]:
        """Run `kwire lake NAME` on the table, and return its rows."""
        process = self.start_command(name, self.files.name, *options, "--format", "json")
        output, errors = process.communicate()
        assert process.returncode in (0, 1), errors
        rows: list[Any] = json.loads(output)
        return rows

    def start_command(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """Start `kwire lake NAME` with arguments and the settings of the catalog or store."""
        command = [sys.executable, "-m", "kwire.cli", "lake", name, *arguments, *self.files.settings]
        return subprocess.Popen(
            command, env=os.environ | self.files.secrets, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def _work(self) -> None:
        try:
            while not self._finish.wait(CLEAN_EVERY_S):
                if self.files.all():
                    self.deleted += len(self.clean(CLEAN_AGE_S, apply=True))
        except BaseException as error:
            self._problem = error


def read_places(servers: str, topics: Sequence[str]) -> dict[Place, tuple[str, str | None]]:
    """Return key and value of committed records, read by librdkafka."""
    settings = {"group.id": "check", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": servers, **CLIENT, **settings, "enable.auto.commit": False})
    left = {(topic, number) for topic in topics for number in range(PARTITIONS)}
    consumer.assign([TopicPartition(*each, 0) for each in sorted(left)])
    found: dict[Place, tuple[str, str | None]] = {}
    deadline = time.monotonic() + GIVE_UP_S
    while left:
        assert time.monotonic() < deadline, f"the ends of {left} did not come"
        for message in consumer.consume(5000, 0.2):
            if message.error() is None:
                value = message.value()
                place = (message.topic(), message.partition(), message.offset())
                found[place] = (message.key().decode(), None if value is None else value.decode())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                left.discard((message.topic(), message.partition()))
    consumer.close()
    return found


def check_rows(rows: Any, wanted: dict[Place, tuple[str, str | None]], *, by_key: bool) -> None:
    """Check that a table has every record once, or the last one of each key that is no tombstone."""
    columns = [rows.column(name).to_pylist() for name in ("topic", "partition", "offset", "key", "value")]
    found = [
        ((topic, partition, offset), (key, value))
        for topic, partition, offset, key, value in zip(*columns, strict=True)
    ]
    expected = wanted
    if by_key:
        last = {key: place for place, (key, _) in sorted(wanted.items())}
        expected = {place: wanted[place] for place in last.values() if wanted[place][1] is not None}
    several = [place for place, count in Counter(place for place, _ in found).items() if count > 1]
    missing, extra = expected.keys() - dict(found).keys(), dict(found).keys() - expected.keys()
    assert not several, f"{len(several)} offsets are there twice, such as {sorted(several)[:3]}"
    assert not missing, f"{len(missing)} of {len(expected)} offsets are missing, such as {sorted(missing)[:3]}"
    assert not extra, f"{len(extra)} rows are not of the topic, such as {sorted(extra)[:3]}"
    assert dict(found) == expected


def check_letters(rows: Any, wanted: Set[Place]) -> None:
    """Check that a table has each dead letter once."""
    found = list(zip(*(rows.column(name).to_pylist() for name in ("topic", "partition", "offset")), strict=True))
    assert len(found) == len(set(found)), f"{len(found) - len(set(found))} dead letters are there twice"
    assert set(found) == wanted, f"{len(set(found) ^ wanted)} dead letters are missing or too many"


def check_offsets(rows: Sequence[dict[str, Any]], wanted: dict[Place, tuple[str, str | None]]) -> None:
    """Check the offsets that are stored with the table."""
    found = {(each["topic"], each["partition"]): (each["start_offset"], each["end_offset"]) for each in rows}
    expected = {
        key: (
            min(offset for *each, offset in wanted if tuple(each) == key),
            1 + max(offset for *each, offset in wanted if tuple(each) == key),
        )
        for key in {(topic, partition) for topic, partition, _ in wanted}
    }
    assert found == expected, f"the table's offsets are {found}, not {expected}"


def check_clean(files: TableFiles, cleaner: Cleaner) -> set[str]:
    """Check that exactly the files without a snapshot are found, by their age, and deleted; return them."""
    orphans = files.unreferenced()
    assert cleaner.clean(DAY_S) == set(), "young files are found"
    if files.store is None:
        files.make_older({*sorted(orphans)[::2]} | (files.referenced() & files.all()), 2 * DAY_S)
        old = {each for each in orphans if files.age_s(each) > DAY_S}  # a commit in the log may have two names
        found = cleaner.clean(DAY_S)
        assert found == old, f"old orphans: {sorted(old ^ found)[:5]} are found and none, or not found"
    deleted = cleaner.clean(0, apply=True)
    assert deleted == orphans, f"{sorted(deleted ^ orphans)[:5]} of {len(orphans)} orphans"
    assert files.unreferenced() == set()
    return orphans
