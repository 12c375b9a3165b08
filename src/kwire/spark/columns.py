"""The columns of `kafka-log` and `kafka-live`: those of Spark's Kafka source, in its order, and `_corrupt`.

Standard library only.
Source: KafkaRecordToRowConverter (spark-sql-kafka-0-10). All columns are nullable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.spark.options.given import schema_ddl
from kwire.spark.options.values import check_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kwire.spark.live.options import LiveOptions
    from kwire.spark.log.options import LogOptions

    Options = LogOptions | LiveOptions

__all__ = ["CORRUPT", "HEADERS", "TYPES", "choose_columns", "columns_of_schema", "render_ddl"]

HEADERS = "headers"
CORRUPT = "_corrupt"

# Name -> type as Spark's DataType.simpleString renders it.
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


def choose_columns(options: Options) -> tuple[str, ...]:
    """The columns of a query without a schema. Raises OptionError for unknown and repeated columns."""
    if options.columns is None:
        return tuple(
            name
            for name in TYPES
            if (name != HEADERS or options.include_headers) and (name != CORRUPT or options.mode == "PERMISSIVE")
        )
    check_columns(options.columns, TYPES)
    _check_corrupt(options.columns, options)
    return options.columns


def render_ddl(columns: tuple[str, ...], given: Mapping[str, str]) -> str:
    """Render a schema in Spark's DDL, `offset bigint, partition int`. given: the options as Spark passes them."""
    return schema_ddl({name: TYPES[name] for name in columns}, given)


def columns_of_schema(schema: StructType, options: Options) -> tuple[str, ...]:
    """The columns of a schema, in its order.

    A schema selects columns and does not convert them. Raises OptionError for any other type or nullability.
    """
    names = tuple(schema.fieldNames())
    if not names:
        raise OptionError(f"The schema: no columns; available: {', '.join(TYPES)}")
    check_columns(names, TYPES, "The schema")
    if options.columns is not None and options.columns != names:
        raise OptionError("Option 'columns': differs from the schema; remove one of them")
    for found in schema.fields:
        actual = found.dataType.simpleString()
        if actual != TYPES[found.name]:
            raise OptionError(
                f"The schema: column '{found.name}' is of type {TYPES[found.name]}, not {actual}; "
                "convert it with DataFrame operations"
            )
        # Spark requires the schema of the data and the declared schema to be equal.
        if not found.nullable or _has_required_parts(found.dataType.jsonValue()):
            raise OptionError(f"The schema: column '{found.name}' and its fields are nullable; remove NOT NULL")
    _check_corrupt(names, options)
    return names


def _has_required_parts(value: object) -> bool:
    if isinstance(value, dict):
        if value.get("nullable") is False or value.get("containsNull") is False:
            return True
        return any(_has_required_parts(part) for part in value.values())
    return isinstance(value, list) and any(_has_required_parts(part) for part in value)


def _check_corrupt(names: tuple[str, ...], options: Options) -> None:
    # Without the column, the row of a corrupt batch would look like a record with a null key and a null value.
    if options.mode == "PERMISSIVE" and CORRUPT not in names:
        raise OptionError(f"Option 'mode': PERMISSIVE requires column '{CORRUPT}'; add it, or use DROPMALFORMED")
