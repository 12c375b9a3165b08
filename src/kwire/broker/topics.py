"""The topics that exist: names, ids, partitions, settings. What changes them writes it to the metadata log first.

A partition's log is opened by the log manager; whoever appends to it or reads it takes `Partition.log`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from kwire.internal_topics.names import COORDINATOR_TOPICS
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records.append_settings import AppendOrigin

if TYPE_CHECKING:
    from kwire.log.partition_writer import Appended, PartitionWriter, Prepared

__all__ = ["Partition", "Topic", "TopicRegistry", "check_name"]

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
MAX_NAME = 249


@dataclass(slots=True, kw_only=True, eq=False)
class Partition:
    """One partition.

    leader, leader_epoch, partition_epoch: as the metadata log has them; leader is -1 while there is none.
    log: None until it is open. watchers: called after every append, by those who wait for records.
    """

    topic: Topic
    index: int
    leader: int = -1
    leader_epoch: int = 0
    partition_epoch: int = 0
    log: PartitionWriter | None = None
    watchers: set[Callable[[], object]] = field(default_factory=set)

    @property
    def name(self) -> str:
        """topic-index, as errors and directories have it."""
        return f"{self.topic.name}-{self.index}"

    @property
    def opened(self) -> PartitionWriter:
        """Its log.

        Raises BrokerError: UNKNOWN_TOPIC_OR_PARTITION when the topic was deleted meanwhile, KAFKA_STORAGE_ERROR when
        the log could not be opened.
        """
        if self.log is None:
            if self.topic.is_deleted:
                raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {self.topic.name} was deleted")
            raise refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {self.name} is not open")
        return self.log

    def append(
        self,
        data: bytes | bytearray | memoryview,
        *,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int | None = None,
    ) -> Appended:
        """Append records; what is appended counts as replicated, so consumers get it at once.

        produce_version: of the request that brought them. Raises BrokerError, RejectedRecords: nothing is appended.
        """
        log = self.opened
        appended = log.append(
            data, now_ms=now_ms, leader_epoch=self.leader_epoch, origin=origin, produce_version=produce_version
        )
        self._grown(log)
        return appended

    def append_prepared(self, prepared: Prepared) -> Appended:
        """Append records that PartitionWriter.prepare has checked; see append."""
        log = self.opened
        appended = log.append_prepared(prepared)
        self._grown(log)
        return appended

    def append_marker(
        self, producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int, now_ms: int
    ) -> Appended:
        """End a producer's transaction here. Raises BrokerError."""
        log = self.opened
        appended = log.append_marker(
            producer_id,
            producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            now_ms=now_ms,
            leader_epoch=self.leader_epoch,
        )
        self._grown(log)
        return appended

    def _grown(self, log: PartitionWriter) -> None:
        log.high_watermark = log.log_end_offset
        if self.watchers:
            for watcher in tuple(self.watchers):
                watcher()


@dataclass(slots=True, kw_only=True, eq=False)
class Topic:
    """One topic. configs: its own settings, Kafka's dotted names to text; partitions: by index.

    is_deleted: its logs have gone; whoever still waits for it has to be told.
    """

    name: str
    topic_id: UUID
    configs: dict[str, str] = field(default_factory=dict)
    partitions: dict[int, Partition] = field(default_factory=dict)
    is_deleted: bool = False

    @property
    def is_internal(self) -> bool:
        """Whether the broker keeps its own state there."""
        return self.name in COORDINATOR_TOPICS


class TopicRegistry:
    """All topics, by name and by id. Iterates over them in order of their names."""

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}

    def __iter__(self) -> Iterator[Topic]:
        return iter([self._by_name[name] for name in sorted(self._by_name)])

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str) -> Topic | None:
        """The topic of that name."""
        return self._by_name.get(name)

    def with_id(self, topic_id: UUID) -> Topic | None:
        """The topic of that id."""
        return self._by_id.get(topic_id)

    def partition(self, name: str, index: int) -> Partition | None:
        """The partition, None where there is none."""
        topic = self._by_name.get(name)
        return None if topic is None else topic.partitions.get(index)

    def add(self, topic: Topic) -> None:
        """Take a topic in."""
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic

    def remove(self, topic: Topic) -> None:
        """Forget a topic."""
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]


def check_name(name: str) -> None:
    """Refuse what Kafka does not take as a topic's name. Source: org.apache.kafka.common.internals.Topic.validate.

    Raises BrokerError: INVALID_TOPIC_EXCEPTION.
    """
    what = None
    if not name:
        what = "the empty string is not allowed"
    elif name in {".", ".."}:
        what = "'.' or '..' is not allowed"
    elif len(name) > MAX_NAME:
        what = f"the length of '{name}' is longer than the max allowed length {MAX_NAME}"
    elif not LEGAL_NAME.fullmatch(name):
        what = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if what is not None:
        raise refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {what}")
