"""The data source `kafka-log`: a Kafka broker's log directory as a DataFrame.

Three processes run this module. Spark creates a KafkaLogSource in one to get the schema, a reader in another to plan a
query, and sends the reader and one LogPartition each to the workers. The first two must start fast: they import neither
numba nor pyarrow of their own. Readers keep no state between calls, and all of it pickles.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from kwire.errors import KwireError
from kwire.spark.columns import choose_columns, columns_of_schema, render_ddl
from kwire.spark.log.filters import Narrowing, narrow
from kwire.spark.log.options import LogOptions, parse_options
from kwire.spark.options.given import asked_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kwire.log.splits import Split
    from kwire.spark.log.sink import LogWriter
    from kwire.spark.log.stream import LogStreamReader
    from kwire.spark.streaming.position import TopicIds
    from kwire.spark.streaming.reader import RefusedStream


# Up to Spark 4.3 a DataFrame keeps one plan of a Python source: a query that pushes filters replaces the plan of every
# other query on that DataFrame, the other branch of a union included, and those then miss rows. The release that fixed
# it also brought pushLimit (SPARK-58551).
KEEPS_PLANS_APART = hasattr(DataSourceReader, "pushLimit")

logger = logging.getLogger("kwire.spark")


class LogPartition(InputPartition):
    """What one Spark task reads: one split, or several small ones in the order of their offsets.

    topic_ids: that the topics had when the task was planned, where a stream checks them.
    """

    def __init__(self, splits: Sequence[Split], topic_ids: TopicIds | None = None) -> None:
        self.splits, self.topic_ids = tuple(splits), topic_ids or {}


def read_partition(
    partition: InputPartition, columns: tuple[str, ...], options: LogOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of one task; called in a worker."""
    if not isinstance(partition, LogPartition):
        return iter(())  # Spark's stand-in where there is nothing to read: InputPartition(None)
    from kwire.spark.log.reading import read_task

    return read_task(partition.splits, columns, options, partition.topic_ids)


class LogReader(DataSourceReader):
    """Plans and reads one query. options: checked; columns: in the order of the schema."""

    def __init__(self, options: LogOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns
        self.narrowing = Narrowing()

    def partitions(self) -> list[LogPartition]:
        """The tasks of the query; called once, on the driver. Raises OptionError, LogError."""
        from kwire.spark.log.planning import plan_tasks

        return [LogPartition(splits) for splits in plan_tasks(self.options, self.narrowing)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task as Arrow batches; called in a worker. Raises CorruptBatch, LogError."""
        return read_partition(partition, self.columns, self.options)


class PushdownLogReader(LogReader):
    """A LogReader that also looks at the query's filters.

    A class of its own because Spark fails a reader that has pushFilters while
    spark.sql.python.filterPushdown.enabled is false, which is the default.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's name)
        """Take from the filters what need not be read; Spark still evaluates all of them."""
        self.narrowing = narrow(filters)
        return filters


class KafkaLogSource(DataSource):
    """`spark.read`, `readStream` and `write` with format("kafka-log"); options and columns: docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kafka-log"

    def schema(self) -> str:
        """The columns that the options choose, as DDL. Raises OptionError."""
        return render_ddl(choose_columns(parse_options(self.options, "any")), self.options)

    def reader(self, schema: StructType) -> LogReader:
        """A reader of the schema's columns. Raises OptionError."""
        options = parse_options(asked_options(self.options, schema))
        columns = columns_of_schema(schema, options)
        if not options.pushdown:
            return LogReader(options, columns)
        if not KEEPS_PLANS_APART:
            logger.warning(
                "this version of Spark would mix up pushed filters of different queries, so pushdown has no effect; "
                "narrow the query with subscribe, assign, startingOffsets, startingTimestamp and their like"
            )
            return LogReader(options, columns)
        return PushdownLogReader(options, columns)

    def streamReader(self, schema: StructType) -> LogStreamReader | RefusedStream:  # noqa: N802 (Spark's name)
        """A reader for a streaming query; wrong options are errors of its first call."""
        from kwire.spark.log.stream import LogStreamReader
        from kwire.spark.streaming.reader import RefusedStream

        try:
            options = parse_options(asked_options(self.options, schema), "stream")
            return LogStreamReader(options, columns_of_schema(schema, options))
        except KwireError as error:
            return RefusedStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> LogWriter:
        """A writer of a DataFrame with this schema. Raises OptionError."""
        from kwire.spark.log.sink import LogWriter
        from kwire.spark.log.write_options import parse_write_options
        from kwire.spark.sink_columns import LOG_TYPES, check_columns

        options = parse_write_options(asked_options(self.options))
        return LogWriter(options, check_columns(schema, LOG_TYPES, topic=options.topic), overwrite=overwrite)
