"""`kafka-log` as a stream: records that a broker, or a copy of its files, appends to a log directory.

Each micro-batch lists the directory again and reads the end of each active segment. An incomplete batch at that end is
left for a later micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from kwire.spark.log.options import LogOptions
from kwire.spark.log.planning import LogOffsetSource, plan_micro_batch
from kwire.spark.log.reading import LogPartition, read_partition
from kwire.spark.offsets import OffsetRange
from kwire.spark.plain_errors import plain_errors
from kwire.spark.streaming.reader import OffsetStreamReader

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LogStreamReader"]


@plain_errors
class LogStreamReader(OffsetStreamReader[LogOffsetSource]):
    """Plans and reads the micro-batches of one streaming query."""

    format_name = "kafka-log"
    options: LogOptions

    def open_offset_source(self) -> LogOffsetSource:
        """Open the log directories."""
        return LogOffsetSource(self.options, is_stream=True)

    def plan_tasks(self, ranges: Sequence[OffsetRange]) -> list[LogPartition]:
        """Plan one micro-batch, from the listing that its offsets were checked against."""
        source = self.offset_source
        return plan_micro_batch(ranges, source.logs, self.options, source.topic_ids({each.topic for each in ranges}))

    def rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task; called in a worker. Raises CorruptBatch, LogError."""
        return read_partition(partition, self.columns, self.options)
