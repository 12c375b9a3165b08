"""Topics with every kind of record, written by librdkafka, to compare two readers.

mixed       four partitions, number 2 empty: nulls, empty and binary values, headers, codecs, times out of order
appended    LogAppendTime
tx, open    transactions: committed and aborted, in between one that is not ended
compacted   offsets with gaps that compaction left
deleted     records deleted from the front
many        partitions of 1000, 100, 7 and 0 records
shop.eu, shop.us, my-shop.eu    for patterns
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from tests.waiting import HANG_S, until

__all__ = ["FIRST_MS", "MANY", "add_partitions", "consume", "create", "delete", "delete_before", "produce", "topics"]

FIRST_MS = 1_600_000_000_000
MANY = (1000, 100, 7, 0)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Headers = list[tuple[str, bytes | None]] | None
# (key, value, headers)
PIECES: list[tuple[bytes | None, bytes | None, Headers]] = [
    (b"plain", b"value", None),
    (None, b"no key", None),
    (b"tombstone", None, None),
    (None, None, None),
    (b"", b"", None),
    ("ключ".encode(), "Größe".encode(), [("h", b"1")]),
    ("🔑".encode(), "値".encode(), [("duplicate", b"1"), ("duplicate", b"2"), ("duplicate", None)]),
    (b"\xff\xfe\x00", bytes(range(256)), [("empty", b""), ("", b"no name"), ("заголовок", "ü".encode())]),
    (b"long", b"x" * 40_000, None),
]
# ms after FIRST_MS: out of order, the same twice, before 1970's end
TIMES = [0, 5_000, 3_000, 3_000, -FIRST_MS, 1 - FIRST_MS, 9_000, -86_400_000, 7_000]


def settle(futures: dict[Any, Any]) -> None:
    """Wait for the results of an admin client."""
    for future in futures.values():
        future.result(HANG_S)


def create(servers: str, name: str, partitions: int = 1, **config: str) -> str:
    """Create a topic. config: configs with underscores for dots."""
    found = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()})
    admin = AdminClient({"bootstrap.servers": servers})
    settle(admin.create_topics([found]))
    until(lambda: len(admin.list_topics(name, timeout=HANG_S).topics[name].partitions) >= partitions)
    return name


def delete(servers: str, name: str) -> None:
    """Delete a topic and wait until Metadata no longer lists it."""
    admin = AdminClient({"bootstrap.servers": servers})
    settle(admin.delete_topics([name]))
    until(lambda: name not in admin.list_topics(timeout=HANG_S).topics)


def delete_before(servers: str, name: str, partition: int, offset: int) -> None:
    """Delete the records below an offset."""
    admin = AdminClient({"bootstrap.servers": servers})
    settle(admin.delete_records([TopicPartition(name, partition, offset)]))


def add_partitions(servers: str, name: str, total: int) -> None:
    """Increase a topic to this number of partitions."""
    admin = AdminClient({"bootstrap.servers": servers})
    settle(admin.create_partitions([NewPartitions(name, total)]))
    until(lambda: len(admin.list_topics(name, timeout=HANG_S).topics[name].partitions) >= total)


def produce(servers: str, name: str, partition: int, values: list[str], *, first_ms: int = FIRST_MS) -> None:
    """Produce records with consecutive timestamps."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    for number, value in enumerate(values):
        producer.produce(name, value.encode(), b"k%d" % number, partition=partition, timestamp=first_ms + number)
    assert producer.flush(HANG_S) == 0


