"""Queries in DuckDB over sources of logs: each topic is a table, and so is the state of the cluster.

    Session(connection)
      attach(logs, "live")    live.orders, live.kafka_groups ...; without a name: orders, kafka_groups
      run("SELECT ...")       results, with the offsets of each topic fixed when the statement begins

A table is registered when a statement names it, so that a cluster of ten thousand topics costs nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from kwire.errors import BrokerError, KwireError, LogError, OptionError, did_you_mean
from kwire.extras import needing
from kwire.log.reading.readable_log import LogSource, ReadableLog
from kwire.sql.cluster_tables import TABLES, cluster_table, tables_of
from kwire.sql.dataset import TopicDataset

if TYPE_CHECKING:
    import duckdb

    from kwire.log.reading.runs import Isolation
    from kwire.sql.values import ValueColumns

__all__ = ["Attached", "Session"]

logger = logging.getLogger("kwire.sql")

MISSING_TABLE = re.compile(r"Catalog Error: Table with name (\S+) does not exist")
ROWS = 10_000  # of a batch of a result
CATALOG_WORDS = ("show", "information_schema", "duckdb_", "pragma", "sqlite_master")
DESCRIBE_ALL = re.compile(r"\s*describe\s*;?\s*", re.IGNORECASE)
HIDDEN = "kwire "  # begins the names under which topics are registered

ValuesOf: TypeAlias = "Callable[[str, list[ReadableLog]], ValueColumns]"
"""Returns how the keys and values of a topic are decoded, given its name and logs."""


def _nothing() -> None: ...


@dataclass(slots=True, kw_only=True)
class Attached:
    """A source of logs in a session. schema: the name of the tables' schema; None for tables without one.

    refresh: gives the tables of kwire.duckdb.attach the offsets of now.
    """

    logs: LogSource[Any]
    schema: str | None = None
    isolation: Isolation = "read_committed"
    values: ValuesOf | None = None
    refresh: Callable[[], None] = _nothing
    _values: dict[str, ValueColumns] = field(default_factory=dict)

    def dataset(self, topic: str) -> TopicDataset:
        """Return a topic with the offsets of now. How it is decoded is decided once."""
        logs = [log.reopened() for log in self.logs.of_topic(topic)]
        if self.values is not None and topic not in self._values:
            self._values[topic] = self.values(topic, logs)
        return TopicDataset(topic, logs, isolation=self.isolation, values=self._values.get(topic))

    @property
    def tables(self) -> list[str]:
        """The names of all tables: topics, then the state of the cluster, less the names that topics have."""
        topics = self.logs.topics
        return [*topics, *(name for name in tables_of(self.logs) if name not in topics)]

    @property
    def hiding(self) -> list[str]:
        """Topics with the name of a table about the cluster, which they hide."""
        return [name for name in TABLES if name in self.logs.topics]

    @property
    def alike(self) -> dict[str, list[str]]:
        """Topics whose names differ in case only, which SQL does not see, by their names in lower case."""
        same: dict[str, list[str]] = {}
        for topic in self.logs.topics:
            same.setdefault(topic.lower(), []).append(topic)
        return {name: topics for name, topics in same.items() if len(topics) > 1}

    def qualified(self, table: str) -> str:
        """Return the name of a table as a statement has it."""
        return quoted(table) if self.schema is None else f"{quoted(self.schema)}.{quoted(table)}"


class Session:
    """A DuckDB connection, and the sources whose topics are its tables.

    connection: a new one in memory by default, with times in UTC, which does not download extensions by itself.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self.attached: list[Attached] = []
        self.datasets: list[TopicDataset] = []  # of the statement that runs
        self.before_rows: Callable[[], None] | None = None  # called once, before rows of a result are returned
        self.has_rows = False  # of the result of the statement that runs, or none are to come
        with needing("SQL", extra="sql"):
            import duckdb

        self.duckdb = duckdb
        if connection is None:
            connection = duckdb.connect()
            connection.sql("SET timezone = 'UTC'")
            connection.sql("SET autoinstall_known_extensions = false")
        self.connection = connection

    def attach(self, attached: Attached) -> None:
        """Make the topics of a source tables. Raises OptionError for a schema that exists already."""
        if any(each.schema == attached.schema for each in self.attached):
            raise OptionError(f"the schema {attached.schema or 'main'!r} is attached twice")
        if attached.schema is not None:
            try:
                self.connection.sql(f"CREATE SCHEMA {quoted(attached.schema)}")
            except self.duckdb.Error as error:
                raise OptionError(f"schema {attached.schema!r}: {_text(error)}") from None
        self.attached.append(attached)

    def statements(self, text: str) -> list[str]:
        """Return the statements of a text. Raises OptionError for wrong syntax."""
        try:
            return [each.query for each in self.connection.extract_statements(text)]
        except self.duckdb.Error as error:
            raise OptionError(_text(error)) from None

    def run(self, statement: str) -> pa.RecordBatchReader | None:
        """Run one statement; return its result as a reader, None without one.

        Raises OptionError for what DuckDB says is wrong, and what reading topics raises: LogError, BrokerError, ...
        """
        self.datasets.clear()
        self.has_rows = False
        with _Errors(self):
            self._register(statement)
            relation: duckdb.DuckDBPyRelation | None = self.connection.sql(statement)
            if relation is None or self._has_no_rows(statement, relation.columns):
                return None
            reader = (
                relation.to_arrow_reader(ROWS)
                if hasattr(relation, "to_arrow_reader")
                else relation.fetch_record_batch(ROWS)  # DuckDB 1.4
            )
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))

    def _has_no_rows(self, statement: str, columns: list[str]) -> bool:
        """Return whether a result is DuckDB's word for a statement without one, as of SET and CREATE VIEW."""
        kind = self.connection.extract_statements(statement)[-1].type
        return columns in (["Success"], ["Count"]) and kind != self.duckdb.StatementType.SELECT

    def register_all(self) -> None:
        """Register all tables with the offsets of now. Raises as reading offsets does.

        A table about the cluster that the account may not see is left out, with a warning.
        """
        self.datasets.clear()
        for attached in self.attached:
            alike = attached.alike
            for topics in alike.values():
                logger.warning("topics %s have no table: they differ in case only", " and ".join(map(repr, topics)))
            for table in attached.tables:
                if table.lower() in alike:
                    continue
                try:
                    self._register_table(attached, table)
                except (BrokerError, LogError) as error:
                    if table not in TABLES or table in attached.logs.topics:
                        raise
                    logger.warning("the table %s is missing: %s", attached.qualified(table), error)

    def close(self) -> None:
        """Close the connection, and drop what errors refer to: DuckDB lists at exit what is still there."""
        for dataset in self.datasets:
            dataset.error = None
        self.datasets.clear()
        self.connection.close()

    def interrupt(self) -> None:
        """End the statement that another thread runs."""
        for dataset in self.datasets:
            dataset.stop()
        self.connection.interrupt()

    def explained(self, message: str) -> str:
        """Return DuckDB's message for a missing table, with the name of ours that is meant in place of its guess."""
        missing = MISSING_TABLE.match(message)
        if missing is None:
            return message
        for attached in self.attached:
            if same := attached.alike.get(missing[1].strip('"').lower()):
                return (
                    f"topics {' and '.join(map(repr, same))} differ in case only, which SQL does not see; attach one "
                    "of them as kafka://HOST:PORT/TOPIC, or its partition directory"
                )
        known = [table for attached in self.attached for table in attached.tables]
        hint = did_you_mean(missing[1], known) or f"; tables: {', '.join(known)[:500]}"
        return f"{message.partition(';')[0]}{hint}"

    @property
    def rows_read(self) -> int:
        """Records that the last statement has read so far."""
        return sum(each.rows_read for each in self.datasets)

    @property
    def rows_planned(self) -> int:
        """Offsets that the last statement reads, as far as it is known: it may read fewer records."""
        return sum(each.rows_planned for each in self.datasets)

    @property
    def own_tables(self) -> dict[str, str]:
        """The statements that made the tables and views of the user, by their names."""
        rows = self.connection.execute(
            "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal UNION ALL "
            "SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        ours = {(each.schema or "main", table.lower()) for each in self.attached for table in each.tables}
        return {
            name if schema == "main" else f"{quoted(schema)}.{quoted(name)}": made or ""
            for schema, name, made in rows
            if not name.startswith(HIDDEN) and (schema, name.lower()) not in ours
        }

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        with _Errors(self):
            for batch in reader:
                self._return_rows()
                yield batch
        self._return_rows()

    def _return_rows(self) -> None:
        if not self.has_rows:
            self.has_rows = True
            if self.before_rows is not None:
                self.before_rows()

    def _register(self, statement: str) -> None:
        """Register the tables that a statement names. Too many do no harm: their records are not read."""
        text = self._with_views(statement.lower())
        is_about_tables = any(word in text for word in CATALOG_WORDS) or DESCRIBE_ALL.fullmatch(statement) is not None
        for attached in self.attached:
            if attached.schema is not None and attached.schema.lower() not in text and not is_about_tables:
                continue
            alike = attached.alike
            for table in attached.tables:
                is_named = _is_named(table.lower(), text)
                if (is_about_tables or is_named) and table.lower() not in alike:
                    self._register_table(attached, table, only_columns=not is_named)

    def _with_views(self, text: str) -> str:
        """Return a statement followed by the views of the user that it names, and those that they name."""
        views = {name.rpartition(".")[2].strip('"').lower(): made.lower() for name, made in self.own_tables.items()}
        while named := [name for name in views if name in text]:
            text += "".join(f"\n{views.pop(name)}" for name in named)
        return text

    def _register_table(self, attached: Attached, table: str, *, only_columns: bool = False) -> None:
        """Register a table. only_columns: it is listed, and its rows cannot be asked for, as its name is not there."""
        hidden = f"{HIDDEN}{attached.schema or ''} {table}"
        if table not in TABLES or table in attached.logs.topics:
            source: Any = attached.dataset(table)
            self.datasets.append(source)
        elif only_columns:
            source = TABLES[table][0].empty_table()
        else:
            source = cluster_table(table, attached.logs)
        self.connection.register(hidden, source)
        self.connection.execute(f"CREATE OR REPLACE VIEW {attached.qualified(table)} AS FROM {quoted(hidden)}")


class _Errors:
    """A block in which DuckDB's errors become ours, and those of reading topics come out as they were raised."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, Exception):
            return
        for dataset in self._session.datasets:
            if isinstance(dataset.error, KwireError):
                raise dataset.error from None
        duckdb = self._session.duckdb
        if isinstance(error, duckdb.InterruptException):
            raise KeyboardInterrupt from None
        if isinstance(error, duckdb.CatalogException):
            raise OptionError(self._session.explained(_text(error))) from None
        if isinstance(error, duckdb.Error | pa.ArrowException):
            raise OptionError(_text(error)) from None


def _is_named(table: str, text: str) -> bool:
    """Return whether a table is a word of a statement; both in lower case."""
    return table in text and re.search(rf"(?<![a-z0-9_]){re.escape(table)}(?![a-z0-9_])", text) is not None


def quoted(name: str) -> str:
    """Return a name in quotes, as SQL has it."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _text(error: Exception) -> str:
    """Return the message of an error in one line, without the lines that point at a place in the statement."""
    lines = str(error).partition("\nLINE ")[0].splitlines()
    return "; ".join(line.strip().removesuffix("!") for line in lines if line.strip())
