"""The data source `kafka-capture`: packet captures as a DataFrame, one row a request with its response.

One task reads one file: a connection's packets are not told apart without reading all before them. Reader and options
pickle; the planner imports neither numba nor pyarrow. Options and columns: docs/capture.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kwire.errors import KwireError, OptionError, did_you_mean
from kwire.spark.message_types import message_class, struct_type
from kwire.spark.options.given import effective_options, schema_ddl, user_options
from kwire.spark.options.values import (
    check_columns,
    parse_choice,
    parse_columns,
    parse_paths,
    parse_storage,
    refuse_unknown,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kwire.capture import Exchange
    from kwire.spark.capture.bodies import CaptureBodies

__all__ = ["COLUMNS", "CaptureOptions", "KafkaCaptureSource", "parse_options"]

PAGE = "docs/capture.md"
NAMES = ("path", "paths", "ports", "apis", "clients", "columns", "bodies", "message", "mode")
BATCH_ROWS = 4096
BATCH_BYTES = 8 << 20

Mode = Literal["FAILFAST", "PERMISSIVE"]
Bodies = Literal["json", "bytes", "none"]

COLUMNS = {
    "file": "string",
    "connection": "bigint",
    "client": "string",
    "server": "string",
    "client_id": "string",
    "api_key": "int",
    "api": "string",
    "api_version": "int",
    "correlation_id": "int",
    "request_time": "timestamp",
    "response_time": "timestamp",
    "latency_ms": "double",
    "request_bytes": "bigint",
    "response_bytes": "bigint",
    "problem": "string",
    "request": "string",
    "response": "string",
}
BODIES = ("request", "response")
BODY = "body"
"""The column of option message: that request or response as a struct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """Everything a query asked for. ports, apis, clients: empty for all."""

    paths: tuple[str, ...]
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ports: tuple[int, ...] = ()
    apis: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    bodies: Bodies = "json"
    message: str | None = None
    mode: Mode = "FAILFAST"


def parse_options(options: Mapping[str, str]) -> CaptureOptions:
    """Check the options of one query; raises OptionError naming the option and what would be right."""
    given = user_options(options)
    refuse_unknown(given, NAMES, "kafka-capture", PAGE)
    return CaptureOptions(
        paths=parse_paths(given),
        storage=parse_storage(given),
        ports=tuple(_port(text) for text in _words(given, "ports")),
        apis=_words(given, "apis"),
        clients=_words(given, "clients"),
        columns=parse_columns(given),
        bodies=parse_choice(given, "bodies", "json", ("json", "bytes", "none")),
        message=_message(given),
        mode=parse_choice(given, "mode", "FAILFAST", ("FAILFAST", "PERMISSIVE")),
    )


