"""`kafka-log` as a stream: what a broker, or a copy, adds to a log directory, as it comes.

Nothing tells of new records: each micro-batch lists the directory anew and looks at the end of each active segment. A
batch that is not whole yet is not there yet.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from kwire.errors import LogError
from kwire.log import PartitionLog, plan_splits
from kwire.spark.log.options import LogOptions
from kwire.spark.log.planning import choose_partitions, resolve_range
from kwire.spark.log.source import LogPartition, read_partition
from kwire.spark.options.offsets import OffsetRange, check_named, cut_ranges
from kwire.spark.options.topics import TopicPartition
from kwire.spark.paths import open_logs
from kwire.spark.streaming.position import Offsets, TopicIds
from kwire.spark.streaming.reader import LogStream
from kwire.storage.cached_store import StoreCache

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LogPlaces", "LogStreamReader"]

logger = logging.getLogger("kwire.spark")

TASK_OFFSETS = 100_000  # that a task reads; short ranges share one up to here
SHARED_RANGES = 32
GONE = (1 << 63) - 1  # as the first offset of a partition that is not there any more: all of it was deleted


class LogPlaces:
    """Partitions and offsets of log directories, as the listing of the last question showed them."""

    def __init__(self, options: LogOptions) -> None:
        self.options = options
        self._stores = StoreCache()
        self.logs: dict[TopicPartition, PartitionLog] = {}

    def _look(self) -> None:
        self._stores.refresh()
        self.logs = open_logs(self.options.paths, self.options.storage, self._stores.open, is_stream=True)

    def partitions(self) -> list[TopicPartition]:
        """The partitions that the query reads; what the options name and is not there is data loss: LogError."""
        self._look()
        return choose_partitions(self.options, self.logs)

    def start(self) -> list[OffsetRange]:
        """Where a query without a checkpoint starts. Raises OptionError, LogError."""
        chosen = self.partitions()
        if not chosen:
            logger.warning("none of the topics of this query is in %s yet", ", ".join(self.options.paths))
        check_named("starting", self.options.start, chosen)
        return [resolve_range(key, self.logs[key], self.options) for key in chosen]

    def earliest(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """First offsets there are."""
        self._look()
        return {key: self.logs[key].log_start_offset if key in self.logs else GONE for key in keys}

    def latest(self, keys: Iterable[TopicPartition]) -> Offsets:
        """Offsets behind the last records, or for read_committed behind what is stable. keys: of partitions()."""
        return {key: self.logs[key].bounds(0, None, self.options.isolation)[1] for key in keys}

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Ids in the first partition of each topic; a `partition.metadata` that cannot be read counts as missing."""
        wanted, found, firsts = set(topics), TopicIds(), dict[str, PartitionLog]()
        for (topic, _), log in sorted(self.logs.items()):
            if topic in wanted:
                firsts.setdefault(topic, log)
        for topic, log in firsts.items():
            try:
                topic_id = log.topic_id
            except LogError as error:
                logger.warning("%s; if topic '%s' is deleted and created again, that will not be noticed", error, topic)
                continue
            if topic_id is not None:
                found[topic] = topic_id
        return found

    def close(self) -> None:
        """Nothing is held."""


class LogStreamReader(LogStream[LogPlaces]):
    """Plans and reads the micro-batches of one streaming query."""

    source = "kafka-log"
    options: LogOptions

    def open(self) -> LogPlaces:
        """The log directories."""
        return LogPlaces(self.options)

    def tasks(self, ranges: Sequence[OffsetRange]) -> list[LogPartition]:
        """The tasks of one micro-batch, over what was listed when its bounds were checked."""
        topic_ids = self.places.topic_ids({each.topic for each in ranges})
        return tasks_by_offsets(ranges, self.places.logs, self.options, topic_ids)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task as Arrow batches; called in a worker. Raises CorruptBatch, LogError."""
        return read_partition(partition, self.columns, self.options)


def tasks_by_offsets(
    ranges: Sequence[OffsetRange],
    logs: Mapping[TopicPartition, PartitionLog],
    options: LogOptions,
    topic_ids: TopicIds,
) -> list[LogPartition]:
    """Tasks that depend on nothing but the offsets and the options. topic_ids: checked again by each task.

    Files do not stay as they are: segments are compacted and joined, indexes are built again after a crash. A sink that
    was killed in the middle of a micro-batch gets the same rows in the same tasks all the same; a task without a file
    is one nevertheless. Raises LogError.
    """
    is_as_asked = options.min_partitions is not None or options.max_records is not None
    pieces = cut_ranges(ranges, options.min_partitions, options.max_records if is_as_asked else TASK_OFFSETS)
    tasks: list[list[OffsetRange]] = []
    room = 0
    for piece in pieces:
        if tasks and not is_as_asked and piece.size <= room and len(tasks[-1]) < SHARED_RANGES:
            tasks[-1].append(piece)
            room -= piece.size
        else:
            tasks.append([piece])
            room = TASK_OFFSETS - piece.size
    return [
        LogPartition(
            [
                split
                for key, start, end in (((each.topic, each.partition), each.start, each.end) for each in task)
                for split in plan_splits(logs[key], ranges={key: (start, end)}, isolation=options.isolation)
            ],
            topic_ids,
        )
        for task in tasks
    ]
