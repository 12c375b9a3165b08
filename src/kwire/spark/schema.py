"""The schema of a query: its columns, and the options of a table. Standard library only.

    CREATE TABLE ... USING      passes the options of the table, and stores its schema
    reading a table             passes the stored schema, and none of the options

The schema of a table therefore has its options, in the comment of the first column, where readers find them.
The columns of `kafka-log` and `kafka-live` are as in Spark's Kafka source, in its order, and `_corrupt`. All columns
are nullable.
Source: Spark 4.1 to 4.3, V2SessionCatalog.createTable, PythonDataSourceV2.getTable; KafkaRecordToRowConverter
(spark-sql-kafka-0-10).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qsl, urlencode

from kwire.errors import OptionError, did_you_mean
from kwire.spark.arrow_types import Ddl
from kwire.spark.offsets import EARLIEST, LATEST, GlobalOffset
from kwire.spark.options.option import is_table, user_options
from kwire.spark.options.query import NO_LIMITS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType

    from kwire.spark.decoded_columns import DecodedColumn
    from kwire.spark.live.options import LiveOptions
    from kwire.spark.log.options import LogOptions
    from kwire.spark.options.query import QueryOptions

    Options = TypeVar("Options", bound=QueryOptions)

__all__ = [
    "CORRUPT",
    "HEADERS",
    "TYPES",
    "choose_columns",
    "column_types",
    "columns_of_schema",
    "effective_options",
    "render_schema",
    "resolve_columns",
    "select_columns",
]

SAMPLE = 1000
"""Values that the type of a column is inferred from."""
COMMENT = "options of the table: "
UNENCODED = "/:,.*-_[]{}"  # in the comment; quotes and backslashes are encoded
SECRET = re.compile(
    r"password|secret|token|jaas|credential|user[._]info|connection_string|kwargs|(^storage\.|\.|_)key$"
)

HEADERS = "headers"
CORRUPT = "_corrupt"
TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key:string,value:binary>>",
    CORRUPT: "string",
}
"""The columns of kafka-log and kafka-live, with types as Spark's DataType.simpleString renders them."""


def effective_options(options: Mapping[str, str], schema: StructType | None = None) -> dict[str, str]:
    """Return the options of a query: its own, and its table's unless it overrides them.

    Names are in lower case. schema: as passed to the reader; None for a write. Raises OptionError if both are empty.
    """
    of_table: dict[str, str] = {}
    if schema is not None and schema.fields:
        before, separator, stored = schema.fields[0].metadata.get("comment", "").partition(COMMENT)
        if separator and not before:
            of_table = dict(parse_qsl(stored, keep_blank_values=True))
    effective = of_table | user_options(options)
    if not effective:
        remedy = (
            "create the table without a list of columns, which stores its options; or set them in the query: "
            "spark.read.option(...).table('t'), SELECT ... FROM t WITH (`path` '...')"
            if schema is not None
            else "use df.writeTo('t').option(...).append(), or INSERT INTO t WITH (`topic` '...') SELECT ..."
        )
        raise OptionError(f"The query has no options. Spark passes none of a table's to a Python source: {remedy}")
    return effective


def render_schema(
    types: Mapping[str, str], options: Mapping[str, str], decoded: Mapping[str, DecodedColumn] | None = None
) -> Ddl:
    """Render a schema in Spark's DDL, `offset bigint, partition int`; for a table, with its options in a comment.

    types: column types by name. options: as Spark passes them. decoded: columns that tasks decode.
    Raises OptionError for a secret among a table's options.
    """
    ddl = {name: each.ddl for name, each in (decoded or {}).items()}
    columns = [f"{name} {ddl.get(name, kind)}" for name, kind in types.items()]
    if is_table(options):
        own = user_options(options)
        for name in own:
            if SECRET.search(name):
                raise OptionError(
                    f"Option '{name}' cannot be stored in a table, where everyone who can see the table's schema can "
                    f"read it; set it in each query: spark.read.option('{name}', ...).table(...), or "
                    f"SELECT ... FROM t WITH (`{name}` '...')"
                )
        columns[0] += f" COMMENT '{COMMENT}{urlencode(own, safe=UNENCODED)}'"
    return Ddl(", ".join(columns), {**types, **{name: each.type for name, each in (decoded or {}).items()}})


