"""The leader epoch of a partition is known before it has a record, as in Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kwire import messages
from kwire.broker import Broker
from kwire.protocol.error_codes import ErrorCode
from tests.broker.test_fetch import produce
from tests.broker.wire import RawClient
from tests.waiting import until

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
FETCHES = [(-1, -1, 0), (0, -1, 0), (-1, 0, 0), (0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (1, 0, 0)]
"""Current epoch, last fetched epoch, offset."""
LOOKUPS = [(-1, -1), (-1, 0), (0, 0), (0, 1), (1, 0)]
"""Current epoch, requested epoch."""
OUT_OF_RANGE = (ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, (-1, -1))
UNKNOWN = ErrorCode.UNKNOWN_LEADER_EPOCH


def create(client: RawClient, topic: str) -> None:
    """Create a topic, and wait until its leader responds."""
    cls = messages.CreateTopicsRequest
    creatable = cls.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    until(lambda: client.ask(cls(topics=[creatable], timeout_ms=10_000), 7).topics[0].error_code in (0, 36))
    until(lambda: fetch(client, topic, -1, -1, 0)[0] == 0)


def fetch(client: RawClient, topic: str, current: int, last_fetched: int, offset: int) -> tuple[Any, ...]:
    """Return error, high watermark, log start offset, and the diverging epoch with its end."""
    cls = messages.FetchRequest
    partition = cls.FetchPartition(
        partition=0,
        current_leader_epoch=current,
        last_fetched_epoch=last_fetched,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
    )
    request = cls(max_wait_ms=0, topics=[cls.FetchTopic(topic=topic, partitions=[partition])])
    found = client.ask(request, 12).responses[0].partitions[0]
    diverging = found.diverging_epoch
    return (
        found.error_code,
        found.high_watermark,
        found.log_start_offset,
        (diverging.epoch, diverging.end_offset),
    )


def look_up(client: RawClient, topic: str, current: int, epoch: int) -> tuple[int, int, int]:
    """Return error, epoch and end offset of OffsetForLeaderEpoch."""
    cls = messages.OffsetForLeaderEpochRequest
    partition = cls.OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    request = cls(replica_id=-1, topics=[cls.OffsetForLeaderTopic(topic=topic, partitions=[partition])])
    found = client.ask(request, 4).topics[0].partitions[0]
    return found.error_code, found.leader_epoch, found.end_offset


def offset_at(client: RawClient, topic: str, timestamp: int) -> tuple[int, int, int]:
    """Return error, offset and leader epoch of ListOffsets."""
    cls = messages.ListOffsetsRequest
    partition = cls.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = cls(replica_id=-1, topics=[cls.ListOffsetsTopic(name=topic, partitions=[partition])])
    found = client.ask(request, 7).topics[0].partitions[0]
    return found.error_code, found.offset, found.leader_epoch


def state(client: RawClient, topic: str) -> list[tuple[Any, ...]]:
    """Return all responses that depend on the leader epochs."""
    return [
        *(fetch(client, topic, *each) for each in FETCHES),
        *(look_up(client, topic, *each) for each in LOOKUPS),
        *(offset_at(client, topic, each) for each in (EARLIEST, LATEST, MAX_TIMESTAMP)),
    ]


EMPTY: list[tuple[Any, ...]] = [
    (0, 0, 0, (-1, -1)),
    (0, 0, 0, (-1, -1)),
    (0, 0, 0, (-1, -1)),
    (0, 0, 0, (-1, -1)),
    (0, 0, 0, (0, 0)),
    (0, 0, 0, (0, 0)),
    OUT_OF_RANGE,
    (UNKNOWN, -1, -1, (-1, -1)),
    (0, -1, -1),
    (0, 0, 0),
    (0, 0, 0),
    (0, -1, -1),
    (UNKNOWN, -1, -1),
    (0, 0, 0),
    (0, 0, 0),
    (0, -1, -1),
]
"""The state of a partition without records, in Kafka 4.4.0."""
ONE_RECORD: list[tuple[Any, ...]] = [
    (0, 1, 0, (-1, -1)),
    (0, 1, 0, (-1, -1)),
    (0, 1, 0, (-1, -1)),
    (0, 1, 0, (-1, -1)),
    (0, 1, 0, (-1, -1)),
    (0, 1, 0, (0, 1)),
    OUT_OF_RANGE,
    (UNKNOWN, -1, -1, (-1, -1)),
    (0, -1, -1),
    (0, 0, 1),
    (0, 0, 1),
    (0, -1, -1),
    (UNKNOWN, -1, -1),
    (0, 0, 0),
    (0, 1, 0),
    (0, 0, 0),
]
"""The same with one record."""


def test_the_epoch_of_a_partition_without_records_is_known() -> None:
    with Broker() as broker, RawClient(broker) as client:
        create(client, "t")
        assert state(client, "t") == EMPTY
        assert produce(client, "t") == 0
        assert state(client, "t") == ONE_RECORD


def test_each_start_begins_an_epoch_at_the_end_of_the_log(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, RawClient(broker) as client:
        create(client, "empty")
        create(client, "t")
        assert produce(client, "t") == 0
    checkpoint = tmp_path / "t-0" / "leader-epoch-checkpoint"
    assert checkpoint.read_text() == "0\n1\n0 0\n"
    with Broker(tmp_path) as broker, RawClient(broker) as client:
        epoch = broker.call(lambda node: node.topics.partition("t", 0).leader_epoch)  # type: ignore[union-attr]
        assert epoch > 0
        assert look_up(client, "t", epoch, 0) == (0, 0, 1)
        assert look_up(client, "t", epoch, epoch) == (0, epoch, 1)
        assert look_up(client, "empty", epoch, 0) == (0, 0, 0)
        assert fetch(client, "empty", epoch, epoch, 0) == (0, 0, 0, (-1, -1))
        assert produce(client, "t") == 0
        assert checkpoint.read_text() == f"0\n2\n0 0\n{epoch} 1\n"
    assert (tmp_path / "empty-0" / "leader-epoch-checkpoint").read_text() == f"0\n1\n{epoch} 0\n"


def test_topics_of_old_formats_have_no_epochs() -> None:
    with Broker(log_message_format_version="0.10.2") as broker, RawClient(broker) as client:
        create(client, "t")
        assert look_up(client, "t", 0, 0) == (0, -1, -1)