def _words(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(word for word in (part.strip() for part in given.get(name, "").split(",")) if word)


def _message(given: Mapping[str, str]) -> str | None:
    name = given.get("message")
    if name is None:
        return None
    kind = message_class(name.strip()).SPEC.kind
    if kind not in ("request", "response"):
        raise OptionError(f"Option 'message': {name} is no request or response; it is of the kind {kind}")
    return name.strip()


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise OptionError(f"Option 'ports': expected port numbers with commas between, got '{text}'")
    return int(text)


def column_types(options: CaptureOptions) -> dict[str, str]:
    """The columns of a query and their types. Raises OptionError for an unknown or repeated one."""
    types = {name: "binary" if name in BODIES and options.bodies == "bytes" else kind for name, kind in COLUMNS.items()}
    if options.message is not None:
        types[BODY] = struct_type(message_class(options.message).SPEC, None).simpleString()
    if options.columns is None:
        return {name: kind for name, kind in types.items() if name not in BODIES or options.bodies != "none"}
    check_columns(options.columns, types)
    return {name: types[name] for name in options.columns}


class CapturePartition(InputPartition):
    """What one Spark task reads: one file."""

    def __init__(self, path: str) -> None:
        self.path = path


class CaptureReader(DataSourceReader):
    """Plans and reads one query."""

    def __init__(self, options: CaptureOptions) -> None:
        self.options = options

    def partitions(self) -> list[CapturePartition]:
        """One task a file. Raises LogError for a path where nothing is."""
        from kwire.spark.paths import expand_files

        return [
            CapturePartition(file) for path in self.options.paths for file in expand_files(path, self.options.storage)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one file as Arrow batches; called in a worker.

        Raises LogError where it cannot be read, Malformed where it is no capture or damaged, behind the rows before the
        damage; in mode PERMISSIVE a damaged file ends with a row that says so.
        """
        if not isinstance(partition, CapturePartition):
            return  # Spark's stand-in where there is nothing to read
        from kwire.spark.worker import prepare_worker

        prepare_worker()
        yield from read_file(partition.path, self.options)


def read_file(path: str, options: CaptureOptions) -> Iterator[pa.RecordBatch]:
    """The exchanges of a file as Arrow batches with the columns asked for."""
    import pyarrow as pa

    from kwire.capture import read_capture

    types = column_types(options)
    schema = pa.schema([(name, _arrow_type(kind)) for name, kind in types.items() if name != BODY])
    bodies = _bodies_reader(options.message) if options.message is not None and BODY in types else None
    rows: list[dict[str, Any]] = []
    exchanges: list[Exchange | None] = []
    size = 0

    def batch() -> pa.RecordBatch:
        made = pa.RecordBatch.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)
        if bodies is None:
            return made
        return made.append_column(BODY, bodies.read(exchanges)).select(list(types))

    try:
        for exchange in read_capture(path, ports=options.ports, storage_options=options.storage):
            if not _is_wanted(exchange, options):
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


def _arrow_type(kind: str) -> pa.DataType:
    import pyarrow as pa

    return {
        "string": pa.string(),
        "binary": pa.binary(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "timestamp": pa.timestamp("us", "UTC"),
    }[kind]


def _is_wanted(exchange: Exchange, options: CaptureOptions) -> bool:
    name = exchange.api_name or str(exchange.api_key)
    return (not options.apis or any(fnmatchcase(name.lower(), each.lower()) for each in options.apis)) and (
        not options.clients or any(fnmatchcase(exchange.client_id or "", each) for each in options.clients)
    )


def _row(exchange: Exchange, path: str, options: CaptureOptions, types: Mapping[str, str]) -> dict[str, Any]:
    """One exchange; bodies only where they are asked for."""
    import msgspec

    wanted = [name for name in BODIES if name in types]
    row = exchange.to_json(bodies=bool(wanted) and options.bodies == "json")
    row["file"] = path
    row["request_time"] = None if exchange.request is None else exchange.request.time_ns // 1000
    row["response_time"] = None if exchange.response is None else exchange.response.time_ns // 1000
    for name in wanted:
        if options.bodies == "json":
            body = row[name]
            row[name] = None if body is None else msgspec.json.encode(body).decode()
        else:
            frame = getattr(exchange, name)
            row[name] = None if frame is None else frame.data
    return row


class KafkaCaptureSource(DataSource):
    """`spark.read.format("kafka-capture")`; options and columns: docs/capture.md."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kafka-capture"

    def schema(self) -> str:
        """The columns that the options choose, as DDL. Raises OptionError."""
        return schema_ddl(column_types(parse_options(self.options)), self.options)

    def reader(self, schema: StructType) -> CaptureReader:
        """A reader. A schema may choose columns; it does not convert. Raises OptionError."""
        options = parse_options(effective_options(self.options, schema))
        types = column_types(options)
        asked = {field.name: field.dataType.simpleString() for field in schema.fields}
        for name, kind in asked.items():
            if types.get(name, COLUMNS.get(name)) != kind:
                raise OptionError(
                    f"The schema: column {name} of type {kind}{did_you_mean(name, types)}; "
                    f"there are {', '.join(f'{n} {k}' for n, k in types.items())}"
                )
        return CaptureReader(replace(options, columns=tuple(asked)))
