"""The columns that a sink accepts, and option `topic`, as in Spark's Kafka sink. Standard library only.

Columns are matched by name; others are ignored.
Source: KafkaWriter.validateQuery, KafkaRowWriter (spark-sql-kafka-0-10), whose error messages these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kwire.errors import OptionError, did_you_mean
from kwire.spark.options.option import text_option

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["LIVE_TYPES", "LOG_TYPES", "TOPIC", "check_columns"]

TOPIC = text_option(name="topic", value="string", meaning="The topic of all rows. Overrides the column `topic`.")

BYTES = ("string", "binary")
LIVE_TYPES: Mapping[str, tuple[str, ...]] = {
    "key": BYTES,
    "value": BYTES,
    "headers": ("array<struct<key:string,value:binary>>",),
    "topic": ("string",),
    "partition": ("int",),
}
LOG_TYPES: Mapping[str, tuple[str, ...]] = {
    **LIVE_TYPES,
    "offset": ("bigint",),
    "timestamp": ("timestamp",),
    "timestampType": ("int",),
}


def check_columns(schema: StructType, types: Mapping[str, tuple[str, ...]], *, topic: str | None) -> tuple[str, ...]:
    """Return the columns of a DataFrame that a sink writes, in the order of types.

    types: accepted types by name. topic: of the option, which overrides the column.
    Raises OptionError for a missing value or topic, and for a wrong type.
    """
    from kwire.spark.sail import struct_type

    given = {field.name: field.dataType.simpleString() for field in struct_type(schema).fields}
    if "value" not in given:
        accepted = ", ".join(f"{name} {' or '.join(allowed)}" for name, allowed in types.items())
        raise OptionError(
            f"Required attribute 'value' not found{did_you_mean('value', given)}; accepted columns: {accepted}"
        )
    if topic is not None:
        given.pop("topic", None)
    elif "topic" not in given:
        raise OptionError(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
        )
    for name, allowed in types.items():
        if name in given and given[name] not in allowed:
            raise OptionError(
                f"{name} attribute unsupported type {given[name]}: it must be {' or '.join(allowed)}; "
                "convert it with DataFrame operations"
            )
    return tuple(name for name in types if name in given)
