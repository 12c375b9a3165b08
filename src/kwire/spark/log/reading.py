"""The tasks of `kafka-log`: what one task reads, and its rows as Arrow batches."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from kwire.errors import LogError, Malformed, MissingOffsets
from kwire.identifiers import MAX_OFFSET
from kwire.log.reading.splits import Split, SplitReader, SplitRun
from kwire.spark.log.options import LogOptions
from kwire.spark.offsets import report_data_loss
from kwire.spark.process.worker import finish_rows, warm_up
from kwire.storage.checkpoints import PARTITION_METADATA, parse_partition_metadata
from kwire.storage.open_store import open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.spark.streaming.position import TopicIds

__all__ = ["LogPartition", "read_partition"]

logger = logging.getLogger("kwire.spark")


@dataclass(frozen=True)
class LogPartition(InputPartition):
    """The input of one task: runs of splits, in the order of topics, partitions and offsets.

    topic_ids: ids that the topics had when the task was planned; {} to skip the check.
    """

    runs: Sequence[SplitRun]
    topic_ids: TopicIds = field(default_factory=dict)

    @property
    def splits(self) -> Iterator[Split]:
        """The splits of all runs."""
        return (split for run in self.runs for split in run.splits())


def read_partition(
    partition: InputPartition, columns: tuple[str, ...], options: LogOptions
) -> Iterator[pa.RecordBatch]:
    """Read the rows of one task; called in a worker.

    Deleted files, missing segments, and topics that were created again, are data loss: LogError, or a warning with
    failOnDataLoss false.
    Raises CorruptBatch in mode FAILFAST.
    """
    if not isinstance(partition, LogPartition):
        return iter(())  # Spark's placeholder for a query without tasks: InputPartition(None)
    warm_up()
    return finish_rows(lambda names: _read_splits(partition, names, options), columns, options.decoded)


def _read_splits(partition: LogPartition, columns: tuple[str, ...], options: LogOptions) -> Iterator[pa.RecordBatch]:
    fail = options.fail_on_data_loss
    reader = SplitReader(columns, mode=options.mode, check_crc=options.check_crc, skip_missing=not fail)
    found_ids: dict[tuple[str, str], uuid.UUID | None] = {}
    for split in partition.splits:
        expected, directory = partition.topic_ids.get(split.topic), (split.store_url, split.log_directory)
        if expected is not None and directory not in found_ids:
            found_ids[directory] = _topic_id(split)
        if expected is not None and found_ids[directory] not in (None, expected):
            lost = (
                f"{split.url}: topic '{split.topic}' was deleted and created again after this task was planned; "
                f"{_offsets_of(split)} belong to the deleted topic"
            )
            report_data_loss(lost, "skip them", fail=fail)
            continue
        try:
            yield from reader.read(split)
        except MissingOffsets as error:
            raise MissingOffsets(f"{error.what}; to skip them, set failOnDataLoss to false", error.file) from None
        except LogError as error:
            if fail or not isinstance(error.__cause__, FileNotFoundError):
                raise
            logger.warning("%s; skipping %s", error, _offsets_of(split))


def _offsets_of(split: Split) -> str:
    """Return the offsets of a split for messages; it may end where its log does."""
    end = split.end_offset if split.next_base is None else min(split.end_offset, split.next_base)
    return f"offsets from {split.start_offset}" if end == MAX_OFFSET else f"offsets [{split.start_offset}, {end})"


def _topic_id(split: Split) -> uuid.UUID | None:
    """Return the topic id in the partition's directory, or None if it cannot be read."""
    path = f"{split.log_directory}/{PARTITION_METADATA}" if split.log_directory else PARTITION_METADATA
    try:
        return parse_partition_metadata(open_store(split.store_url, split.storage_options).read_all(path))
    except (LogError, Malformed):
        return None
