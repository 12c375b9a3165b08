"""`kwire sql`: SQL over topics and the state of a cluster, with DuckDB."""

from __future__ import annotations

import enum
import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.client_configs import is_cluster
from kwire.cli.command import FINE, add_command
from kwire.cli.log.directories import open_logs, warn_of_ignored
from kwire.cli.options import ClientConfigFile, ClientConfigs
from kwire.cli.sql.output import OutputFormat, write_result
from kwire.cli.sql.running import leave, run_interruptible
from kwire.errors import OptionError

if TYPE_CHECKING:
    from kwire.errors import InvalidSchema
    from kwire.log.reading.readable_log import ReadableLog
    from kwire.log.reading.runs import Isolation as Isolated
    from kwire.schemas import Registry
    from kwire.sql.session import Session, ValuesOf
    from kwire.sql.values import ValueColumns

__all__ = ["register"]


SMALL_FETCHES = {"max.partition.fetch.bytes": "786432"}
"""Each of several threads has two responses in memory. A query of 1 GB of JSON takes 232 MB with these, 377 with 1 MiB
and 390 with the client's default of 8 MiB; the CPU time is the same."""


class Isolation(enum.StrEnum):
    """Values of --isolation."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class ValueFormat(enum.StrEnum):
    """Values of --value."""

    TEXT = "text"
    JSON = "json"
    RAW = "raw"


def sql(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="Log directory, copy or packet capture: local path or URL; or a cluster: kafka://HOST:PORT[,HOST:PORT].",
        ),
    ] = None,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="Statements, separated by ';'. Without it: a prompt.")
    ] = None,
    attach: Annotated[
        list[str] | None,
        typer.Option("--attach", metavar="NAME=SOURCE", help="Source whose tables are NAME.topic. Repeatable."),
    ] = None,
    value: Annotated[
        ValueFormat, typer.Option("--value", help="Values: UTF-8 text, JSON, or bytes. Keys: text, or bytes.")
    ] = (ValueFormat.RAW),
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema", metavar="DDL", help="Fields of JSON values: 'id BIGINT, name STRING', or a file with it."
        ),
    ] = None,
    registry: Annotated[
        str | None,
        typer.Option(
            "--registry", metavar="URL", help="Schema registry that keys and values are decoded with: URL or folder."
        ),
    ] = None,
    registry_config: Annotated[
        str | None,
        typer.Option("--registry-config", metavar="FILE", help="Settings of the registry, secrets included."),
    ] = None,
    isolation: Annotated[
        Isolation,
        typer.Option("--isolation", help="With read_uncommitted, records of open and aborted transactions too."),
    ] = Isolation.READ_COMMITTED,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="File to write instead of standard output.")
    ] = None,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: Annotated[OutputFormat, typer.Option("--format", help="Output format.")] = OutputFormat.TABLE,
) -> int:
    """Query topics with SQL. Each topic is a table, as are kafka_partitions, kafka_groups, kafka_members and others.

    Columns of topics: partition, offset, timestamp, key, value, headers, topic, timestampType. Names with characters
    other than letters, digits and _ need quotes: "orders.v1", "offset". A query sees the records that exist when it
    begins. It joins no group and changes nothing. Conditions on partition, offset and timestamp, and LIMIT, decide how
    much is read.
    """
    from kwire.sql.session import Attached

    if attach and query is None and source is not None and not _is_source(source):
        source, query = None, source
    sources = _sources(source, attach)
    values = _values(value, schema, registry, registry_config, isolation.value)
    if query is None and (output is not None or not terminal.is_terminal()):
        raise OptionError("QUERY: missing; the prompt needs a terminal")
    session, opened = _open_session(), []
    try:
        for name, path in sources:
            has_configs = is_cluster(path) or not any(is_cluster(each) for _, each in sources)  # which refuses them
            logs = open_logs(path, *((config, config_file) if has_configs else ()))
            opened.append(logs)
            warn_of_ignored(logs.ignored)
            attached = Attached(logs=logs, schema=name, isolation=isolation.value, values=values)
            session.attach(attached)
            for topic in attached.hiding:
                terminal.warn(f"topic '{topic}' hides the table of this name about the cluster")
        if query is None:
            from kwire.cli.sql.prompt import run_prompt

            return run_prompt(session, format)
        return _run(session, query, format, output)
    finally:
        session.close()
        for logs in opened:
            logs.close()


def _open_session() -> Session:
    """Return a session. Arrow then allocates with jemalloc where it is built in, or as ARROW_DEFAULT_MEMORY_POOL says.

    One thread frees the batches that another one made, and mimalloc returns less of these: a query of Avro values
    has its peak at 310 MB with it, and at 250 MB with jemalloc.
    """
    import pyarrow as pa

    from kwire.sql.session import Session

    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    return Session()


def _is_source(argument: str) -> bool:
    """Return whether the only argument beside --attach is a source, and not a query."""
    return "://" in argument.partition(" ")[0] or os.path.exists(argument)


def _sources(source: str | None, attach: Sequence[str] | None) -> list[tuple[str | None, str]]:
    """Return names of schemas and paths. Raises OptionError."""
    sources: list[tuple[str | None, str]] = [] if source is None else [(None, source)]
    for text in attach or ():
        name, _, path = text.partition("=")
        if not name or not path:
            raise OptionError(f"--attach: expected NAME=SOURCE, got '{text[:100]}'")
        sources.append((name, path))
    if not sources:
        raise OptionError("SOURCE: missing; give a log directory, kafka://HOST:PORT, or --attach NAME=SOURCE")
    return sources


def _values(
    value: ValueFormat, schema: str | None, registry: str | None, registry_config: str | None, isolation: Isolated
) -> ValuesOf | None:
    """Return how topics are decoded. Raises OptionError, RegistryError."""
    from kwire.cli.registry import open_registry
    from kwire.sql.values import ValueColumns, registry_columns, text_column

    if registry is not None and value is not ValueFormat.RAW:
        raise OptionError("--value and --registry are mutually exclusive")
    if schema is not None and value is not ValueFormat.JSON:
        raise OptionError("--schema: requires --value json")
    opened: Registry | None = open_registry(registry, registry_config)

    def of_registry(topic: str, logs: list[ReadableLog]) -> ValueColumns:
        assert opened is not None

        def warn(column: str, error: InvalidSchema) -> None:
            terminal.warn(f"topic '{topic}': {error}; its {column}s stay bytes")

        return registry_columns(opened, topic, on_invalid=warn)

    def of_text(topic: str, logs: list[ReadableLog]) -> ValueColumns:
        return ValueColumns({"key": text_column(), "value": text_column()})

    if opened is not None:
        return of_registry
    if value is ValueFormat.JSON:
        return _json_values(schema, isolation)
    return of_text if value is ValueFormat.TEXT else None


def _json_values(schema: str | None, isolation: Isolated) -> ValuesOf:
    """Return how topics of JSON are decoded. schema: DDL or a file; None to infer it. Raises OptionError."""
    from kwire.schemas import ddl_of, parse_ddl
    from kwire.sql.values import ValueColumns, infer_json_column, json_column, text_column

    keys = {"key": text_column()}
    if schema is not None:
        try:
            given = ValueColumns({**keys, "value": json_column(parse_ddl(_text_of(schema)))})
        except OptionError as error:
            raise OptionError(f"--schema: {error}") from None
        return lambda topic, logs: given

    def infer(topic: str, logs: list[ReadableLog]) -> ValueColumns:
        try:
            column = infer_json_column(logs, isolation)
        except OptionError as error:
            terminal.warn(f"topic '{topic}': {error}; its values stay bytes")
            return ValueColumns(keys)
        terminal.warn(f"topic '{topic}': --schema {shlex.quote(ddl_of(column.type))}")
        return ValueColumns({**keys, "value": column})

    return infer


def _text_of(schema: str) -> str:
    """Return DDL, or the text of the file that has it. Raises OptionError."""
    if not os.path.isfile(schema):
        return schema
    try:
        with open(schema, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"'{schema}' cannot be read: {error}") from None


def _run(session: Session, query: str, format: OutputFormat, output: str | None) -> int:
    statements = session.statements(query)
    if not statements:
        raise OptionError("QUERY: empty")

    def run() -> None:
        for i, statement in enumerate(statements):
            result, file = session.run(statement), output if i == len(statements) - 1 else None
            if result is not None:
                write_result(result, format, file)
                sys.stdout.flush()  # the next statement may take long
            elif file is not None:
                raise OptionError(f"-o {file}: the last statement has no result")

    try:
        run_interruptible(session, run)
    except KeyboardInterrupt as interrupt:
        leave(interrupt)
    return FINE


def register(app: typer.Typer) -> None:
    """Add `sql` to the app."""
    add_command(
        app,
        "sql",
        sql,
        "kwire sql data 'SELECT partition, count(*) FROM orders GROUP BY ALL'",
        "kwire sql data 'SELECT value.city, count(*) FROM orders GROUP BY ALL' --value json",
        "kwire sql kafka://broker:9092 'SELECT * FROM kafka_groups WHERE lag > 1000'",
        "kwire sql --attach a=kafka://one:9092 --attach b=data 'FROM a.orders ANTI JOIN b.orders USING "
        '(partition, "offset")\'',
        section="Logs",
    )
