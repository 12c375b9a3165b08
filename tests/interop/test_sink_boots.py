"""kwire's broker starts on a DataFrame written as a log directory, and Kafka 2.8, 3.9 and 4.4 after it.

Kafka in KRaft mode knows the topics of its metadata log, so kwire's broker starts on the directory first and
writes one; for Kafka 2.8 with ZooKeeper an admin client creates the topics, and Kafka finds their logs.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.interop.booted_logs import as_hex
from tests.interop.test_broker_takeover import read, send, transact
from tests.interop.test_written_logs import LOGGING, dump_problems
from tools import kafka

from kwire.broker import Broker
from kwire.cli.main import run
from kwire.log import LogDirectory
from kwire.records.partitioner import partitions_of_keys

pytest.importorskip("pyspark.sql.datasource")

from tests.spark.conftest import spark  # noqa: F401 (a fixture; needs PySpark)
from tests.waiting import HANG_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.jvm, pytest.mark.spark, pytest.mark.slow]

PEER = Path(__file__).parent / "java" / "RowPeer.java"
CREATE_TIME, LOG_APPEND_TIME = 0, 1
TIME_MS = 1_760_000_000_000
SEGMENT_BYTES = 65536
QUIET = {"log_level": 0}
TOPICS = {"orders": 3, "sparse": 1, "stamped": 1}
SCHEMA = (
    "key binary, value binary, headers array<struct<key: string, value: binary>>, topic string, partition int, "
    "offset long, timestamp timestamp, timestampType int"
)


class Row(NamedTuple):
    """A record of a DataFrame, and the expected one of a consumer."""

    topic: str
    partition: int
    offset: int
    timestamp_type: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def line(self) -> str:
        """Render it like RowPeer."""
        headers = "".join(f"{name}={as_hex(value)}," for name, value in self.headers)
        place = f"{self.topic} {self.partition} {self.offset} {self.timestamp_type} {self.timestamp}"
        return f"{place} {as_hex(self.key)} {as_hex(self.value)} {headers}"


def rows_with_offsets() -> list[Row]:
    """Return rows with full segments, gaps, a late log start, tombstones, headers, timestamps of every kind."""
    choose = random.Random(7)
    rows = []
    for partition in range(3):
        for n in range(900):
            key = None if n % 7 == 0 else b"key %d" % (n % 40)
            value = None if n % 11 == 3 else choose.randbytes(n % 400)
            headers: tuple[tuple[str, bytes | None], ...] = ()
            if n % 5 == 0:
                headers = (("h", b"%d" % n), ("h", None), ("ü", b""))
            time_ms = TIME_MS + n * 1000 - (n % 3) * 2500
            rows.append(Row("orders", partition, n, CREATE_TIME, time_ms, key, value, headers))
    offset = 5_000_000_000  # a broker had it for long
    for n in range(300):
        rows.append(Row("sparse", 0, offset, CREATE_TIME, TIME_MS + n, b"k", b"value %d" % n))
        offset += choose.choice((1, 1, 2, 90, 40_000))
    return [
        *rows,
        *(Row("stamped", 0, n, LOG_APPEND_TIME, TIME_MS + n // 20, b"k", b"value %d" % n) for n in range(200)),
    ]


def rows_without_offsets() -> list[Row]:
    """Return rows that are numbered from 0, some partitioned by key."""
    keys = [b"key %d" % (n % 300) for n in range(3000)]
    by_key = partitions_of_keys(pa.array(keys, pa.binary()), 3).tolist()
    ends = [0, 0, 0]
    rows = []
    for n, key in enumerate(keys):
        partition = n % 3 if n % 2 else by_key[n]
        value = random.Random(n).randbytes(100)
        rows.append(Row("orders", partition, ends[partition], CREATE_TIME, TIME_MS + n, key, value))
        ends[partition] += 1
    return rows


def frame(spark: SparkSession, rows: list[Row], *, offsets: bool) -> Any:  # noqa: F811
    """Return a DataFrame of the rows; without offsets in one partition, every other row without a partition."""
    from pyspark.sql.functions import col, timestamp_millis

    given = [
        (
            row.key,
            row.value,
            [(name, value) for name, value in row.headers] or None,
            row.topic,
            row.partition if offsets or n % 2 else None,
            row.offset,
            row.timestamp,
            row.timestamp_type,
        )
        for n, row in enumerate(rows)
    ]
    schema = SCHEMA.replace("timestamp timestamp", "timestamp long")
    made = spark.createDataFrame(given, schema).withColumn("timestamp", timestamp_millis(col("timestamp")))
    return made.repartition(3) if offsets else made.drop("offset").coalesce(1)


CASES = {"exact-none": True, "exact-zstd": True, "exact-lz4": True, "fresh-gzip": False, "fresh-snappy": False}


class Written(NamedTuple):
    """A directory that Spark wrote, and its expected records."""

    data: Path
    rows: list[Row]


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:  # noqa: F811
    """The directory of each case; read only."""
    kafka.jars()
    kafka.need("javac", "openjdk-17-jdk-headless")
    found = {}
    for name, has_offsets in CASES.items():
        rows = rows_with_offsets() if has_offsets else rows_without_offsets()
        data = tmp_path_factory.mktemp(name) / "data"
        writer = frame(spark, rows, offsets=has_offsets).write.format("kafka-log").option("partitions", 3)
        writer = writer.option("compression", name.partition("-")[2]).option("segment.bytes", SEGMENT_BYTES)
        writer.mode("append").save(str(data))
        found[name] = Written(data, rows)
    return found


def by_place(lines: list[str]) -> list[str]:
    return sorted(lines, key=lambda line: (line.split(" ")[0], *map(int, line.split(" ")[1:3])))


def consumed(servers: str, topics: list[str]) -> list[str]:
    """Return the output of Kafka's consumer for both isolation levels."""
    classes = kafka.compile_java(PEER)
    found = [
        by_place(kafka.java("RowPeer", servers, level, *topics, classes=classes).splitlines())
        for level in ("read_committed", "read_uncommitted")
    ]
    assert found[0] == found[1]
    return found[0]


