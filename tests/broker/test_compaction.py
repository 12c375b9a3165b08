"""Compaction and retention while a broker runs."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kwire.broker import Broker
from kwire.log import LogDirectory
from tests.waiting import HANG_S, until

CLEANED_BYTES = 6000
"""A segment that was not rolled yet, and seven records; what was produced takes more than 10,000."""


def test_a_compacted_topic_is_cleaned_while_clients_are_served(tmp_path: Path) -> None:
    with Broker(tmp_path, log_cleaner_backoff_ms=50) as broker:
        address = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        admin = AdminClient(address)
        config = {"cleanup.policy": "compact", "internal.segment.bytes": "4000", "min.cleanable.dirty.ratio": "0.01"}
        admin.create_topics([NewTopic("compacted", 1, 1, config=config)])["compacted"].result(HANG_S)
        producer = Producer(address)
        for i in range(400):
            producer.produce("compacted", key=b"%d" % (i % 7), value=b"%d" % i)
            if i % 20 == 0:
                producer.flush(HANG_S)
        assert producer.flush(HANG_S) == 0
        partition = broker.call(lambda node: node.topics.partition("compacted", 0))
        until(lambda: broker.call(lambda _: partition.log.size_bytes) <= CLEANED_BYTES)
    values = {record.key: record.value for record in LogDirectory(str(tmp_path))["compacted", 0].read()}
    assert values == {b"%d" % (i % 7): b"%d" % i for i in range(393, 400)}


def test_retention_deletes_segments_and_advances_the_log_start(tmp_path: Path) -> None:
    with Broker(tmp_path, log_retention_check_interval_ms=50, log_segment_delete_delay_ms=100) as broker:
        address = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        admin = AdminClient(address)
        config = {"internal.segment.bytes": "2000", "retention.bytes": "4000"}
        admin.create_topics([NewTopic("short", 1, 1, config=config)])["short"].result(HANG_S)
        producer = Producer(address)
        for _ in range(100):
            producer.produce("short", bytes(200))
            producer.flush(HANG_S)
        partition = broker.call(lambda node: node.topics.partition("short", 0))
        until(lambda: broker.call(lambda _: partition.log.size_bytes) <= 7000)
        start, size = broker.call(lambda _: (partition.log.log_start_offset, partition.log.size_bytes))
        assert start > 0
        assert 2000 <= size <= 7000
        until(lambda: not list(tmp_path.glob("short-0/*.deleted")))
