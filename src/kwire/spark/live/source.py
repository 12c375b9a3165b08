"""The data source `kafka-live`: topics of a running cluster in batch and streaming queries, without a JAR.

Option names, columns and offset semantics are as in Spark's Kafka source: a query with a checkpoint reads every
record once, whatever fails. Planning does not import pyarrow. See docs/live.md.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kwire.errors import KwireError, OptionError
from kwire.spark.live.options import LiveOptions, parse_options
from kwire.spark.offsets import OffsetRange, Query, for_query
from kwire.spark.options.query import limits_set
from kwire.spark.plain_errors import plain_errors
from kwire.spark.process.worker import SentToWorkers, warm_up
from kwire.spark.sail import is_sail, on_both_engines
from kwire.spark.schema import choose_columns, column_types, effective_options, render_schema, resolve_columns
from kwire.spark.streaming.reader import InvalidStreamReader, OffsetStreamReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kwire.spark.live.planning import LiveCluster, LivePartition
    from kwire.spark.live.sink import LiveStreamWriter, LiveWriter
    from kwire.spark.live.write_options import LiveWriteOptions

__all__ = ["KafkaLiveSource", "LiveReader", "LiveStreamReader"]

logger = logging.getLogger("kwire.spark")


@plain_errors
class LiveReader(SentToWorkers, DataSourceReader):
    """Plans and reads one batch query."""

    def __init__(self, options: LiveOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns

    def partitions(self) -> list[LivePartition]:
        """Plan the tasks of the query. Raises OptionError, LogError, BrokerError, ConnectionFailed."""
        from kwire.spark.live.planning import plan_batch

        for name in limits_set(self.options.limits):
            logger.warning("%s option ignored in batch queries", name)
        planned = plan_batch(self.options)
        warm_up()
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task; called in a worker. Raises the errors of read_range."""
        from kwire.spark.live.reading import read_partition

        return read_partition(partition, self.columns, self.options)


@plain_errors
class LiveStreamReader(OffsetStreamReader["LiveCluster"]):
    """Plans and reads the micro-batches of one streaming query."""

    format_name = "kafka-live"
    options: LiveOptions

    def open_offset_source(self) -> LiveCluster:
        """Connect to the cluster."""
        from kwire.spark.live.planning import LiveCluster

        return LiveCluster(self.options)

    def plan_tasks(self, ranges: Sequence[OffsetRange]) -> list[LivePartition]:
        """Plan one micro-batch."""
        from kwire.spark.live.planning import plan_tasks

        return plan_tasks(ranges, self.options, self.offset_source)

    def rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task; called in a worker. Raises the errors of read_range."""
        from kwire.spark.live.reading import read_partition

        return read_partition(partition, self.columns, self.options)


@plain_errors
class KafkaLiveSource(DataSource):
    """`spark.read`, `readStream`, `write` and `writeStream` with format("kafka-live"); docs/live.md."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kafka-live"

    _options: LiveOptions | None = None
    """Made by schema(), after which Spark pickles the source; the planner unpickles it to create a reader."""

    def schema(self) -> str:
        """Return the selected columns as DDL. Raises OptionError, RegistryError, InvalidSchema."""
        self._options = options = resolve_columns(parse_options(self.options, "any"), LiveReader)
        types = column_types(options)
        warm_up()
        return render_schema({name: types[name] for name in choose_columns(options)}, self.options, options.decoded)

    def _query_options(self, schema: StructType, query: Query) -> LiveOptions:
        """Return the options of a query; if the user or a table has set the schema, schema() has not been called."""
        given = effective_options(self.options, schema)
        parsed = self._options or resolve_columns(parse_options(given, "any"), LiveReader, schema)
        return for_query(parsed, query)

    @on_both_engines
    def reader(self, schema: StructType) -> LiveReader:
        """Create the reader of a batch query. Raises OptionError."""
        options = self._query_options(schema, "batch")
        return LiveReader(options, choose_columns(options, schema))

    def streamReader(self, schema: StructType) -> LiveStreamReader | InvalidStreamReader:  # noqa: N802
        """Create the reader of a streaming query; invalid options are errors of its first call."""
        try:
            options = self._query_options(schema, "stream")
            return LiveStreamReader(options, choose_columns(options, schema))
        except KwireError as error:
            return InvalidStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> LiveWriter:
        """Create the writer of a DataFrame.

        Raises OptionError, and as find_topic does for a topic that does not exist.
        """
        if overwrite:
            raise OptionError("Save mode Overwrite is not allowed for Kafka: rows are appended to a topic; use append")
        from kwire.client import Client
        from kwire.spark.live.planning import find_topic
        from kwire.spark.live.sink import LiveWriter

        options, columns = self._write_options(schema)
        if options.transactional_prefix is not None and is_sail(schema):
            raise OptionError(
                "Option 'transactionalIdPrefix' is not supported on Sail, whose tasks have no numbers for their "
                "transactional ids; write without transactions, or on Spark"
            )
        if options.topic is not None:  # before tasks start, each of which takes seconds to fail
            with Client(**options.kafka) as client:
                find_topic(client, options.topic)
        return LiveWriter(options, columns)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LiveStreamWriter:  # noqa: N802
        """Create the writer of a streaming query. overwrite: output mode complete. Raises OptionError."""
        from kwire.spark.live.sink import LiveStreamWriter

        warm_up()
        return LiveStreamWriter(*self._write_options(schema))

    def _write_options(self, schema: StructType) -> tuple[LiveWriteOptions, tuple[str, ...]]:
        from kwire.spark.live.write_options import parse_write_options
        from kwire.spark.sink_columns import LIVE_TYPES, check_columns

        options = parse_write_options(effective_options(self.options))
        return options, check_columns(schema, LIVE_TYPES, topic=options.topic)