def append(servers: str, rows: list[Row]) -> list[Row]:
    """Append a record to each partition and check its offset."""
    last: dict[tuple[str, int], Row] = {(row.topic, row.partition): row for row in rows}
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **QUIET})
    placed: list[tuple[str, int, int]] = []
    for topic, partition in last:
        producer.produce(
            topic,
            b"more",
            b"key",
            partition,
            timestamp=TIME_MS + 10_000_000,
            on_delivery=lambda error, message: placed.append((message.topic(), message.partition(), message.offset())),
        )
    assert producer.flush(HANG_S) == 0
    assert sorted(placed) == sorted((*key, row.offset + 1) for key, row in last.items())
    return [
        *rows,
        *(Row(*key, row.offset + 1, CREATE_TIME, TIME_MS + 10_000_000, b"key", b"more") for key, row in last.items()),
    ]


def create(servers: str, topics: list[NewTopic]) -> None:
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    for future in admin.create_topics(topics).values():
        future.result(HANG_S)


def forget_cluster(data: Path) -> None:
    """Remove ids of cluster and topics, since ZooKeeper assigns new ones."""
    (data / "meta.properties").unlink()
    for path in data.glob("*/partition.metadata"):
        path.unlink()


@contextmanager
def booted(directory: Path, version: str) -> Iterator[str]:
    """Run Kafka on directory / "data", with its output in server.log."""
    (directory / "log4j.properties").write_text(LOGGING)
    with pytest.MonkeyPatch.context() as patch:
        if version != "4.4.0":  # which has another logger, and prints errors alone without its settings
            patch.setenv("JDK_JAVA_OPTIONS", f"-Dlog4j.configuration=file:{directory}/log4j.properties")
        broker = kafka.KafkaBroker(directory, version=version, heap="512m")
        with broker:
            patch.undo()
            yield broker.bootstrap_servers


def complaints(directory: Path) -> list[str]:
    """Return the lines of Kafka's log that report problems of the directory."""
    wrong = re.compile(r"(?i)^ERROR|corrupt|recovering unflushed|stray|rebuilding ind|no clean shutdown")
    lines = (directory / "server.log").read_text(errors="replace").splitlines()
    # KRaft always recovers its own log
    return [line for line in lines if wrong.search(line) and "__cluster_metadata" not in line]


def problems(data: Path) -> list[Any]:
    return [each for each in LogDirectory(data).verify() if not each.is_harmless]


def check_kafka_appends(directory: Path, version: str, rows: list[Row], *, is_new: bool = False) -> None:
    """Check that Kafka serves the rows and appends, twice. is_new: create the topics first."""
    topics = sorted({row.topic for row in rows})
    for _ in range(2):
        with booted(directory, version) as servers:
            if is_new:
                create(servers, [NewTopic(topic, TOPICS[topic], 1, config={"retention.ms": "-1"}) for topic in topics])
            assert consumed(servers, topics) == by_place([row.line for row in rows])
            rows = append(servers, rows)
            is_new = False
        assert complaints(directory) == []
    assert problems(directory / "data") == []


def taken_over(source: Path, directory: Path, rows: list[Row]) -> None:
    """Copy the directory to directory / "data", with the metadata log that kwire's broker writes."""
    shutil.copytree(source, directory / "data")
    topics = sorted({row.topic for row in rows})
    with Broker(data_dir=directory / "data") as broker:
        assert consumed(broker.bootstrap_servers, topics) == by_place([row.line for row in rows])


