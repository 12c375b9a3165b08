"""A member of a share group that speaks the protocol itself, in the newest versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from kwire import messages as m
from kwire.protocol.error_codes import ErrorCode
from kwire.records import BatchBuilder, read_batches
from tests.broker.wire import RawClient
from tests.waiting import until

EARLIEST = {"share.auto.offset.reset": "earliest"}
SETTINGS = {
    "share_coordinator_state_topic_num_partitions": 3,
    "num_partitions": 1,
    "group_share_assignment_interval_ms": 0,
    "group_share_min_record_lock_duration_ms": 1000,
}

Acks = Iterable[tuple[int, int, Sequence[int]]]


def produce(client: RawClient, topic: str, count: int, partition: int = 0) -> None:
    """Append one batch of records, once a topic that was just created has its leader, as a producer does."""
    builder = BatchBuilder()
    for i in range(count):
        builder.append(None, b"%d" % i, timestamp=1)
    cls = m.ProduceRequest
    data = cls.TopicProduceData(
        name=topic, partition_data=[cls.PartitionProduceData(index=partition, records=builder.build())]
    )
    codes = []

    def is_known() -> bool:
        response = client.ask(cls(acks=-1, timeout_ms=10_000, topic_data=[data]), 10)
        codes.append(response.responses[0].partition_responses[0].error_code)
        return codes[-1] not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    until(is_known)
    assert codes[-1] == 0


def create(client: RawClient, topic: str, partitions: int = 1) -> UUID:
    """Create a topic and return its id."""
    cls = m.CreateTopicsRequest
    asked = cls.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=-1)
    response = client.ask(cls(topics=[asked], timeout_ms=10_000), 7)
    assert response.topics[0].error_code == 0, response
    return UUID(int=response.topics[0].topic_id.int)


def configure(client: RawClient, group: str, configs: dict[str, str]) -> None:
    """Set configs of a group."""
    cls = m.IncrementalAlterConfigsRequest
    altered = [cls.AlterableConfig(name=name, value=value) for name, value in configs.items()]
    resource = cls.AlterConfigsResource(resource_type=32, resource_name=group, configs=altered)
    response = client.ask(cls(resources=[resource]), 1)
    assert response.responses[0].error_code == 0, response


def set_share_version(client: RawClient, level: int) -> None:
    """Set the level of the feature share.version."""
    cls = m.UpdateFeaturesRequest
    update = cls.FeatureUpdateKey(feature="share.version", max_version_level=level, upgrade_type=1 if level else 2)
    assert client.ask(cls(feature_updates=[update]), 1).error_code == 0


class Member:
    """A member of a share group that reads one topic."""

    def __init__(self, client: RawClient, group: str, topic: str, topic_id: UUID, member_id: str = "m") -> None:
        self.client, self.group, self.topic, self.topic_id, self.member_id = client, group, topic, topic_id, member_id
        self.member_epoch = self.epoch = 0

    def heartbeat(self, epoch: int | None = None, topics: list[str] | None = None) -> Any:
        """Send a heartbeat, by default the next one."""
        epoch = self.member_epoch if epoch is None else epoch
        names = [self.topic] if epoch == 0 and topics is None else topics
        request = m.ShareGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch, subscribed_topic_names=names
        )
        response = self.client.ask(request, 1)
        if not response.error_code:
            self.member_epoch = response.member_epoch
        return response

    def join(self) -> Member:
        """Join the group and get the partitions."""
        self.heartbeat()
        self.heartbeat()
        return self

    def fetch(
        self, acks: Acks = (), *, epoch: int | None = None, partitions: Iterable[int] = (0,), **fields: Any
    ) -> Any:
        """Acknowledge and fetch."""
        cls = m.ShareFetchRequest
        batches = [
            cls.AcknowledgementBatch(first_offset=a, last_offset=z, acknowledge_types=list(t)) for a, z, t in acks
        ]
        parts = [cls.FetchPartition(partition_index=i, acknowledgement_batches=batches) for i in partitions]
        given = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            **fields,
        }
        epoch = self.epoch if epoch is None else epoch
        topics = [cls.FetchTopic(topic_id=self.topic_id, partitions=parts)]
        request = cls(group_id=self.group, member_id=self.member_id, share_session_epoch=epoch, topics=topics, **given)
        response = self.client.ask(request, 2)
        if not response.error_code:
            self.epoch = epoch + 1
        return response

    def acknowledge(self, acks: Acks, *, epoch: int | None = None, renew: bool = False, partition: int = 0) -> Any:
        """Acknowledge without fetching."""
        cls = m.ShareAcknowledgeRequest
        batches = [
            cls.AcknowledgementBatch(first_offset=a, last_offset=z, acknowledge_types=list(t)) for a, z, t in acks
        ]
        parts = [cls.AcknowledgePartition(partition_index=partition, acknowledgement_batches=batches)]
        epoch = self.epoch if epoch is None else epoch
        request = cls(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=epoch,
            is_renew_ack=renew,
            topics=[cls.AcknowledgeTopic(topic_id=self.topic_id, partitions=parts)],
        )
        response = self.client.ask(request, 2)
        if not response.error_code:
            self.epoch = epoch + 1
        return response


def acquired(response: Any) -> list[tuple[int, int, int]]:
    """Return (first offset, last offset, delivery count) of all acquired records."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in response.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]


def offsets(response: Any) -> list[int]:
    """Return the offsets of the records in a response."""
    return [
        record.offset
        for topic in response.responses
        for partition in topic.partitions
        for batch in read_batches(partition.records or b"")
        for record in batch.records()
    ]


def result(response: Any) -> tuple[int, str | None]:
    """Return the error of the only acknowledged partition."""
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition.error_code, partition.error_message
