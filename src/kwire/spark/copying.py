"""copy_stream: a streaming query whose rows do not enter Spark's JVM.

    driver    offsets of each micro-batch, in the checkpoint -> tasks, one row each: a range of offsets
    tasks     read the range, decode it, call the function, write: Arrow from Kafka's batches to the sink
    driver    commits what the tasks have written, with the micro-batch's number

Offsets, checkpoint, marks and commits belong to the source and the sink, which are used as they are: Spark passes
the ranges from one to the other instead of rows. See docs/table-streams.md.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from kwire.client import Client
from kwire.errors import OptionError, did_you_mean
from kwire.identifiers import render_uuid
from kwire.lake.dead_letters import mode_for_dead_letters
from kwire.spark.lake.options import DEAD_LETTERS, parse_lake_options
from kwire.spark.lake.parquet_sink import ParquetSink
from kwire.spark.lake.sink import TaskWritten
from kwire.spark.lake.source import DeltaSink, IcebergSink
from kwire.spark.live.planning import find_topic
from kwire.spark.live.sink import LiveStreamWriter
from kwire.spark.live.source import KafkaLiveSource, LiveStreamReader
from kwire.spark.log.source import KafkaLogSource
from kwire.spark.log.stream import LogStreamReader
from kwire.spark.options.decoding import DECODED
from kwire.spark.plain_errors import plain_errors
from kwire.spark.process.worker import SentToWorkers
from kwire.spark.sail import struct_type
from kwire.spark.start_from import START_FROM, TABLE, offsets_of_table, without_start_from
from kwire.spark.streaming.copy_source import CopySource
from kwire.spark.streaming.reader import TASK, InvalidStreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSourceStreamWriter
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from kwire.spark.live.planning import LivePartition
    from kwire.spark.log.reading import LogPartition

__all__ = ["Function", "copy_stream", "starting_offsets"]

Function = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Changes rows: columns, values, their number. It gets batches of one partition each, in the order of offsets."""

Option = str | int | float | bool


def copy_stream(
    spark: SparkSession,
    source: str,
    source_options: Mapping[str, Option],
    sink: str,
    sink_options: Mapping[str, Option],
    *,
    checkpoint: str,
    function: Function | None = None,
    name: str | None = None,
    trigger: Mapping[str, str | bool] | None = None,
) -> StreamingQuery:
    """Start a streaming query from kafka-live or kafka-log to kwire-iceberg, kwire-delta, parquet or kafka-live.

    source_options, sink_options: options of the formats; with value.registry and key.registry, tasks decode rows.
    checkpoint: directory of the query's offsets; one of a query on the same source can be continued.
    function: is applied to the rows in tasks, to batches of Arrow. Called once without rows, for the columns.
    name: of the query. trigger: arguments of DataStreamWriter.trigger, such as {"availableNow": True}.
    Rows cannot be transformed by Spark, and progress reports count tasks as rows; offsets and lag are as usual.
    Raises OptionError, and the errors of opening source and sink, before the query starts.
    """
    copy = Copy.of(
        *(_choose("source", source, SOURCES), _texts(source_options)),
        *(_choose("sink", sink, SINKS), _texts(sink_options)),
        function,
    )
    copy.check_sink()
    format_name = f"kwire-copy-{uuid.uuid4().hex}"
    make_writer: bytes = cloudpickle.dumps(partial(CopyWriter, copy))  # type: ignore[no-untyped-call]
    parts = {"format_name": format_name, "planner": copy.planner(), "make_writer": make_writer}
    spark.dataSource.register(type("CopySource", (CopySource,), parts))
    writer = spark.readStream.format(format_name).load().writeStream.format(format_name)
    writer = writer.option("checkpointLocation", checkpoint)
    if name is not None:
        writer = writer.queryName(name)
    if trigger is not None:
        writer = writer.trigger(**trigger)  # type: ignore[arg-type]
    return writer.start()


def starting_offsets(
    source: str, source_options: Mapping[str, Option], sink: str, sink_options: Mapping[str, Option]
) -> str:
    """Return option startingOffsets with which a new query continues exactly where its table ends.

    source: kafka-live or kafka-log; sink: kwire-iceberg or kwire-delta; with their options. Partitions that the table
    does not have begin at their first offset.
    Raises TableError if the table has a hole, offsets that the source does not have, or those of another topic;
    OptionError, and the errors of opening source and table.
    """
    given, _ = without_start_from(_texts(source_options) | {START_FROM: TABLE})
    return _table_offsets(_choose("source", source, SOURCES), given, _choose("sink", sink, SINKS), _texts(sink_options))


def _choose(what: str, name: str, known: Mapping[str, type[DataSource]]) -> type[DataSource]:
    if name not in known:
        raise OptionError(f"{what}: expected one of {', '.join(known)}, got '{name}'{did_you_mean(name, known)}")
    return known[name]


