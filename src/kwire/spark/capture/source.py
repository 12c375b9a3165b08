"""The data source `kafka-capture`: packet captures as a DataFrame, one row per request with its response.

One task reads one file, since the packets of a connection can only be parsed in order. Reader and options pickle; the
planner does not import pyarrow. Options and columns: docs/capture.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kwire.errors import KwireError
from kwire.spark.capture.options import BODY, BODY_COLUMNS, CaptureOptions, available_types, column_types, parse_options
from kwire.spark.message_types import message_class
from kwire.spark.plain_errors import plain_errors
from kwire.spark.process.worker import SentToWorkers
from kwire.spark.sail import on_both_engines
from kwire.spark.schema import columns_of_schema, effective_options, render_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kwire.capture import Exchange
    from kwire.spark.capture.bodies import CaptureBodies

__all__ = ["CaptureReader", "KafkaCaptureSource", "read_file"]

BATCH_ROWS = 4096
BATCH_BYTES = 8 << 20

Row = dict[str, object]


class CapturePartition(InputPartition):
    """The input of one task: one file."""

    def __init__(self, path: str) -> None:
        self.path = path


@plain_errors
class CaptureReader(SentToWorkers, DataSourceReader):
    """Plans and reads one query."""

    def __init__(self, options: CaptureOptions) -> None:
        self.options = options

    def partitions(self) -> list[CapturePartition]:
        """Plan one task per file. Raises LogError for a path without files."""
        from kwire.log.reading.paths import expand_files

        return [
            CapturePartition(file) for path in self.options.paths for file in expand_files(path, self.options.storage)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one file; called in a worker.

        Raises LogError for an unreadable file. Damage raises Malformed after the rows before it; in mode PERMISSIVE it
        ends the file with a row whose `problem` names it.
        """
        if not isinstance(partition, CapturePartition):
            return  # Spark's placeholder for a query without tasks
        yield from read_file(partition.path, self.options)


def read_file(path: str, options: CaptureOptions) -> Iterator[pa.RecordBatch]:
    """Read the exchanges of a file, with the columns of the query."""
    import pyarrow as pa

    from kwire.capture import read_capture
    from kwire.spark.arrow_types import arrow_type

    types = column_types(options)
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in types.items() if name != BODY])
    bodies = _bodies_reader(options.message) if options.message is not None and BODY in types else None
    rows: list[Row] = []
    exchanges: list[Exchange | None] = []
    size = 0

    def batch() -> pa.RecordBatch:
        made = pa.RecordBatch.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)
        if bodies is None:
            return made
        return made.append_column(BODY, bodies.read(exchanges)).select(list(types))

    try:
        for exchange in read_capture(path, ports=options.ports, storage_options=options.storage):
            if not _is_selected(exchange, options):
                continue
            rows.append(_row(exchange, path, options, types))
            exchanges.append(exchange)
            size += sum(frame.size_bytes for frame in (exchange.request, exchange.response) if frame)
            if len(rows) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield batch()
                rows, exchanges, size = [], [], 0
    except KwireError as error:
        if options.mode == "FAILFAST":
            raise
        rows.append({"file": path, "problem": str(error)})
        exchanges.append(None)
    if rows:
        yield batch()


def _bodies_reader(message: str) -> CaptureBodies:
    from kwire.spark.capture.bodies import CaptureBodies

    return CaptureBodies(message_class(message))


def _is_selected(exchange: Exchange, options: CaptureOptions) -> bool:
    name = exchange.api_name or str(exchange.api_key)
    return (not options.apis or any(fnmatchcase(name.lower(), each.lower()) for each in options.apis)) and (
        not options.clients or any(fnmatchcase(exchange.client_id or "", each) for each in options.clients)
    )


def _row(exchange: Exchange, path: str, options: CaptureOptions, types: Mapping[str, str]) -> Row:
    """Return the row of one exchange; bodies are decoded only if the query has their columns."""
    import msgspec

    bodies = [name for name in BODY_COLUMNS if name in types]
    row = exchange.to_json(bodies=bool(bodies) and options.bodies == "json")
    row["file"] = path
    row["request_time"] = None if exchange.request is None else exchange.request.time_ns // 1000
    row["response_time"] = None if exchange.response is None else exchange.response.time_ns // 1000
    for name in bodies:
        if options.bodies == "json":
            body = row[name]
            row[name] = None if body is None else msgspec.json.encode(body).decode()
        else:
            frame = getattr(exchange, name)
            row[name] = None if frame is None else frame.data
    return row


@plain_errors
class KafkaCaptureSource(DataSource):
    """`spark.read.format("kafka-capture")`; options and columns: docs/capture.md."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kafka-capture"

    def schema(self) -> str:
        """Return the selected columns as DDL. Raises OptionError."""
        return render_schema(column_types(parse_options(self.options)), self.options)

    @on_both_engines
    def reader(self, schema: StructType) -> CaptureReader:
        """Create the reader. A schema selects columns and does not convert them. Raises OptionError."""
        options = parse_options(effective_options(self.options, schema))
        return CaptureReader(replace(options, columns=columns_of_schema(schema, available_types(options))))
