"""Plan the tasks of a query on a running cluster: its partitions and offsets, and the ranges of tasks.

Does not import pyarrow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from kwire.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client, Topic
from kwire.errors import BrokerError, did_you_mean
from kwire.identifiers import TopicPartition
from kwire.protocol.error_codes import ErrorCode
from kwire.spark.live.options import LiveOptions
from kwire.spark.offsets import (
    DELETED,
    GlobalTimestamp,
    OffsetRange,
    SpecificTimestamps,
    cut_ranges,
    report_data_loss,
    resolve_ranges,
)
from kwire.spark.options.query import Assign, Matching, Subscribe, select
from kwire.spark.packing import CORES
from kwire.spark.streaming.position import TopicIds

__all__ = ["LiveBounds", "LiveCluster", "LivePartition", "find_topic", "plan_batch", "plan_tasks"]


ONE_EACH = CORES
"""Number of ranges up to which each is a task: its rows may take the query much longer than reading them."""


def find_topic(client: Client, name: str) -> Topic:
    """Look up a topic to write to. Raises BrokerError, ConnectionFailed."""
    described = client.metadata([name]).topics.get(name)
    if described is None or described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        hint = did_you_mean(name, client.metadata().topics)
        raise BrokerError(f"topic {name!r} does not exist{hint}; create it first", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if described.error_code:
        raise BrokerError(f"topic {name!r}: {described.error_code.name}", described.error_code)
    return described


@dataclass(frozen=True)
class LivePartition(InputPartition):
    """The input of one task: offsets of a partition, or of several, once each. topic_ids: those that are known."""

    ranges: Sequence[OffsetRange]
    topic_ids: TopicIds


def plan_batch(options: LiveOptions) -> list[LivePartition]:
    """Plan the tasks of a batch query. Raises OptionError, LogError, BrokerError, ConnectionFailed."""
    cluster = LiveCluster(options)
    try:
        return plan_tasks(resolve_ranges(cluster.bounds(), options), options, cluster)
    finally:
        cluster.close()


def plan_tasks(ranges: Sequence[OffsetRange], options: LiveOptions, cluster: LiveCluster) -> list[LivePartition]:
    """Plan the tasks of ranges, by offsets and options only.

    Up to ONE_EACH parts are a task each, as in Spark's connector; more of them share tasks by their number of offsets.
    """
    topic_ids = cluster.topic_ids({each.topic for each in ranges})
    parts = cut_ranges(ranges, options.min_partitions, options.max_records)
    is_packed = options.task_sizes.is_set or (len(parts) > ONE_EACH and not options.is_cut)
    tasks = options.task_sizes.pack_offsets(parts) if is_packed else [[part] for part in parts]
    return [
        LivePartition(task, {each.topic: topic_ids[each.topic] for each in task if each.topic in topic_ids})
        for task in tasks
    ]


@dataclass(frozen=True, slots=True)
class LiveBounds:
    """Offsets [earliest, latest) of a partition that a query can read under its isolation level."""

    cluster: LiveCluster
    key: TopicPartition
    earliest: int
    latest: int

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        """Return the first offset below latest with a timestamp at or after timestamp_ms, or None."""
        offset = self.cluster.offset_for_time(self.key, timestamp_ms)
        return offset if 0 <= offset < self.latest else None


class LiveCluster:
    """The offset source of one query. Connects on first use."""

    def __init__(self, options: LiveOptions) -> None:
        self.options = options
        self.client = Client(**options.kafka)
        self._ids: TopicIds = {}
        self._times: dict[tuple[TopicPartition, int], int] = {}

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def _topics(self, names: list[str] | None) -> Mapping[str, Topic]:
        """Look up topics by name, or all that are visible. Raises BrokerError for a named one that is not readable."""
        topics = self.client.metadata(names).topics
        for topic in topics.values():
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) and names is not None:
                raise BrokerError(f"topic {topic.name!r}: {topic.error_code.name}", topic.error_code)
        self._ids = {name: topic.topic_id for name, topic in topics.items() if topic.topic_id is not None}
        return topics

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Return the ids of topics, as of the last call of partitions, bounds or earliest; none before Kafka 2.8."""
        return {topic: self._ids[topic] for topic in topics if topic in self._ids}

    def list_offsets(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offsets from ListOffsets under the query's isolation level; -1 for none."""
        offsets = self.client.list_offsets(timestamps, isolation=self.options.isolation)
        return {key: listed.offset for key, listed in offsets.items()}

    def offset_for_time(self, key: TopicPartition, timestamp_ms: int) -> int:
        """Return the first offset with a timestamp at or after timestamp_ms; -1 for none."""
        offset = self._times.get((key, timestamp_ms))
        return self.list_offsets({key: timestamp_ms})[key] if offset is None else offset

    def _look_up_times(self, keys: Collection[TopicPartition]) -> None:
        """Look up the timestamps of the options, for all partitions in one request to each leader."""
        self._times = {}
        for limit in (self.options.start, self.options.end):
            match limit:
                case GlobalTimestamp(timestamp_ms):
                    wanted = dict.fromkeys(keys, timestamp_ms)
                case SpecificTimestamps(timestamps) if timestamps.keys() == set(keys):
                    wanted = {key: timestamps[key] for key in keys if timestamps[key] >= 0}
                case _:
                    continue
            self._times |= {(key, wanted[key]): offset for key, offset in self.list_offsets(wanted).items()}

    def partitions(self) -> list[TopicPartition]:
        """Select partitions from the cluster's metadata.

        Missing topics and partitions are data loss. Raises LogError, BrokerError, ConnectionFailed.
        """
        selection = self.options.selection
        match selection:
            case Assign(assigned):
                names: list[str] | None = sorted({topic for topic, _ in assigned})
            case Subscribe(topics):
                names = sorted(topics)
            case Matching():
                names = None
        described = self._topics(names)
        available = [(name, number) for name, topic in described.items() for number in topic.partitions]
        selected, missing = select(selection, available)
        if missing:
            hint = did_you_mean(missing[0], self.client.metadata().topics)
            lost = f"{', '.join(missing)} not found in this cluster{hint}"
            report_data_loss(lost, "read the available data", fail=self.options.fail_on_data_loss)
        return selected

    def bounds(self) -> dict[TopicPartition, LiveBounds]:
        """Return the available offsets of the query's partitions. Raises the errors of partitions."""
        keys = self.partitions()
        first, last = self.earliest(keys), self.latest(keys)
        self._look_up_times(keys)
        return {key: LiveBounds(self, key, first[key], last[key]) for key in keys}

    def earliest(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first available offsets; DELETED for partitions that do not exist."""
        wanted = list(keys)
        topics = self._topics(sorted({topic for topic, _ in wanted}))
        existing = {(name, number) for name, topic in topics.items() for number in topic.partitions}
        offsets = dict.fromkeys(wanted, DELETED)
        return offsets | self.list_offsets(
            dict.fromkeys([key for key in wanted if key in existing], EARLIEST_TIMESTAMP)
        )

    def latest(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the last available offsets + 1."""
        return self.list_offsets(dict.fromkeys(keys, LATEST_TIMESTAMP))
