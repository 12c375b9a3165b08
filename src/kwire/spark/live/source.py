"""The data source `kafka-live`: topics of a running cluster, without a JAR, in batch and streaming queries.

The option names, columns and offset semantics are those of Spark's own Kafka source, so a query that has a checkpoint
reads every record once, whatever is killed meanwhile. Planning imports neither numba nor pyarrow. docs/live.md.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kwire.errors import KwireError, OptionError
from kwire.spark.columns import choose_columns, columns_of_schema, render_ddl
from kwire.spark.live.options import LiveOptions, parse_options
from kwire.spark.options.given import asked_options
from kwire.spark.options.offsets import OffsetRange, cut_ranges
from kwire.spark.streaming.reader import LogStream, RefusedStream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kwire.spark.live.cluster import LiveCluster
    from kwire.spark.live.sink import LiveStreamWriter, LiveWriter
    from kwire.spark.live.write_options import LiveWriteOptions

__all__ = ["KafkaLiveSource", "LivePartition", "LiveReader", "LiveStreamReader"]

logger = logging.getLogger("kwire.spark")


class LivePartition(InputPartition):
    """What one Spark task reads: some offsets of one partition. topic_id: None where it is not known."""

    def __init__(self, wanted: OffsetRange, topic_id: uuid.UUID | None) -> None:
        self.wanted, self.topic_id = wanted, topic_id


def split_ranges(ranges: Sequence[OffsetRange], options: LiveOptions, cluster: LiveCluster) -> list[LivePartition]:
    """The tasks for some ranges: minPartitions and maxRecordsPerPartition cut them up."""
    topic_ids = cluster.topic_ids({each.topic for each in ranges})
    pieces = cut_ranges(ranges, options.min_partitions, options.max_records)
    return [LivePartition(each, topic_ids.get(each.topic)) for each in pieces]


def read_partition(
    partition: InputPartition, columns: tuple[str, ...], options: LiveOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of one task; called in a worker."""
    if not isinstance(partition, LivePartition):
        return iter(())  # Spark's stand-in where there is nothing to read
    from kwire.spark.live.reading import read_range

    return read_range(
        partition.wanted,
        columns,
        options.kafka,
        options.isolation,
        fail_on_data_loss=options.fail_on_data_loss,
        topic_id=partition.topic_id,
    )


class LiveReader(DataSourceReader):
    """Plans and reads one batch query."""

    def __init__(self, options: LiveOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns

    def partitions(self) -> list[LivePartition]:
        """The tasks of the query. Raises OptionError, LogError, BrokerError, ConnectionFailed."""
        from kwire.spark.live.cluster import LiveCluster

        if self.options.limits.max_offsets is not None:
            logger.warning("maxOffsetsPerTrigger option ignored in batch queries")
        cluster = LiveCluster(self.options)
        try:
            return split_ranges([found for found in cluster.start() if found.size], self.options, cluster)
        finally:
            cluster.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task as Arrow batches. Raises as read_range does."""
        return read_partition(partition, self.columns, self.options)


class LiveStreamReader(LogStream["LiveCluster"]):
    """Plans and reads the micro-batches of one streaming query."""

    source = "kafka-live"
    options: LiveOptions

    def open(self) -> LiveCluster:
        """Connections of the driver's side."""
        from kwire.spark.live.cluster import LiveCluster

        return LiveCluster(self.options)

    def tasks(self, ranges: Sequence[OffsetRange]) -> list[LivePartition]:
        """The tasks of one micro-batch."""
        return split_ranges(ranges, self.options, self.places)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task as Arrow batches. Raises as read_range does."""
        return read_partition(partition, self.columns, self.options)


class KafkaLiveSource(DataSource):
    """`spark.read`, `readStream`, `write` and `writeStream` with format("kafka-live"); docs/live.md."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kafka-live"

    def schema(self) -> str:
        """The columns that the options choose, as DDL. Raises OptionError."""
        return render_ddl(choose_columns(parse_options(self.options, "any")), self.options)

    def reader(self, schema: StructType) -> LiveReader:
        """A reader for a batch query. Raises OptionError."""
        options = parse_options(asked_options(self.options, schema), "batch")
        return LiveReader(options, columns_of_schema(schema, options))

    def streamReader(self, schema: StructType) -> LiveStreamReader | RefusedStream:  # noqa: N802
        """A reader for a streaming query; wrong options are errors of its first call."""
        try:
            options = parse_options(asked_options(self.options, schema), "stream")
            return LiveStreamReader(options, columns_of_schema(schema, options))
        except KwireError as error:
            return RefusedStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> LiveWriter:
        """A writer of a DataFrame with this schema.

        Raises OptionError, and as find_topic does for a topic that does not exist.
        """
        if overwrite:
            raise OptionError("Save mode Overwrite is not allowed for Kafka: a topic is only added to, use mode append")
        from kwire.client import Client
        from kwire.spark.live.cluster import find_topic
        from kwire.spark.live.sink import LiveWriter

        options, columns = self._to_write(schema)
        if options.topic is not None:  # before any task: those take seconds to start, and fail one after the other
            with Client(**options.kafka) as client:
                find_topic(client, options.topic)
        return LiveWriter(options, columns)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LiveStreamWriter:  # noqa: N802
        """A writer of micro-batches with this schema. overwrite: output mode complete. Raises OptionError."""
        from kwire.spark.live.sink import LiveStreamWriter

        return LiveStreamWriter(*self._to_write(schema))

    def _to_write(self, schema: StructType) -> tuple[LiveWriteOptions, tuple[str, ...]]:
        from kwire.spark.live.write_options import parse_write_options
        from kwire.spark.sink_columns import LIVE_TYPES, check_columns

        options = parse_write_options(asked_options(self.options))
        return options, check_columns(schema, LIVE_TYPES, topic=options.topic)