def _texts(options: Mapping[str, Option]) -> dict[str, str]:
    """Return options as Spark passes them."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}


SOURCES: Mapping[str, type[DataSource]] = {"kafka-live": KafkaLiveSource, "kafka-log": KafkaLogSource}
SINKS: Mapping[str, type[DataSource]] = {
    "kwire-iceberg": IcebergSink,
    "kwire-delta": DeltaSink,
    "parquet": ParquetSink,
    "kafka-live": KafkaLiveSource,
}
OF_ARROW = (IcebergSink, DeltaSink, ParquetSink)
"""Sinks whose writers take the schema of Arrow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Source and sink of a query that copies. Picklable. schema: of the rows that are written."""

    reader: LiveStreamReader | LogStreamReader
    sink: type[DataSource]
    sink_options: Mapping[str, str]
    function: Function | None
    schema: pa.Schema

    @classmethod
    def of(
        cls,
        source: type[DataSource],
        source_options: dict[str, str],
        sink: type[DataSource],
        sink_options: dict[str, str],
        function: Function | None,
    ) -> Copy:
        """Resolve the columns. Raises OptionError, RegistryError, InvalidSchema."""
        source_options, starts_from_table = without_start_from(source_options)
        if starts_from_table:
            source_options["startingOffsets"] = _table_offsets(source, source_options, sink, sink_options)
        has_dead_letters = any(name.lower() == DEAD_LETTERS.name.lower() for name in sink_options)
        made = source(_keeping_bad_values(source_options) if has_dead_letters else source_options)
        schema = pa.schema(made.schema())
        reader = made.streamReader(struct_type(schema))
        if isinstance(reader, InvalidStreamReader):
            raise reader.error
        assert isinstance(reader, LiveStreamReader | LogStreamReader)
        if has_dead_letters:
            decoded = {name: column.with_bytes() for name, column in reader.options.decoded.items()}
            reader.options = replace(reader.options, decoded=decoded)
            for name in set(decoded) & set(schema.names):
                schema = schema.set(schema.get_field_index(name), pa.field(name, decoded[name].type))
        if function is not None:
            schema = _checked(function(pa.RecordBatch.from_pylist([], schema))).schema
        return cls(reader=reader, sink=sink, sink_options=sink_options, function=function, schema=schema)

    def planner(self) -> LiveStreamReader | LogStreamReader:
        """Return the reader that plans the micro-batches, which decodes nothing."""
        options = replace(self.reader.options, decoded={})
        return type(self.reader)(options, self.reader.columns, returns_tasks=True)

    def check_sink(self) -> None:
        """Raise the errors of the sink that are known before there are rows, such as a topic that does not exist."""
        writer = self.open_writer()
        if isinstance(writer, LiveStreamWriter) and writer.options.topic is not None:
            with Client(**writer.options.kafka) as client:
                find_topic(client, writer.options.topic)

    def open_writer(self) -> DataSourceStreamWriter:
        """Return the sink's writer of a micro-batch. Raises the errors of the sink."""
        schema = self.schema if self.sink in OF_ARROW else struct_type(self.schema)
        return self.sink(dict(self.sink_options)).streamWriter(cast("StructType", schema), overwrite=False)

    def rows(self, tasks: Iterator[pa.RecordBatch], topic_ids: dict[str, str]) -> Iterator[pa.RecordBatch]:
        """Read the rows of tasks, each a row of these batches. topic_ids: receives those of the topics."""
        for batch in tasks:
            for row in batch.column(TASK):
                task: LivePartition | LogPartition = pickle.loads(row.as_py())
                topic_ids |= {topic: render_uuid(each) for topic, each in task.topic_ids.items()}
                for rows in self.reader.rows(task):
                    yield rows if self.function is None else self._changed(rows)

    def _changed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        assert self.function is not None
        changed = _checked(self.function(rows))
        if changed.schema != self.schema:
            raise OptionError(
                f"function: returned the columns {_text(changed.schema)}; without rows it returned {_text(self.schema)}"
            )
        return changed


def _table_offsets(
    source: type[DataSource], source_options: dict[str, str], sink: type[DataSource], sink_options: dict[str, str]
) -> str:
    """Return startingOffsets for option startFrom. Raises OptionError, TableError."""
    if sink is not IcebergSink and sink is not DeltaSink:
        raise OptionError("Option 'startFrom': the sink is no table; it requires kwire-iceberg or kwire-delta")
    made = source(source_options)
    reader = made.streamReader(struct_type(pa.schema(made.schema())))
    if isinstance(reader, InvalidStreamReader):
        raise reader.error
    assert isinstance(reader, LiveStreamReader | LogStreamReader)
    table = parse_lake_options(
        {name.lower(): value for name, value in sink_options.items()}, "delta" if sink is DeltaSink else "iceberg"
    ).open()
    return offsets_of_table(table, reader)


def _keeping_bad_values(options: dict[str, str]) -> dict[str, str]:
    """Return the options of a source that does not fail for a value that cannot be decoded. Raises OptionError."""
    given = {name.lower(): value for name, value in options.items()}
    modes = {
        f"{column}.mode": mode_for_dead_letters(given.get(f"{column}.mode"), DEAD_LETTERS.name)
        for column in DECODED
        if f"{column}.registry" in given or f"{column}.format" in given
    }
    return {name: value for name, value in options.items() if name.lower() not in modes} | modes


def _checked(result: object) -> pa.RecordBatch:
    if not isinstance(result, pa.RecordBatch):
        raise OptionError(f"function: expected a pyarrow.RecordBatch, got {type(result).__name__}")
    return result


def _text(schema: pa.Schema) -> str:
    return ", ".join(f"{each.name}: {each.type}" for each in schema)


@plain_errors
class CopyWriter(SentToWorkers, DataSourceStreamArrowWriter):
    """Writes the rows of the tasks that it gets, with the sink's writer."""

    def __init__(self, copy: Copy) -> None:
        self.copy, self.writer = copy, copy.open_writer()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Read and write the rows of one task; called in a worker."""
        topic_ids: dict[str, str] = {}
        rows = self.copy.rows(iterator, topic_ids)
        message = self.writer.write(cast("Iterator[object]", rows))  # type: ignore[arg-type]
        return replace(message, topic_ids=topic_ids) if isinstance(message, TaskWritten) else message

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Commit a micro-batch."""
        self.writer.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Abort a micro-batch; a task has failed."""
        self.writer.abort(messages, batchId)
