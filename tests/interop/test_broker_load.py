"""A broker process with malicious clients, and on a full disk, serves other clients."""

from __future__ import annotations

import contextlib
import random
import resource
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.soak.broker_process import BrokerProcess
from tests.waiting import HANG_MS, HANG_S

from kwire.log import LogDirectory

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="memory and limits of another process are read and set as on Linux"
    ),
]

QUIET = {"log_level": 0}
MEBI = 1 << 20
FETCH_1 = "0001 0004 00000001 ffff ffffffff 00000000 00000000 7fffffff 00 00000001 0004 62757379 00000001"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[BrokerProcess]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    broker = BrokerProcess(tmp_path, **{"transaction.abort.timed.out.transaction.cleanup.interval.ms": 500})
    broker.start()
    yield broker
    broker.close()


def make_topics(broker: BrokerProcess, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        future.result(HANG_S)


def write(broker: BrokerProcess, topic: str, values: list[str], **settings: object) -> list[KafkaError | None]:
    """Produce records and return their results in order."""
    results: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET, **settings})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: results.append(error))
    assert producer.flush(HANG_S) == 0
    return results


def read(broker: BrokerProcess, topic: str, count: int) -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "-", "isolation.level": "read_committed", **QUIET}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while len(found) < count:
        message = consumer.poll(HANG_S)
        assert message is not None, f"{len(found)} of {count} came"
        assert message.error() is None, message.error()
        found.append(message.value().decode())
    assert consumer.poll(0.3) is None
    consumer.close()
    return found


def resident_bytes(broker: BrokerProcess, what: str = "VmRSS") -> int:
    assert broker.process is not None
    for line in Path(f"/proc/{broker.process.pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise AssertionError(what)


def test_a_thousand_bad_connections_cost_little_and_delay_no_one(served: BrokerProcess) -> None:
    """Memory is bounded by the received bytes, not by announced or requested sizes."""
    make_topics(served, "busy")
    big = ["x" * 200_000 + str(i) for i in range(100)]
    assert write(served, "busy", big, **{"linger.ms": 0}) == [None] * 100
    assert read(served, "busy", 100) == big
    before = resident_bytes(served)
    draw = random.Random(1)
    fetch = bytes.fromhex(FETCH_1) + (0).to_bytes(4, "big") + (0).to_bytes(8, "big") + (100 * MEBI).to_bytes(4, "big")
    fetch = len(fetch).to_bytes(4, "big") + fetch
    with contextlib.ExitStack() as stack:

        def connect(sent: bytes) -> socket.socket:
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            sock.sendall(sent)
            return sock

        idle = [connect(b"") for _ in range(900)]
        stalled = [connect(fetch * 5) for _ in range(50)]  # each asks for 100 MB and reads none of it
        announced = [connect((100 * MEBI).to_bytes(4, "big") + bytes(1000)) for _ in range(40)]
        for _ in range(60):
            connect(draw.randbytes(draw.randrange(1, 100)))
        small = [str(i) for i in range(200)]
        assert write(served, "busy", small) == [None] * 200
        assert read(served, "busy", 300) == big + small
        grown = resident_bytes(served, "VmHWM") - before
        assert len(idle) + len(stalled) + len(announced) == 990
        assert all(sock.recv(4) for sock in stalled[:3])  # clients that start to read get their responses
    assert grown < 64 * MEBI, f"{grown / MEBI:.0f} MiB more"


def test_abandoned_transactions_block_readers_until_the_timeout(served: BrokerProcess) -> None:
    make_topics(served, "tx")
    for number in range(5):
        producer = Producer(
            {
                "bootstrap.servers": served.bootstrap_servers,
                "transactional.id": f"gone-{number}",
                "transaction.timeout.ms": 2000,
                **QUIET,
            }
        )
        producer.init_transactions(HANG_S)
        producer.begin_transaction()
        producer.produce("tx", f"lost {number}", partition=0)
        assert producer.flush(HANG_S) == 0
        del producer
    assert write(served, "tx", ["after"]) == [None]
    assert read(served, "tx", 1) == ["after"]  # waits for the timeouts


def limit_file_size(broker: BrokerProcess, size: int) -> None:
    """Limit the size of files: larger writes are truncated or fail with an OSError, as on a full disk."""
    assert broker.process is not None
    resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_full_disk_fails_only_requests_that_write(served: BrokerProcess) -> None:
    make_topics(served, "full", "other")
    value = "y" * 3000
    first = [f"{i} {value}" for i in range(50)]
    plain = {"message.timeout.ms": HANG_MS, "retries": 0, "linger.ms": 0, "batch.num.messages": 1}
    assert write(served, "full", first, **plain) == [None] * 50
    assert write(served, "other", ["1"]) == [None]
    limit_file_size(served, 200_000)
    more = [f"{i} {value}" for i in range(50, 100)]
    results = write(served, "full", more, **plain)
    refused = [result for result in results if result is not None]
    assert refused
    assert {error.code() for error in refused} == {KafkaError.KAFKA_STORAGE_ERROR}
    kept = [record for record, result in zip(more, results, strict=True) if result is None]
    assert read(served, "full", 50 + len(kept)) == first + kept
    assert write(served, "other", ["2"]) == [None]
    assert read(served, "other", 2) == ["1", "2"]
    limit_file_size(served, resource.RLIM_INFINITY)
    last = [f"{i} {value}" for i in range(100, 110)]
    assert write(served, "full", last, **{"enable.idempotence": True}) == [None] * 10  # retried until it is open again
    assert read(served, "full", 60 + len(kept)) == first + kept + last
    served.kill()
    served.start()
    assert read(served, "full", 60 + len(kept)) == first + kept + last
    served.stop()
    assert [each for each in LogDirectory(served.data).verify() if not each.is_harmless] == []


def test_coordinators_on_a_full_disk_return_retriable_errors(served: BrokerProcess) -> None:
    """Nothing is lost: the client's retries succeed once space is available."""
    make_topics(served, "tx")
    producer = Producer({"bootstrap.servers": served.bootstrap_servers, "transactional.id": "t", **QUIET})
    producer.init_transactions(HANG_S)
    producer.begin_transaction()
    producer.produce("tx", "one", partition=0)
    assert producer.flush(HANG_S) == 0
    limit_file_size(served, 1)
    with pytest.raises(KafkaException):
        producer.commit_transaction(2)
    limit_file_size(served, resource.RLIM_INFINITY)
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            producer.commit_transaction(HANG_S)
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
        else:
            break
    assert read(served, "tx", 1) == ["one"]
