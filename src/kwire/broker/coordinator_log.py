"""The topic that holds a coordinator's records: written by it, and read when the broker starts or a leader changes.

Source: kafka.coordinator.group.CoordinatorLoaderImpl, CoordinatorPartitionWriter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from kwire.broker.stored_records import batches_of
from kwire.broker.transactions.metadata import NO_PRODUCER, ProducerIdAndEpoch
from kwire.errors import BrokerError, EncodeError, LogError
from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.internal_topics.typed_record import Decoder, Problems, TypedRecord, typed_records
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.protocol.record_values import write_prefixed
from kwire.records import BatchBuilder

if TYPE_CHECKING:
    from kwire.broker.clock import Clock
    from kwire.broker.topics import Topic, TopicRegistry

__all__ = [
    "CoordinatorLog",
    "CoordinatorRecord",
    "CoordinatorTopic",
    "append_error",
    "read_topic",
    "typed",
    "warn_of_problems",
]

logger = logging.getLogger(__name__)

# Errors for clients when a coordinator cannot write: no details of the log, only whether to retry.
# Source: GroupMetadataManager.appendGroupMetadataErrorToResponseError.
APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class CoordinatorRecord(msgspec.Struct, frozen=True):
    """A key, and its value in a version; a value of None is a tombstone."""

    key: Message
    value: Message | None
    version: int = 0

    def encode(self) -> tuple[bytes, bytes | None]:
        """Return the bytes of key and value. Raises EncodeError for text that is too long, such as a huge member id."""
        return write_prefixed(self.key, 0), None if self.value is None else write_prefixed(self.value, self.version)


def typed(
    topic: str,
    partition: int,
    records: Sequence[CoordinatorRecord],
    first_offset: int,
    now_ms: int,
    producer: ProducerIdAndEpoch = NO_PRODUCER,
) -> Iterator[TypedRecord]:
    """Yield appended records as reading the topic would."""
    for offset, record in enumerate(records, first_offset):
        yield TypedRecord(
            topic=topic,
            partition=partition,
            offset=offset,
            timestamp=now_ms,
            kind=type(record.key).__name__.removesuffix("Key"),
            version=record.version,
            key=record.key,
            value=record.value,
            is_transactional=producer != NO_PRODUCER,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
        )


def append_error(error: BrokerError | LogError | EncodeError, what: str) -> BrokerError:
    """Return the error for clients of a failed append, and log the failure. what: of which records."""
    code = error.code if isinstance(error, BrokerError) else ErrorCode.KAFKA_STORAGE_ERROR
    if isinstance(error, EncodeError):
        code = ErrorCode.INVALID_REQUEST
    logger.warning("%s could not be written: %s", what, error)
    return refusal(APPEND_ERRORS.get(ErrorCode(code), ErrorCode(code)), f"{what} could not be written")


class CoordinatorLog(Protocol):
    """The partitions of a topic that holds a coordinator's records."""

    def partition_count(self) -> int:
        """Return the number of partitions; of a missing topic, the number it would be created with."""

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch = NO_PRODUCER
    ) -> int:
        """Append one batch of (key, value), creating a missing topic first; return the first offset.

        producer: of the transaction, if the records belong to one. Appends all records or none.
        Raises BrokerError (MESSAGE_TOO_LARGE and others), LogError.
        """

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the records of a partition below an offset; their files go with the next check of retention.

        A partition without a leader is unchanged. Raises BrokerError, LogError.
        """

    def replay(self, partition: int | None = None) -> Iterator[TypedRecord]:
        """Yield every record of the topic, or of one partition, in order, transaction markers too. Raises LogError."""


class CoordinatorTopic:
    """The CoordinatorLog of a topic, which is created with the first record.

    decoder: of its records. count: the number of partitions that it would be created with. create_missing: returns a
    topic, created if needed.
    """

    def __init__(
        self,
        name: str,
        decoder: Decoder,
        count: Callable[[], int],
        *,
        topics: TopicRegistry,
        clock: Clock,
        create_missing: Callable[[str], Topic],
    ) -> None:
        self._name, self._decoder, self._count = name, decoder, count
        self._topics, self._clock, self._create_missing = topics, clock, create_missing

    def partition_count(self) -> int:
        """See CoordinatorLog."""
        topic = self._topics.get(self._name)
        return self._count() if topic is None else len(topic.partitions)

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch = NO_PRODUCER
    ) -> int:
        """See CoordinatorLog."""
        topic = self._create_missing(self._name)
        now_ms = self._clock.now_ms()
        builder = BatchBuilder(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,  # Kafka's coordinator numbers records, with a producer or without
            is_transactional=producer != NO_PRODUCER,
        )
        for key, value in records:
            builder.append(key, value, timestamp=now_ms)
        appended = topic.partitions[partition].append(builder.build(), now_ms=now_ms)
        return appended.first_offset

    def delete_before(self, partition: int, offset: int) -> None:
        """See CoordinatorLog."""
        topic = self._topics.get(self._name)
        each = None if topic is None else topic.partitions.get(partition)
        if each is not None and each.log is not None and each.state.leader != NO_LEADER:
            each.log.delete_records(offset)

    def replay(self, partition: int | None = None) -> Iterator[TypedRecord]:
        """See CoordinatorLog."""
        return read_topic(self._topics.get(self._name), self._decoder, partition)


def read_topic(topic: Topic | None, decoder: Decoder, index: int | None = None) -> Iterator[TypedRecord]:
    """Yield every record of a topic, partition by partition; none for a topic that does not exist. Raises LogError.

    index: of the only partition to read; None for all that have a leader.
    """
    for partition in () if topic is None else topic.partitions.values():
        if partition.log is None or index not in (None, partition.index) or partition.state.leader == NO_LEADER:
            continue
        for batch in batches_of(partition.log):
            yield from typed_records(partition.topic.name, partition.index, batch, decoder)


def warn_of_problems(problems: Problems) -> None:
    """Log a warning for each record that could not be applied."""
    for record in problems.records:
        logger.warning("%s-%d, offset %d: %s", record.topic, record.partition, record.offset, record.error)
