"""Partitions and offsets of log directories, as `kafka-log` sees them when it plans a query or a micro-batch.

Planning imports neither numba nor pyarrow.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from kwire.errors import LogError, did_you_mean
from kwire.identifiers import TopicPartition
from kwire.log import PartitionLog
from kwire.log.paths import open_logs
from kwire.spark.log.options import Isolation, LogOptions
from kwire.spark.options.topics import Matching, select
from kwire.spark.streaming.position import Offsets, TopicIds
from kwire.storage.cached_store import StoreCache

__all__ = ["LogBounds", "LogOffsetSource"]

logger = logging.getLogger("kwire.spark")

DELETED = (1 << 63) - 1  # first offset of a partition that no longer exists: all of its records were deleted


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Offsets [earliest, latest) of a log that a query can read under its isolation level."""

    log: PartitionLog
    isolation: Isolation
    earliest: int
    latest: int

    def offset_for_time(self, timestamp_ms: int) -> int | None:
        """First offset with a timestamp at or after timestamp_ms, as Kafka's ListOffsets returns it, or None."""
        found = self.log.offset_for_time(timestamp_ms, isolation=self.isolation)
        return None if found is None else found.offset


class LogOffsetSource:
    """Log directories, as of the last listing. is_stream: a directory without topics is valid."""

    def __init__(self, options: LogOptions, *, is_stream: bool = False) -> None:
        self.options, self.is_stream = options, is_stream
        self._stores = StoreCache()
        self.logs: dict[TopicPartition, PartitionLog] = {}

    def _list(self) -> None:
        self._stores.refresh()
        self.logs = open_logs(self.options.paths, self.options.storage, self._stores.open, is_stream=self.is_stream)

    def partitions(self) -> list[TopicPartition]:
        """List the directories and select partitions. Raises LogError for missing topics and partitions (data loss)."""
        self._list()
        selection, paths = self.options.selection, ", ".join(self.options.paths)
        selected, missing = select(selection, self.logs)
        if missing:
            topics = sorted({topic for topic, _ in self.logs})
            what = (
                f"{', '.join(missing)} not found in {paths}{did_you_mean(missing[0], topics)}; "
                f"available topics: {', '.join(topics)[:500]}"
            )
            if self.options.fail_on_data_loss:
                raise LogError(f"{what}; to read the available data, set failOnDataLoss to false")
            logger.warning("%s", what)
        elif not selected and self.is_stream:
            logger.warning("no topic of this query in %s yet", paths)
        elif not selected and isinstance(selection, Matching):
            if selection.pattern is None:
                raise LogError(f"only internal topics in {paths}; to read them, set includeInternal to true")
            logger.warning("no topic in %s matches subscribePattern", paths)
        return selected

    def bounds(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, LogBounds]:
        """The available offsets of listed partitions."""
        isolation = self.options.isolation
        return {key: LogBounds(self.logs[key], isolation, *self.logs[key].bounds(0, None, isolation)) for key in keys}

    def earliest(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """First available offsets, from a new listing."""
        self._list()
        return {key: self.logs[key].log_start_offset if key in self.logs else DELETED for key in keys}

    def latest(self, keys: Iterable[TopicPartition]) -> Offsets:
        """Log end offsets of listed partitions; with read_committed, last stable offsets."""
        return {key: self.logs[key].bounds(0, None, self.options.isolation)[1] for key in keys}

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Ids in the first partition of each topic; an unreadable `partition.metadata` counts as missing."""
        wanted, found, firsts = set(topics), TopicIds(), dict[str, PartitionLog]()
        for (topic, _), log in sorted(self.logs.items()):
            if topic in wanted:
                firsts.setdefault(topic, log)
        for topic, log in firsts.items():
            try:
                topic_id = log.topic_id
            except LogError as error:
                logger.warning("%s; deletion and recreation of topic '%s' will not be detected", error, topic)
                continue
            if topic_id is not None:
                found[topic] = topic_id
        return found

    def close(self) -> None:
        """Do nothing: no files stay open."""