def columns_of_schema(schema: StructType, types: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of a schema, in its order. types: of the columns that the source has.

    A schema selects columns and does not convert them. Raises OptionError for any other type or nullability.
    """
    names = tuple(schema.fieldNames())
    if not names:
        raise OptionError(f"The schema: no columns; available: {', '.join(types)}")
    _check_columns(names, types, "The schema")
    for field in schema.fields:
        actual = field.dataType.simpleString()
        if actual != types[field.name]:
            raise OptionError(
                f"The schema: column '{field.name}' is of type {types[field.name]}, not {actual}; "
                "convert it with DataFrame operations"
            )
        # Spark requires the schema of the data and the declared schema to be equal.
        if not field.nullable or _has_required_parts(field.dataType.jsonValue()):
            raise OptionError(f"The schema: column '{field.name}' and its fields are nullable; remove NOT NULL")
    return names


def select_columns(types: Mapping[str, str], columns: Sequence[str]) -> dict[str, str]:
    """Return the types of the columns in option `columns`. Raises OptionError for unknown and repeated ones."""
    _check_columns(columns, types, "Option 'columns'")
    return {name: types[name] for name in columns}


def resolve_columns(
    options: Options, reader: Callable[[Options, tuple[str, ...]], DataSourceReader], schema: StructType | None = None
) -> Options:
    """Ask the registries of options for the types of columns. schema: of the user or a table.

    reader: of a batch query, for a sample of values whose type is inferred.
    Raises OptionError, RegistryError, InvalidSchema; the errors of reading.
    """
    if not options.decoding:
        return options
    from kwire.spark.decoded_columns import resolve_decoding  # imports pyarrow

    def sample(column: str) -> Iterator[pa.Array]:
        every = GlobalOffset(EARLIEST), GlobalOffset(LATEST)
        plain = replace(options, start=every[0], end=every[1], decoding=(), limits=NO_LIMITS)
        return _first_values(reader(plain, (column,)))

    wanted = {} if schema is None else {each.name: each.dataType.simpleString() for each in schema.fields}
    return replace(options, decoded=resolve_decoding(options.decoding, options.topic, wanted, sample))


def _first_values(reader: DataSourceReader) -> Iterator[pa.Array]:
    """Return the first values of a column, SAMPLE in all tasks together."""
    left, tasks = SAMPLE, reader.partitions()
    for number, task in enumerate(tasks):
        share = -(-left // (len(tasks) - number))
        for batch in reader.read(task):
            values = batch.column(0).drop_null()[:share]  # type: ignore[union-attr]
            yield values
            left, share = left - len(values), share - len(values)
            if not share:
                break


def column_types(options: LogOptions | LiveOptions) -> dict[str, str]:
    """Return the columns of kafka-log or kafka-live with their types."""
    return TYPES | {name: each.kind for name, each in options.decoded.items()}


def choose_columns(options: LogOptions | LiveOptions, schema: StructType | None = None) -> tuple[str, ...]:
    """Return the columns of kafka-log or kafka-live: of the schema, of option `columns`, or the default ones.

    Raises OptionError for invalid columns.
    """
    if schema is not None:
        names = columns_of_schema(schema, column_types(options))
        if options.columns not in (None, names):
            raise OptionError("Option 'columns': differs from the schema; remove one of them")
    elif options.columns is not None:
        names = tuple(select_columns(TYPES, options.columns))
    else:
        hidden = {HEADERS: not options.include_headers, CORRUPT: options.mode != "PERMISSIVE"}
        names = tuple(name for name in TYPES if not hidden.get(name))
    for name in options.decoded:
        if name not in names:
            raise OptionError(f"Options '{name}.*': require column '{name}'; add it, or remove the options")
    # Without the column, the row of a corrupt batch would look like a record with a null key and a null value.
    if options.mode == "PERMISSIVE" and CORRUPT not in names:
        raise OptionError(f"Option 'mode': PERMISSIVE requires column '{CORRUPT}'; add it, or use DROPMALFORMED")
    return names


def _check_columns(names: Sequence[str], known: Iterable[str], where: str) -> None:
    """Raise OptionError for unknown and repeated columns. where: what names them."""
    known = list(known)
    for name in names:
        if name not in known:
            raise OptionError(
                f"{where}: unknown column '{name}'{did_you_mean(name, known)}; available: {', '.join(known)}"
            )
    if len(set(names)) < len(names):
        raise OptionError(f"{where}: duplicate column in {', '.join(names)}")


def _has_required_parts(value: object) -> bool:
    if isinstance(value, dict):
        if value.get("nullable") is False or value.get("containsNull") is False:
            return True
        return any(_has_required_parts(part) for part in value.values())
    return isinstance(value, list) and any(_has_required_parts(part) for part in value)
