"""The topics of the cluster with their logs. Changes are written to the metadata log first."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from kwire.internal_topics.cluster_state import NO_LEADER, ClusterState
from kwire.internal_topics.cluster_state import Partition as PartitionState
from kwire.internal_topics.cluster_state import Topic as TopicState
from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.names import COORDINATOR_TOPICS
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records.append.settings import AppendOrigin

if TYPE_CHECKING:
    from kwire.log.writing.partition_writer import Appended, PartitionWriter
    from kwire.messages import PartitionRecord, RemoveTopicRecord, TopicRecord

__all__ = ["Partition", "Topic", "TopicRegistry", "check_name"]

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
MAX_NAME = 249
NO_EPOCH = -1


@dataclass(slots=True, kw_only=True, eq=False)
class Partition:
    """A partition with its log.

    log: None until it is open. watchers: called after every append, and when the topic is deleted.
    """

    topic: Topic
    index: int
    log: PartitionWriter | None = None
    watchers: set[Callable[[], object]] = field(default_factory=set)

    @property
    def state(self) -> PartitionState:
        """The partition in the cluster's state."""
        return self.topic.state.partitions[self.index]

    @property
    def leader_epoch(self) -> int:
        """Number of leader changes."""
        return self.state.leader_epoch

    @property
    def name(self) -> str:
        """Name of the partition, `topic-index`, as in directory names."""
        return f"{self.topic.name}-{self.index}"

    @property
    def opened(self) -> PartitionWriter:
        """The open log.

        Raises BrokerError: UNKNOWN_TOPIC_OR_PARTITION if the topic was deleted, NOT_LEADER_OR_FOLLOWER while its logs
        are created, KAFKA_STORAGE_ERROR if the log could not be opened.
        """
        if self.log is None:
            if self.topic.is_deleted:
                raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{self.topic.name}' was deleted")
            if self.topic.is_opening:
                raise refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"log {self.name} is being created")
            raise refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"log {self.name} is not open")
        return self.log

    def at(self, node_id: int, current_epoch: int = NO_EPOCH, *, may_follow: bool = False) -> PartitionWriter:
        """Return the open log to a node that leads the partition or, with may_follow, has a replica.

        current_epoch: the leader epoch that a client knows, NO_EPOCH without. Raises BrokerError as `opened` does, and
        NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
        Source: kafka.cluster.Partition.localLogWithEpochOrThrow 3.9.1.
        """
        log, state = self.opened, self.state
        if state.leader != node_id and node_id not in state.replicas:
            raise refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"node {node_id} has no replica of {self.name}")
        if current_epoch >= 0 and current_epoch != state.leader_epoch:
            older = current_epoch < state.leader_epoch
            raise refusal(
                ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"{self.name} has leader epoch {state.leader_epoch}, not {current_epoch}",
            )
        if state.leader != node_id and not may_follow:
            raise refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"node {node_id} is not the leader of {self.name}")
        return log

    def attach(self, log: PartitionWriter) -> None:
        """Open the log; its leader, if there is one, begins its epoch."""
        if self.state.leader != NO_LEADER:
            log.begin_leader_epoch(self.leader_epoch)
        self.log = log

    def append(self, data: bytes, *, now_ms: int) -> Appended:
        """Append records of the broker itself. Raises BrokerError or LogError if nothing is appended."""
        log, state = self.opened, self.state
        if state.leader == NO_LEADER:
            raise refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} has no leader")
        if len(state.isr) < min(log.config.min_insync_replicas, len(state.replicas)):
            what = (
                f"{self.name} has {len(state.isr)} in-sync replicas of {log.config.min_insync_replicas} required ones"
            )
            raise refusal(ErrorCode.NOT_ENOUGH_REPLICAS, what)
        appended = log.append(data, now_ms=now_ms, leader_epoch=self.leader_epoch, origin=AppendOrigin.COORDINATOR)
        self.notify()
        return appended

    def notify(self) -> None:
        """Call the watchers, after an append or the deletion of the topic."""
        for watcher in tuple(self.watchers):
            watcher()