def consume(servers: str, name: str) -> list[Any]:
    """Consume every message, committed or not."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": uuid.uuid4().hex,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
        }
    )
    partitions = consumer.list_topics(name, timeout=HANG_S).topics[name].partitions
    consumer.assign([TopicPartition(name, number, 0) for number in partitions])
    found, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(HANG_S)
        assert message is not None
        if message.error() is None:
            found.append(message)
        else:
            ended += 1
    consumer.close()
    return found


def fill_mixed(servers: str) -> None:
    create(servers, "mixed", 4, message_timestamp_after_max_ms=str(2**62))
    for round_number in range(2):
        for number, codec in enumerate(CODECS):
            producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 100})
            for (key, value, headers), after_ms in zip(PIECES, TIMES, strict=True):
                producer.produce(
                    "mixed", value, key, (0, 1, 3)[number % 3], timestamp=FIRST_MS + after_ms + round_number,
                    headers=headers,
                )  # fmt: skip
            assert producer.flush(HANG_S) == 0


def transactional(servers: str, name: str) -> Producer:
    settings = {"transactional.id": name, "transaction.timeout.ms": 600_000, "linger.ms": 0}
    producer = Producer({"bootstrap.servers": servers, **settings})
    producer.init_transactions(HANG_S)
    return producer


def send(producer: Producer, topic: str, partition: int, *values: str) -> None:
    for value in values:
        producer.produce(topic, value, value[:1], partition, timestamp=FIRST_MS)
    assert producer.flush(HANG_S) == 0


def fill_transactions(servers: str, topic: str, *, leave_open: bool) -> list[Producer]:
    """Write interleaved transactions of two producers; with leave_open the last one stays open."""
    create(servers, topic, 2)
    first, second = (transactional(servers, f"{topic}-{number}") for number in range(2))
    plain = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for number in range(6):
        first.begin_transaction()
        second.begin_transaction()
        send(first, topic, 0, f"first {number}", f"first again {number}")
        send(second, topic, 0, f"second {number}")
        send(plain, topic, number % 2, f"plain {number}")
        send(second, topic, 1, f"second {number}")
        first.abort_transaction(HANG_S) if number % 3 == 1 else first.commit_transaction(HANG_S)
        second.abort_transaction(HANG_S) if number % 2 else second.commit_transaction(HANG_S)
    if not leave_open:
        return []
    first.begin_transaction()
    send(first, topic, 0, "never", "ended")
    send(plain, topic, 0, "behind it")
    return [first]


def fill_compacted(servers: str) -> None:
    """Write repeated keys in small segments until the cleaner has left gaps."""
    settings = {
        "cleanup_policy": "compact",
        "min_cleanable_dirty_ratio": "0.01",
        "segment_ms": "1000",
        "delete_retention_ms": "100",
    }
    try:
        create(servers, "compacted", 1, internal_segment_bytes="16384", **settings)
    except KafkaException:  # before Kafka 4 the setting for all sizes takes small ones
        create(servers, "compacted", 1, segment_bytes="16384", **settings)
    producer = Producer({"bootstrap.servers": servers, "batch.num.messages": 20, "linger.ms": 5})
    for number in range(600):
        producer.produce("compacted", b"%d" % number + b"x" * 200, b"%d" % (number % 7 if number % 10 else number), 0)
    assert producer.flush(HANG_S) == 0
    until(lambda: len(consume(servers, "compacted")) < 600)
    policy = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "compacted", incremental_configs=[policy])
    admin = AdminClient({"bootstrap.servers": servers})
    settle(admin.incremental_alter_configs([resource]))
    counts = [0]  # nothing is cleaned any more, once a pass that was under way is through

    def is_settled() -> bool:
        time.sleep(0.5)
        counts.append(len(consume(servers, "compacted")))
        return len(set(counts[-4:])) == 1 and len(counts) > 4

    until(is_settled)


@contextmanager
def topics(servers: str) -> Iterator[None]:
    """Create all topics; a transaction stays open until the context ends."""
    fill_mixed(servers)
    create(servers, "appended", 2, message_timestamp_type="LogAppendTime")
    for partition in range(2):
        produce(servers, "appended", partition, [f"{n}" for n in range(20)])
    fill_transactions(servers, "tx", leave_open=False)
    waiting = fill_transactions(servers, "open", leave_open=True)
    fill_compacted(servers)
    create(servers, "deleted", 2)
    for partition in range(2):
        produce(servers, "deleted", partition, [f"{n}" for n in range(30)])
    delete_before(servers, "deleted", 0, 12)
    create(servers, "many", len(MANY))
    for partition, count in enumerate(MANY):
        produce(servers, "many", partition, [f"{n}" for n in range(count)])
    for name in ("shop.eu", "shop.us", "my-shop.eu"):
        create(servers, name)
        produce(servers, name, 0, [name])
    yield
    for producer in waiting:
        with suppress(KafkaException):
            producer.abort_transaction(HANG_S)
