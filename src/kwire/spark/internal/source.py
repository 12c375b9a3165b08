"""The data source `kafka-internal`: Kafka's internal topics as a DataFrame, as state or record by record.

One task reads one partition of an internal topic, which holds a group, a transactional id or a share partition whole.
Reader and options pickle; the planner does not import pyarrow. Options and columns: docs/internal.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kwire.errors import LogError, OptionError
from kwire.identifiers import TopicPartition
from kwire.spark.internal.options import InternalOptions, column_types, parse_options
from kwire.spark.plain_errors import plain_errors
from kwire.spark.process.worker import SentToWorkers
from kwire.spark.sail import on_both_engines
from kwire.spark.schema import columns_of_schema, effective_options, render_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["InternalReader", "KafkaInternalSource"]


class InternalPartition(InputPartition):
    """The input of one task: one partition of an internal topic."""

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition


@plain_errors
class InternalReader(SentToWorkers, DataSourceReader):
    """Plans and reads one query."""

    def __init__(self, options: InternalOptions) -> None:
        self.options = options

    def partitions(self) -> list[InternalPartition]:
        """Plan one task per partition of the internal topic. Raises OptionError; LogError if there is none."""
        from kwire.log.reading.paths import available_topics, open_logs

        logs = open_logs(self.options.paths, self.options.storage)
        partitions = [InternalPartition(key) for key in logs if key[0] == self.options.topic]
        if not partitions:
            paths = ", ".join(self.options.paths)
            raise LogError(f"no partition of '{self.options.topic}' in {paths}; {available_topics(logs)}")
        if self.options.at_offset is not None and len(partitions) > 1:
            raise OptionError(
                f"Option 'atOffset': requires a single partition, and {self.options.topic} has {len(partitions)} here; "
                "specify the directory of one partition as path, or use atTime"
            )
        return partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task; called in a worker.

        Raises LogError for deleted files, and in mode current, unless failOnDataLoss is false, for unreadable records.
        """
        if not isinstance(partition, InternalPartition):
            return  # Spark's placeholder for a query without tasks
        from kwire.spark.internal.reading import read_task

        yield from read_task(partition.topic_partition, self.options, column_types(self.options))


@plain_errors
class KafkaInternalSource(DataSource):
    """`spark.read.format("kafka-internal")`; options and columns: docs/internal.md."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kafka-internal"

    def schema(self) -> str:
        """Return the selected columns as DDL. Raises OptionError."""
        return render_schema(column_types(parse_options(self.options)), self.options)

    @on_both_engines
    def reader(self, schema: StructType) -> InternalReader:
        """Create the reader. A schema selects columns and does not convert them. Raises OptionError."""
        options = parse_options(effective_options(self.options, schema))
        return InternalReader(replace(options, columns=columns_of_schema(schema, options.types)))
