"""Real Kafka and LogManager alternate on the same directories.

Topics must be in Kafka's metadata log, so Kafka creates them; then it stops, and kwire writes to its directory.
"""

from __future__ import annotations

import re
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.interop.booted_logs import as_hex
from tests.waiting import HANG_S
from tools import kafka

from kwire.errors import LogError
from kwire.log import LogConfig, LogManager, PartitionWriter
from kwire.messages import ProduceRequest, ProduceResponse, RequestHeader, registry
from kwire.records import Record, TimestampType, write_batch

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

PEER = Path(__file__).parent / "java" / "LogPeer.java"
NOW = time.time_ns() // 1_000_000  # Kafka forgets producers whose records are a day old
SETTINGS = {
    "log.index.interval.bytes": 1024,
    "log.index.size.max.bytes": 65536,
    "log.segment.bytes": 16384,
    "transaction.partition.verification.enable": "false",
}
CONFIG = LogConfig(index_interval_bytes=1024, segment_index_bytes=65536, segment_bytes=16384)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
LOGGING = """
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %m%n
"""


class Peer:
    """Kafka and its clients on one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.data = directory, directory / "data"
        self.classes = kafka.compile_java(PEER)
        (directory / "log4j.properties").write_text(LOGGING)

    @contextmanager
    def boot(self) -> Iterator[kafka.KafkaBroker]:
        """Run Kafka on the directory, with its log in server.log."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JDK_JAVA_OPTIONS", f"-Dlog4j.configuration=file:{self.directory}/log4j.properties")
            with kafka.KafkaBroker(self.directory, **SETTINGS) as broker:
                patch.undo()  # it is for the broker alone: its clients print what is compared
                yield broker

    def run(self, broker: kafka.KafkaBroker, *arguments: object) -> list[str]:
        """Run LogPeer and return its output."""
        words = [str(each) for each in arguments]
        return kafka.java("LogPeer", broker.bootstrap_servers, *words, classes=self.classes, timeout=120).splitlines()

    def new_log_lines(self, since: int) -> str:
        """Return the broker's output from a position of its log."""
        return (self.directory / "server.log").read_bytes()[since:].decode(errors="replace")

    def open(self) -> LogManager:
        return LogManager.open(self.data, now_ms=NOW, default_config=CONFIG)


def values(first: int, count: int) -> list[Record]:
    return [
        Record(
            offset=0,
            timestamp=NOW + first + i,
            timestamp_type=TimestampType.CREATE_TIME,
            key=None if i % 7 == 0 else b"key-%d" % (i % 5),
            value=None if i % 11 == 10 else b"value-%d " % (first + i) * (1 + i % 13),
            headers=[("h", b"1")] if i % 3 == 0 else [],
        )
        for i in range(count)
    ]


class Expected:
    """Expected consumer output by partition: all records, and committed ones."""

    def __init__(self) -> None:
        self.all: dict[tuple[str, int], list[str]] = {}
        self.committed: dict[tuple[str, int], list[str]] = {}

    def add(self, log: PartitionWriter, first_offset: int, records: list[Record], *, aborted: bool = False) -> None:
        lines = [
            f"{log.topic} {log.partition} {offset} {record.timestamp} {as_hex(record.key)} {as_hex(record.value)}"
            for offset, record in enumerate(records, first_offset)
        ]
        self.all.setdefault((log.topic, log.partition), []).extend(lines)
        if not aborted:
            self.committed.setdefault((log.topic, log.partition), []).extend(lines)


def lines_of(printed: list[str], which: dict[tuple[str, int], list[str]]) -> list[str]:
    """Return the lines of these partitions from the first expected offset; Kafka's own records come before."""
    found = []
    for line in printed:
        topic, partition, offset = line.split()[:3]
        expected = which.get((topic, int(partition)), [])
        if expected and int(offset) >= int(expected[0].split()[2]):
            found.append(line)
    return sorted(found, key=place_of)


def place_of(line: str) -> tuple[str, int, int]:
    topic, partition, offset = line.split()[:3]
    return topic, int(partition), int(offset)


def flat(which: dict[tuple[str, int], list[str]]) -> list[str]:
    return [line for _, lines in sorted(which.items()) for line in lines]


