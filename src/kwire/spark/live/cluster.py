"""A cluster as queries see it: which partitions there are, and their first and last offsets. Standard library only."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kwire.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client, Topic
from kwire.errors import BrokerError, LogError
from kwire.protocol.error_codes import ErrorCode
from kwire.spark.live.options import LiveOptions
from kwire.spark.options.offsets import OffsetRange, check_named, resolve
from kwire.spark.options.topics import Assign, Matching, Subscribe, TopicPartition, nearest, select
from kwire.spark.streaming.position import TopicIds

__all__ = ["LiveCluster"]

logger = logging.getLogger("kwire.spark")

GONE = (1 << 63) - 1  # as the first offset of a partition that is not there any more: all of it was deleted


def find_topic(client: Client, name: str) -> Topic:
    """A topic that is to be written. Raises BrokerError, ConnectionFailed."""
    found = client.metadata([name]).topics.get(name)
    if found is None or found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        hint = nearest(name, client.metadata().topics)
        raise BrokerError(f"topic {name!r} does not exist{hint}; create it first", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if found.error_code:
        raise BrokerError(f"topic {name!r}: {found.error_code.name}", found.error_code)
    return found


@dataclass(frozen=True, slots=True)
class LiveBounds:
    """What a query can see of a partition: offsets [earliest, latest) under its isolation level."""

    cluster: LiveCluster
    key: TopicPartition
    earliest: int
    latest: int

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        """First offset with a timestamp at or after timestamp_ms; None where there is none below latest."""
        found = self.cluster.offsets_at({self.key: timestamp_ms})[self.key]
        return found if 0 <= found < self.latest else None


class LiveCluster:
    """Answers for one query. options: its own; opens connections when it is asked something."""

    def __init__(self, options: LiveOptions) -> None:
        self.options = options
        self.client = Client(**options.kafka)
        self._ids: TopicIds = {}

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def _topics(self, names: list[str] | None) -> Mapping[str, Topic]:
        topics = self.client.metadata(names).topics
        self._ids = {name: topic.topic_id for name, topic in topics.items() if topic.topic_id is not None}
        return topics

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Ids of topics, as the last call of partitions, start or earliest saw them; none before Kafka 2.8."""
        return {topic: self._ids[topic] for topic in topics if topic in self._ids}

    def offsets_at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """An offset for each partition, as ListOffsets answers under the query's isolation level; -1 without one."""
        found = self.client.list_offsets(timestamps, isolation=self.options.isolation)
        return {key: answer.offset for key, answer in found.items()}

    def earliest(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """First offsets there are; GONE for partitions that are not there."""
        wanted = list(keys)
        topics = self._topics(sorted({topic for topic, _ in wanted}))
        there = {(name, number) for name, topic in topics.items() for number in topic.partitions}
        found = dict.fromkeys(wanted, GONE)
        return found | self.offsets_at(dict.fromkeys([key for key in wanted if key in there], EARLIEST_TIMESTAMP))

    def latest(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets behind the last ones there are."""
        return self.offsets_at(dict.fromkeys(keys, LATEST_TIMESTAMP))

    def partitions(self) -> list[TopicPartition]:
        """The partitions that the query reads, as they are now.

        What the options name and is not there is data loss. Raises LogError, BrokerError, ConnectionFailed.
        """
        selection = self.options.selection
        match selection:
            case Assign(chosen):
                names: list[str] | None = sorted({topic for topic, _ in chosen})
            case Subscribe(topics):
                names = sorted(topics)
            case Matching():
                names = None
        topics_there = self._topics(names)
        for topic in topics_there.values():
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) and names is not None:
                raise BrokerError(f"topic {topic.name!r}: {topic.error_code.name}", topic.error_code)
        available = [(name, number) for name, topic in topics_there.items() for number in topic.partitions]
        found, missing = select(selection, available)
        if missing:
            hint = nearest(missing[0], self.client.metadata().topics)
            what = f"{', '.join(missing)} not found in this cluster{hint}"
            if self.options.fail_on_data_loss:
                raise LogError(f"{what}; to read what is there, set the option failOnDataLoss to false")
            logger.warning("%s", what)
        return found

    def start(self) -> list[OffsetRange]:
        """For each partition now: where the query starts, and where its end option says that it ends.

        Raises OptionError, LogError as resolve does.
        """
        options = self.options
        chosen = self.partitions()
        check_named("starting", options.start, chosen)
        check_named("ending", options.end, chosen)
        first, last = self.earliest(chosen), self.latest(chosen)
        return [
            resolve(
                key,
                options.start,
                options.end,
                LiveBounds(self, key, first[key], last[key]),
                no_match=options.no_match,
                fail_on_data_loss=options.fail_on_data_loss,
                report=lambda lost: logger.warning("%s", lost),
            )
            for key in chosen
        ]