@dataclass(slots=True, kw_only=True, eq=False)
class Topic:
    """A topic with its partitions by number.

    state: the topic in the cluster's state. is_deleted: its logs are closed; waiting requests fail. is_opening: its
    logs are being created.
    """

    state: TopicState
    cluster: ClusterState
    partitions: dict[int, Partition] = field(default_factory=dict)
    is_deleted: bool = False
    is_opening: bool = False

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.state.name

    @property
    def topic_id(self) -> UUID:
        """The topic's id."""
        return self.state.topic_id

    @property
    def configs(self) -> Mapping[str, str]:
        """The topic's own configs: Kafka's dotted names to text."""
        return self.cluster.configs_of(ConfigResource.TOPIC, self.name)

    @property
    def is_internal(self) -> bool:
        """Whether the topic holds state of a coordinator."""
        return self.name in COORDINATOR_TOPICS


class TopicRegistry:
    """All topics of a cluster, by name and by id. Iteration is in order of names.

    observers: called with a topic and True for a new partition, False for its deletion.
    """

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._by_metric: defaultdict[str, dict[str, Topic]] = defaultdict(dict)  # metric_name(name), then name
        self.observers: list[Callable[[Topic, bool], object]] = []
        cluster.observe("TopicRecord", self._topic_created)
        cluster.observe("PartitionRecord", self._partition_created)
        cluster.observe("RemoveTopicRecord", self._topic_removed)

    def __iter__(self) -> Iterator[Topic]:
        return iter([self._by_name[name] for name in sorted(self._by_name)])

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str) -> Topic | None:
        """Return a topic by its name."""
        return self._by_name.get(name)

    def with_id(self, topic_id: UUID) -> Topic | None:
        """Return a topic by its id."""
        return self._by_id.get(topic_id)

    def colliding(self, name: str) -> Topic | None:
        """Return a topic whose name differs from this one in dots and underscores only."""
        return next(iter(self._by_metric.get(metric_name(name), {}).values()), None)

    def partitions(self) -> Iterator[Partition]:
        """Iterate over all partitions, in no particular order."""
        for topic in self._by_name.values():
            yield from topic.partitions.values()

    def partition(self, name: str, index: int) -> Partition | None:
        """Return a partition; None for one that does not exist."""
        topic = self._by_name.get(name)
        return None if topic is None else topic.partitions.get(index)

    def _topic_created(self, record: TopicRecord) -> None:
        topic = Topic(state=self._cluster.topics[record.name], cluster=self._cluster)
        self._by_name[topic.name] = self._by_id[topic.topic_id] = topic
        self._by_metric[metric_name(topic.name)][topic.name] = topic

    def _partition_created(self, record: PartitionRecord) -> None:
        topic = self._by_id[record.topic_id]
        topic.partitions[record.partition_id] = Partition(topic=topic, index=record.partition_id)
        self._notify(topic, exists=True)

    def _topic_removed(self, record: RemoveTopicRecord) -> None:
        topic = self._by_id.pop(record.topic_id)
        del self._by_name[topic.name]
        same = self._by_metric[metric_name(topic.name)]
        del same[topic.name]
        if not same:
            del self._by_metric[metric_name(topic.name)]
        self._notify(topic, exists=False)

    def _notify(self, topic: Topic, *, exists: bool) -> None:
        for observer in self.observers:
            observer(topic, exists)


def metric_name(name: str) -> str:
    """Return a topic's name as Kafka's metrics show it."""
    return name.replace(".", "_")


def check_name(name: str) -> None:
    """Validate a topic name. Raises BrokerError: INVALID_TOPIC_EXCEPTION.

    Source: org.apache.kafka.common.internals.Topic.validate.
    """
    what = None
    if not name:
        what = "the empty string is not allowed"
    elif name in {".", ".."}:
        what = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME:
        what = f"the length of '{name}' is longer than the max allowed length {MAX_NAME}"
    elif not LEGAL_NAME.fullmatch(name):
        what = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if what is not None:
        raise refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {what}")
