"""Message definitions and their column types, for Spark's planner. Does not import pyarrow.

A message is specified in one of three forms:

    MetadataResponse                    the name of one of Kafka's, all releases together
    definitions/Order.json              a file on the driver, whose text is sent to the executors
    { "type": "data", "name": ...       the text of a definition
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kwire.errors import OptionError, UnsupportedVersion

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from kwire.messages.base import Message as MessageClass
    from kwire.schema import Field, Message, Struct

__all__ = ["message_class", "portable_message", "struct_type"]


def portable_message(message: str) -> str:
    """Return a form that is valid on every machine: the argument, or the text of the file it names.

    Raises OptionError for an unreadable file.
    """
    if not message.strip().endswith(".json"):
        return message
    try:
        return Path(message.strip()).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"Message '{message}': cannot read the file: {error}") from None


@lru_cache(maxsize=64)
def message_class(message: str) -> type[MessageClass]:
    """Return the class of a portable message. Raises OptionError for an unknown name, SchemaError for a definition."""
    from kwire import schema
    from kwire.messages import registry

    text = message.strip()
    if not text.startswith(("{", "//", "/*")):
        return registry.get(text)
    compiled: type[MessageClass] = schema.compile(schema.parse(text, file="definition"))
    return compiled


def struct_type(message: Message, version: int | None) -> StructType:
    """Return the columns of one version, or with None of all versions. Raises UnsupportedVersion."""
    if version is not None and version not in message.valid:
        raise UnsupportedVersion(f"{message.name}: no version {version}; versions are {message.valid}")
    return _struct(message.struct, version)


def _struct(struct: Struct, version: int | None) -> StructType:
    from pyspark.sql.types import StructField, StructType

    fields = (f for f in struct.fields if version is None or version in f.versions)
    return StructType([StructField(f.attr, _field(f, version)) for f in fields])


def _field(f: Field, version: int | None) -> DataType:
    from pyspark.sql.types import ArrayType

    element = _primitive(f.type) if f.struct is None else _struct(f.struct, version)
    return ArrayType(element) if f.is_array else element


def _primitive(kind: str) -> DataType:
    from pyspark.sql import types as t

    data_type: DataType = {
        "bool": t.BooleanType(),
        "int8": t.ByteType(),
        "int16": t.ShortType(),
        "uint16": t.IntegerType(),
        "int32": t.IntegerType(),
        "uint32": t.LongType(),
        "int64": t.LongType(),
        "float64": t.DoubleType(),
        "uuid": t.StringType(),
        "string": t.StringType(),
        "bytes": t.BinaryType(),
        "records": t.BinaryType(),
    }[kind]
    return data_type