def write_many(manager: LogManager, expected: Expected) -> None:
    """Write batches of every codec, several segments, and an idempotent and a transactional producer with an abort."""
    log = manager.logs["plain", 0]
    leader_epoch = log.leader_epochs.latest or 0
    for i in range(60):
        records = values(i * 20, 20)
        data = write_batch(records, compression=CODECS[i % 5])
        expected.add(log, log.append(data, now_ms=NOW, leader_epoch=leader_epoch).first_offset, records)
    assert len(log.segments) >= 3
    log = manager.logs["plain", 1]
    for sequence in range(0, 40, 10):
        records = values(sequence, 10)
        data = write_batch(records, producer_id=4242, producer_epoch=0, base_sequence=sequence)
        expected.add(log, log.append(data, now_ms=NOW, leader_epoch=leader_epoch).first_offset, records)
    log = manager.logs["txn", 0]
    (producer,) = log.producers.entries.values()
    sequence = producer.last_sequence + 1
    for commit in (True, False, True):
        for _ in range(12):
            records = values(sequence, 15)
            data = write_batch(
                records,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=sequence,
                is_transactional=True,
            )
            first = log.append(data, now_ms=NOW, leader_epoch=leader_epoch).first_offset
            expected.add(log, first, records, aborted=not commit)
            sequence += 15
        log.append_marker(
            producer.producer_id,
            producer.producer_epoch,
            commit,
            producer.coordinator_epoch,
            now_ms=NOW,
            leader_epoch=leader_epoch,
        )
    assert len(log.segments) >= 2


def check_consumed(peer: Peer, broker: kafka.KafkaBroker, expected: Expected) -> None:
    for isolation, which in (("read_uncommitted", expected.all), ("read_committed", expected.committed)):
        printed = peer.run(broker, "read", isolation, "plain", "txn")
        assert lines_of(printed, which) == flat(which)


def produce(broker: kafka.KafkaBroker, topic: str, partition: int, data: bytes) -> tuple[int, int]:
    """Send one Produce request and return (error code, base offset)."""
    version = 9
    request = ProduceRequest.from_json(
        {
            "transactionalId": None,
            "acks": -1,
            "timeoutMs": 10_000,
            "topicData": [{"name": topic, "partitionData": [{"index": partition, "records": None}]}],
        },
        version=version,
    )
    request.topic_data[0].partition_data[0].records = data
    header = RequestHeader(
        request_api_key=ProduceRequest.API_KEY, request_api_version=version, correlation_id=1, client_id="test"
    )
    frame = header.encode(version=registry.request_header_version(ProduceRequest.API_KEY, version))
    frame += request.encode(version=version)
    with socket.create_connection(("127.0.0.1", broker.port), timeout=HANG_S) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        stream = connection.makefile("rb")
        (size,) = struct.unpack(">i", stream.read(4))
        answer = stream.read(size)
    response = ProduceResponse.decode(answer[5:], version=version)  # behind correlation id and an empty tag section
    (found,) = response.responses[0].partition_responses
    return found.error_code, found.base_offset


