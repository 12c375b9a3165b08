"""The data source `kafka-log`: a Kafka broker's log directory as a DataFrame.

Three kinds of processes run this module. Spark creates a KafkaLogSource in one to get the schema and a reader in
another to plan the query, and sends the reader and one LogPartition each to the workers. The first two must start fast:
they do not import pyarrow. Readers keep no state between calls, and everything pickles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kwire.errors import KwireError
from kwire.spark.log.options import LogOptions, check_query, parse_options
from kwire.spark.plain_errors import plain_errors
from kwire.spark.process.worker import SentToWorkers, warm_up
from kwire.spark.sail import on_both_engines
from kwire.spark.schema import choose_columns, column_types, effective_options, render_schema, resolve_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kwire.spark.log.reading import LogPartition
    from kwire.spark.log.sink import LogWriter
    from kwire.spark.log.stream import LogStreamReader
    from kwire.spark.offsets import Query
    from kwire.spark.streaming.reader import InvalidStreamReader

__all__ = ["KafkaLogSource", "LogReader"]


@plain_errors
class LogReader(SentToWorkers, DataSourceReader):
    """Plans and reads one batch query. columns: in the order of the schema."""

    def __init__(self, options: LogOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns

    def partitions(self) -> list[LogPartition]:
        """Plan the tasks; called once, on the driver. Raises OptionError, LogError."""
        from kwire.spark.log.planning import plan_batch

        planned = plan_batch(self.options)
        warm_up()
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task; called in a worker. Raises CorruptBatch, LogError."""
        from kwire.spark.log.reading import read_partition

        return read_partition(partition, self.columns, self.options)


@plain_errors
class KafkaLogSource(DataSource):
    """`spark.read`, `readStream` and `write` with format("kafka-log"); options and columns: docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kafka-log"

    _options: LogOptions | None = None
    """Made by schema(), after which Spark pickles the source; the planner unpickles it to create a reader."""

    def schema(self) -> str:
        """Return the selected columns as DDL. Raises OptionError, RegistryError, InvalidSchema."""
        self._options = options = resolve_columns(parse_options(self.options, "any"), LogReader)
        types = column_types(options)
        warm_up()
        return render_schema({name: types[name] for name in choose_columns(options)}, self.options, options.decoded)

    def _query_options(self, schema: StructType, query: Query) -> LogOptions:
        """Return the options of a query; if the user or a table has set the schema, schema() has not been called."""
        given = effective_options(self.options, schema)
        parsed = self._options or resolve_columns(parse_options(given, "any"), LogReader, schema)
        return check_query(parsed, query)

    @on_both_engines
    def reader(self, schema: StructType) -> LogReader:
        """Create the reader of a batch query. Raises OptionError."""
        options = self._query_options(schema, "batch")
        return LogReader(options, choose_columns(options, schema))

    def streamReader(self, schema: StructType) -> LogStreamReader | InvalidStreamReader:  # noqa: N802 (Spark's name)
        """Create the reader of a streaming query; invalid options are errors of its first call."""
        from kwire.spark.log.stream import LogStreamReader
        from kwire.spark.streaming.reader import InvalidStreamReader

        try:
            options = self._query_options(schema, "stream")
            return LogStreamReader(options, choose_columns(options, schema))
        except KwireError as error:
            return InvalidStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> LogWriter:
        """Create the writer of a DataFrame. Raises OptionError."""
        from kwire.spark.log.sink import LogWriter
        from kwire.spark.log.write_options import parse_write_options
        from kwire.spark.sink_columns import LOG_TYPES, check_columns

        options = parse_write_options(effective_options(self.options))
        return LogWriter(options, check_columns(schema, LOG_TYPES, topic=options.topic), overwrite=overwrite)
