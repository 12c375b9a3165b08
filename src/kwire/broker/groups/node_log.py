"""The coordinator on a node: `__consumer_offsets` as its log, topics as they change.

Source: kafka.coordinator.group.CoordinatorLoaderImpl, CoordinatorPartitionWriter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kwire.broker.groups.coordinator import GroupCoordinator
from kwire.broker.groups.offsets_log import NO_PRODUCER, LoggedMarker, LoggedRecord, Producer
from kwire.broker.internal_topics import create_missing
from kwire.broker.topics import Partition, Topic
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.records import AppendOrigin, BatchBuilder, ControlRecordType, parse_control_record, read_batches

if TYPE_CHECKING:
    from kwire.broker.node import Node

__all__ = ["NodeOffsetsLog", "open_coordinator", "watch_topics"]

LOAD_BYTES = 5 * 1024 * 1024
"""Read at a time when the log is replayed. Source: offsets.load.buffer.size."""


def open_coordinator(node: Node) -> GroupCoordinator:
    """The node's coordinator, its log read and its timers running. Raises LogError, DecodeError.

    The topics and their logs have to be there. `stop()` it before the logs are closed.
    """
    coordinator = GroupCoordinator(node.clock, node.timers, node.settings, node.topics, NodeOffsetsLog(node))
    coordinator.start()
    return coordinator


def watch_topics(node: Node) -> None:
    """From now on tell the node's coordinator, whichever it is by then, of topics that come and go."""

    def topic_changed(topic: Topic, exists: bool) -> None:
        if exists:
            node.groups.topics_changed()
        elif topic.name != GROUPS_TOPIC:
            node.groups.topics_deleted([topic.name])

    node.topics.observers.append(topic_changed)


class NodeOffsetsLog:
    """`__consumer_offsets`, made when the first group has something to keep."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def partition_count(self) -> int:
        """See OffsetsLog."""
        topic = self._node.topics.get(GROUPS_TOPIC)
        return self._node.settings.offsets_topic_num_partitions if topic is None else len(topic.partitions)

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], producer: Producer = NO_PRODUCER
    ) -> int:
        """See OffsetsLog."""
        topic = create_missing(self._node, GROUPS_TOPIC)
        now_ms = self._node.clock.now_ms()
        builder = BatchBuilder(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,  # Kafka's coordinator numbers records, with a producer or without
            is_transactional=producer != NO_PRODUCER,
        )
        for key, value in records:
            builder.append(key, value, timestamp=now_ms)
        appended = topic.partitions[partition].append(builder.build(), now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
        return appended.first_offset

    def replay(self) -> Iterator[LoggedRecord | LoggedMarker]:
        """See OffsetsLog."""
        topic = self._node.topics.get(GROUPS_TOPIC)
        for partition in () if topic is None else topic.partitions.values():
            if partition.log is not None:
                yield from replay_partition(partition)


def replay_partition(partition: Partition) -> Iterator[LoggedRecord | LoggedMarker]:
    """Everything that one partition holds. Raises DecodeError, LogError."""
    log = partition.opened
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.fetch(offset, LOAD_BYTES).read()
        before = offset
        for batch in read_batches(data):
            for record in batch.records():
                if batch.is_control:
                    control = parse_control_record(record)
                    if control.type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
                        commit = control.type is ControlRecordType.COMMIT
                        yield LoggedMarker(partition.index, batch.producer_id, commit)
                elif record.key is not None:
                    producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER.producer_id
                    yield LoggedRecord(partition.index, record.offset, producer_id, record.key, record.value)
            offset = batch.last_offset + 1
        if offset == before:  # nothing whole is left; recovery has seen to it that there is nothing to come
            return