def dump_problems(data: Path, *topics: str) -> Iterator[str]:
    """Return the problems that Kafka's DumpLogSegments finds in the indexes of some partitions."""
    files = [str(path) for topic in topics for path in sorted(data.glob(f"{topic}-*/*index"))]
    logs = [str(path) for topic in topics for path in sorted(data.glob(f"{topic}-*/*.log"))]
    assert len(files) > 10
    indexes = [path for path in files if not path.endswith(".txnindex")]
    sane = kafka.java("kafka.tools.DumpLogSegments", "--index-sanity-check", "--files", ",".join(indexes))
    for path in indexes:
        if f"{path} passed sanity check." not in sane and f"{path} is empty." not in sane:
            yield f"sanity of {path}: {sane[-500:]}"
    verified = kafka.java("kafka.tools.DumpLogSegments", "--verify-index-only", "--files", ",".join(indexes))
    if "Found" in verified or "mismatch" in verified.lower():
        yield verified
    dumped = kafka.java("kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(logs))
    yield from re.findall(r".*isvalid: false.*", dumped)


@pytest.fixture(scope="module")
def formatted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of a cleanly stopped Kafka, with topics and transactions of a Java producer."""
    directory = tmp_path_factory.mktemp("formatted")
    peer = Peer(directory)
    with peer.boot() as broker:
        peer.run(broker, "create", "plain", 2, "retention.ms=-1", "txn", 1, "retention.ms=-1")
        peer.run(broker, "send", "tx", "txn", 0, 7, "commit")
        peer.run(broker, "send", "tx", "txn", 0, 5, "abort")
    return directory


@pytest.fixture
def peer(formatted: Path, tmp_path: Path) -> Peer:
    """A copy of that directory, with Kafka's clients."""
    subprocess.run(["cp", "-a", f"{formatted}/.", str(tmp_path)], check=True)
    return Peer(tmp_path)


@pytest.mark.gate
@pytest.mark.requirement("G-01", "G-14", "F-01", "F-02")
def test_kafka_starts_on_a_clean_directory_and_appends(peer: Peer) -> None:
    expected = Expected()
    with peer.open() as manager:
        assert manager.was_clean
        assert manager.ignored == ["__cluster_metadata-0"]
        write_many(manager, expected)
        manager.logs["plain", 0].delete_records(30)
        del expected.all["plain", 0][:30], expected.committed["plain", 0][:30]
        ends = {which: log.log_end_offset for which, log in manager.logs.items()}
    assert list(dump_problems(peer.data, "plain", "txn")) == []

    before = (peer.directory / "server.log").stat().st_size
    with peer.boot() as broker:
        check_consumed(peer, broker, expected)
        printed = peer.new_log_lines(before)
        assert "since clean shutdown file was found" in printed
        wrong = re.compile(r"(?i)corrupt|recovering unflushed|stray")
        # KRaft always recovers its own log
        assert [line for line in printed.splitlines() if wrong.search(line) and "__cluster_metadata" not in line] == []
        known = {line.split()[0]: line.split()[1:4] for line in peer.run(broker, "producers", "plain", 1)}
        assert known == {"4242": ["0", "39", "-1"]}
        again = write_batch(values(30, 10), producer_id=4242, producer_epoch=0, base_sequence=30)
        assert produce(broker, "plain", 1, again) == (0, 30)  # a duplicate: the old offset
        gap = write_batch(values(0, 1), producer_id=4242, producer_epoch=0, base_sequence=50)
        assert produce(broker, "plain", 1, gap)[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
        more = write_batch(values(40, 10), producer_id=4242, producer_epoch=0, base_sequence=40)
        assert produce(broker, "plain", 1, more) == (0, 40)
        peer.run(broker, "send", "tx", "txn", 0, 9, "commit")

    with peer.open() as manager:
        assert manager.was_clean
        assert manager.logs["plain", 0].log_start_offset == 30
        assert manager.logs["plain", 1].log_end_offset == 50
        assert manager.logs["plain", 1].producers.entries[4242].last_sequence == 49
        txn = manager.logs["txn", 0]
        assert txn.log_end_offset == ends["txn", 0] + 9 + 1
        assert txn.last_stable_offset == txn.log_end_offset


@pytest.mark.requirement("G-07", "G-08", "G-13")
def test_kafka_recovers_our_unclean_logs_and_we_recover_its(peer: Peer) -> None:
    expected = Expected()
    manager = peer.open()
    write_many(manager, expected)
    manager.logs["plain", 0].flush()
    manager.write_checkpoints()
    records = values(5000, 30)
    log = manager.logs["plain", 0]
    leader_epoch = log.leader_epochs.latest or 0
    expected.add(log, log.append(write_batch(records), now_ms=NOW, leader_epoch=leader_epoch).first_offset, records)
    manager.close(clean=False)
    with (peer.data / "plain-1" / f"{0:020d}.log").open("ab") as file:
        file.write(b"torn")

    before = (peer.directory / "server.log").stat().st_size
    with peer.boot() as broker:
        check_consumed(peer, broker, expected)
        printed = peer.new_log_lines(before)
        assert "since no clean shutdown file was found" in printed
        assert "Corruption found in segment 0, truncating to offset 40" in printed
        peer.run(broker, "send", "tx", "txn", 0, 3, "abort")
        broker.stop(kill=True)

    with peer.open() as manager:
        assert not manager.was_clean
        txn = manager.logs["txn", 0]
        aborted = txn.aborted_transactions(0, txn.log_end_offset)
        assert [each.last_offset for each in aborted][-1] == txn.log_end_offset - 1
        assert len(aborted) == 3
        assert manager.logs["plain", 1].log_end_offset == 40


def test_the_directory_lock_excludes_a_second_writer(peer: Peer) -> None:
    with peer.boot(), pytest.raises(LogError, match="locked by another process"):
        peer.open()
    with peer.open(), pytest.raises(RuntimeError, match="did not start"), peer.boot():
        pass
    assert "Failed to acquire lock on file .lock" in (peer.directory / "server.log").read_text(errors="replace")