@pytest.mark.parametrize("case", CASES)
def test_kafka_finds_no_damage_in_the_files(written: dict[str, Written], case: str) -> None:
    data, rows = written[case]
    assert problems(data) == []
    topics = sorted({row.topic for row in rows})
    assert list(dump_problems(data, *topics)) == []
    assert len(list((data / "orders-0").glob("*.log"))) > 1


@pytest.mark.parametrize(
    ("case", "version"), [("exact-zstd", "3.9.1"), pytest.param("fresh-gzip", "4.4.0", marks=pytest.mark.gate)]
)
def test_kafka_starts_on_an_adopted_directory(
    written: dict[str, Written], case: str, version: str, tmp_path: Path
) -> None:
    data, rows = written[case]
    shutil.copytree(data, tmp_path / "data")
    assert run(["log", "adopt", str(tmp_path / "data"), "--apply", "--kafka-version", version]) == 0
    check_kafka_appends(tmp_path, version, rows)


@pytest.mark.parametrize("case", CASES)
def test_kafka_3_9_starts_after_the_embedded_broker(written: dict[str, Written], case: str, tmp_path: Path) -> None:
    data, rows = written[case]
    taken_over(data, tmp_path, rows)
    check_kafka_appends(tmp_path, "3.9.1", rows)


@pytest.mark.parametrize("case", ["exact-zstd", "fresh-gzip"])
def test_kafka_4_4_starts_after_the_embedded_broker(written: dict[str, Written], case: str, tmp_path: Path) -> None:
    data, rows = written[case]
    taken_over(data, tmp_path, rows)
    check_kafka_appends(tmp_path, "4.4.0", rows)


@pytest.mark.parametrize("case", ["exact-zstd", "fresh-snappy"])
def test_kafka_2_8_starts_with_zookeeper(written: dict[str, Written], case: str, tmp_path: Path) -> None:
    data, rows = written[case]
    shutil.copytree(data, tmp_path / "data")
    forget_cluster(tmp_path / "data")
    check_kafka_appends(tmp_path, "2.8.2", rows, is_new=True)


def test_the_embedded_broker_appends_and_restarts(written: dict[str, Written], tmp_path: Path) -> None:
    data, rows = written["exact-lz4"]
    shutil.copytree(data, tmp_path / "data")
    for _ in range(2):
        with Broker(data_dir=tmp_path / "data") as broker:
            assert consumed(broker.bootstrap_servers, list(TOPICS)) == by_place([row.line for row in rows])
            rows = append(broker.bootstrap_servers, rows)
    assert problems(tmp_path / "data") == []


@pytest.mark.parametrize("version", ["4.4.0", "2.8.2"])
def test_other_kafka_releases_start_on_the_embedded_brokers_directory(version: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    plain = [f"plain {n}" for n in range(300)]
    few = {"offsets_topic_num_partitions": 3, "transaction_state_log_num_partitions": 3}
    if version == "2.8.2":  # it does not know what later transaction versions write
        few["transaction_version"] = 0
    made = [NewTopic(name, 1, 1, config={"retention.ms": "-1"}) for name in ("plain", "tx")]
    with Broker(data_dir=data, **few) as broker:
        servers = broker.bootstrap_servers
        create(servers, made)
        send(Producer({"bootstrap.servers": servers, "enable.idempotence": True, **QUIET}), "plain", plain)
        assert read(servers, "plain", 300, group="readers", commit=True) == plain
        transact(servers, "t", "tx", "commit", "abort", "commit")
    if version == "2.8.2":
        shutil.rmtree(data / "__cluster_metadata-0")
        forget_cluster(data)
    with booted(tmp_path, version) as servers:
        if version == "2.8.2":
            create(servers, made)
        assert read(servers, "plain", 300) == plain
        assert read(servers, "tx", 2) == ["t commit", "t commit"]
        transact(servers, "t", "tx", "abort", "commit")
        assert read(servers, "tx", 3) == ["t commit"] * 3
        send(Producer({"bootstrap.servers": servers, **QUIET}), "plain", ["Kafka's"])
        assert read(servers, "plain", 1, group="readers", commit=True) == ["Kafka's"]
    assert complaints(tmp_path) == []
    assert problems(data) == []
    if version == "2.8.2":
        forget_cluster(data)
    with Broker(data_dir=data, **few) as broker:
        assert read(broker.bootstrap_servers, "plain", 301) == [*plain, "Kafka's"]
        assert read(broker.bootstrap_servers, "tx", 3) == ["t commit"] * 3
        transact(broker.bootstrap_servers, "t", "tx", "commit")
