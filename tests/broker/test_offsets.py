"""ListOffsets and DeleteRecords at the limits of segments and of the log, as in Kafka.

tests/interop/test_broker_admin.py sends the same requests to Kafka 3.9.1: Kafka 4 has no version 0 of ListOffsets.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kwire import messages
from kwire.broker import Broker
from kwire.broker.apis import list_offsets
from kwire.protocol.error_codes import ErrorCode
from tests.broker.test_fetch import produce
from tests.broker.wire import RawClient
from tests.waiting import until

TIMES_S = (1_000_000, 2_000_000, 3_000_000)
"""Modification times of three segments of one record each."""
FUTURE_MS = 1 << 62


def create(client: RawClient, topic: str, **configs: str) -> None:
    cls = messages.CreateTopicsRequest
    given = [cls.CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    creatable = cls.CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=given)
    until(lambda: client.ask(cls(topics=[creatable], timeout_ms=10_000), 5).topics[0].error_code in (0, 36))
    until(lambda: offsets_before(client, topic, -1, 1) == [0])


def offsets_before(client: RawClient, topic: str, timestamp: int, count: int) -> list[int]:
    cls = messages.ListOffsetsRequest
    partition = cls.ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=count)
    request = cls(replica_id=-1, topics=[cls.ListOffsetsTopic(name=topic, partitions=[partition])])
    return list(client.ask(request, 0).topics[0].partitions[0].old_style_offsets)


def check_offsets_before(client: RawClient, data: Path, **small_segments: str) -> None:
    """Ask for the segments before a time. small_segments: the config that makes a segment for each record."""
    create(client, "old", **small_segments)
    for _ in TIMES_S:
        until(lambda: produce(client, "old", b"v") == 0)
    paths = sorted((data / "old-0").glob("*.log"))
    assert [int(path.stem) for path in paths] == [0, 1, 2]
    for path, seconds in zip(paths, TIMES_S, strict=True):
        os.utime(path, (seconds, seconds))
    for i, seconds in enumerate(TIMES_S):
        offsets = list(range(i, -1, -1))
        assert offsets_before(client, "old", seconds * 1000 - 1, 9) == offsets[1:]
        assert offsets_before(client, "old", seconds * 1000, 9) == offsets
        assert offsets_before(client, "old", seconds * 1000 + 1, 9) == offsets
    assert offsets_before(client, "old", FUTURE_MS, 9) == [3, 2, 1, 0]
    for timestamp, all_of_them in ((-1, [3, 2, 1, 0]), (FUTURE_MS, [3, 2, 1, 0]), (-2, [0]), (2_000_000_000, [1, 0])):
        for count in range(6):
            assert offsets_before(client, "old", timestamp, count) == all_of_them[:count]
    create(client, "none")
    assert [offsets_before(client, "none", timestamp, 9) for timestamp in (-1, -2, FUTURE_MS, 0)] == [[0], [0], [0], []]


def delete(client: RawClient, topic: str, offset: int) -> tuple[int, int]:
    """Delete records below an offset; return the error code and the low watermark."""
    cls = messages.DeleteRecordsRequest
    partitions = [cls.DeleteRecordsPartition(partition_index=0, offset=offset)]
    request = cls(topics=[cls.DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=10_000)
    found = client.ask(request, 2).topics[0].partitions[0]
    return found.error_code, found.low_watermark


def check_deleted_records(client: RawClient) -> None:
    """Delete records of a log with three."""
    outside = (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    for topic, last in (("by offset", 3), ("by watermark", -1)):
        name = topic.replace(" ", "-")
        create(client, name)
        for _ in range(3):
            until(lambda name=name: produce(client, name) == 0)
        assert [delete(client, name, offset) for offset in (4, -2, FUTURE_MS)] == [outside] * 3
        assert [delete(client, name, offset) for offset in (0, 2, 1)] == [(0, 0), (0, 2), (0, 2)]
        assert delete(client, name, last) == (0, 3)
        assert [delete(client, name, offset) for offset in (3, -1, 4)] == [(0, 3), (0, 3), outside]


def test_segments_are_listed_by_the_time_of_their_last_change(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, RawClient(broker) as client:
        check_offsets_before(client, tmp_path, internal_segment_bytes="100")


def test_records_are_deleted_up_to_the_high_watermark() -> None:
    with Broker() as broker, RawClient(broker) as client:
        check_deleted_records(client)


@pytest.mark.parametrize(("timestamp", "offsets"), [(999, [0]), (1000, [1, 0]), (1001, [1, 0])])
def test_the_log_end_was_changed_now(tmp_path: Path, timestamp: int, offsets: list[int]) -> None:
    with Broker(tmp_path) as broker, RawClient(broker) as client:
        create(client, "t")
        assert produce(client, "t") == 0
        os.utime(next((tmp_path / "t-0").glob("*.log")), (0, 0))
        partition = broker.call(lambda node: node.topics.partition("t", 0))
        assert partition is not None
        assert list_offsets.offsets_before(partition.opened, timestamp, 9, now_ms=1000) == offsets
