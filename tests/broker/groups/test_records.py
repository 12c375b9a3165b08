"""Records of __consumer_offsets are written as Kafka's bytes."""

from __future__ import annotations

from pathlib import Path

from kwire.broker.coordinator_log import CoordinatorRecord
from kwire.broker.groups import records
from kwire.broker.transactions import NO_PRODUCER
from kwire.internal_topics.groups_state import GroupsState
from kwire.log import LogDirectory
from kwire.messages import OffsetCommitKey, OffsetCommitValue
from tests.broker.groups.harness import logged


def test_records_are_the_bytes_of_kafka_3_9(kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs["modern"] / "data")
    count = 0
    for (topic, _), log in sorted(directory.partitions.items()):
        for record in log.read() if topic == "__consumer_offsets" else ():
            if record.key is not None:
                typed = logged(0, 0, record.key, record.value, NO_PRODUCER)
                assert typed.key is not None
                if record.value is not None:
                    assert typed.version == {1: 3, 2: 3}.get(typed.record_type or 0, 0)
                assert CoordinatorRecord(typed.key, typed.value, typed.version or 0).encode() == (
                    record.key,
                    record.value,
                )
                count += 1
    assert count >= 100


def test_a_commit_with_an_expiry_time_is_written_in_a_version_that_has_it() -> None:
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7, expire_timestamp=9)
    key, data = records.offset_commit("g", "t", 3, value).encode()
    assert data is not None
    assert data[:2] == b"\x00\x01"
    read = logged(0, 0, key, data, NO_PRODUCER)
    assert (read.key, read.value) == (OffsetCommitKey(group="g", topic="t", partition=3), value)


def test_offsets_older_than_0_9_are_read() -> None:
    key, data = records.offset_commit("g", "t", 3, OffsetCommitValue(offset=5)).encode()
    state = GroupsState()
    state.apply(logged(0, 0, b"\x00\x00" + key[2:], data, NO_PRODUCER))
    assert state.offsets_of("g")["t", 3].offset == 5
