"""Functions on columns: Kafka's messages as structs and back, and the prefix of a schema registry.

    from kwire.spark.functions import from_kafka, to_kafka, schema_registry_id, schema_registry_payload

    df.select(from_kafka("value", "MetadataResponse", 9).alias("m")).select("m.topics.name")

In the manner of pyspark.sql.avro.functions: on a Column or a column's name, on classic Spark and Spark Connect. They
are Arrow UDFs: batches of columns go in and out, and executors need kwire. Types, options, costs: docs/functions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kwire.errors import OptionError
from kwire.spark.message_types import message_class, portable_message, struct_type
from kwire.spark.options.values import parse_choice, parse_flag, refuse_unknown

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

__all__ = ["from_kafka", "schema_registry_id", "schema_registry_payload", "to_kafka"]

PAGE = "docs/functions.md"
NAMES = ("mode", "header", "prefixed")


def from_kafka(
    data: Column | str, message: str, version: int | None, options: Mapping[str, Any] | None = None
) -> Column:
    """Binary messages as a struct with the fields of that version, null for null.

    message: a name such as "MetadataResponse", the path of a definition (.json, on the driver), or its text.
    options: mode: FAILFAST (default) fails the query at a message that cannot be read, PERMISSIVE makes it null;
    header: true if the messages are frames, with length and header; prefixed: true if an int16 stands before each, as
    in internal topics: the version, and with version None the struct has the fields of all versions.
    Raises OptionError, SchemaError, UnsupportedVersion at once.
    """
    given = _options(options)
    refuse_unknown(given, NAMES, "from_kafka", PAGE)
    reading = _Reading(
        message=portable_message(message),
        version=version,
        permissive=parse_choice(given, "mode", "FAILFAST", ("FAILFAST", "PERMISSIVE")) == "PERMISSIVE",
        header=parse_flag(given, "header", False),
        prefixed=parse_flag(given, "prefixed", False),
    )
    spec = message_class(reading.message).SPEC
    if reading.header and reading.prefixed:
        raise OptionError("Only one of the following options can be specified: header, prefixed")
    if reading.header and spec.kind not in ("request", "response"):
        raise OptionError(f"Option 'header': {spec.name} is no request or response, so no header stands before it")
    if version is None and not reading.prefixed:
        raise OptionError("version: None needs option 'prefixed'; only then do the messages tell their versions")
    kind = struct_type(spec, version)

    def from_kafka(data: pa.Array) -> pa.Array:
        return read_messages(data, reading)

    return _udf(from_kafka, kind)(data)


def to_kafka(data: Column | str, message: str, version: int) -> Column:
    """Structs as binary messages of that version, null for null; the way back of from_kafka.

    message: as in from_kafka. Fields that the struct lacks have their defaults. Fails the query for a column that is
    no field, and for a value that does not fit. Raises OptionError, SchemaError, UnsupportedVersion at once.
    """
    message = portable_message(message)
    struct_type(message_class(message).SPEC, version)

    def to_kafka(data: pa.Array) -> pa.Array:
        return write_messages(data, message, version)

    return _udf(to_kafka, "binary")(data)


def schema_registry_id(data: Column | str, headers: Column | str | None = None, *, key: bool = False) -> Column:
    """The schema a key or value was written with, as text: `42`, or the GUID in its usual form. Null without one.

    data: binary with Confluent's prefix. headers: the column of that name; its `__value_schema_id` (key: true, its
    `__key_schema_id`) comes before the prefix.
    """
    header = "__key_schema_id" if key else "__value_schema_id"
    if headers is None:

        def schema_registry_id(data: pa.Array) -> pa.Array:
            return _registry().schema_ids(data)

        return _udf(schema_registry_id, "string")(data)

    def schema_registry_id_with_headers(data: pa.Array, headers: pa.Array) -> pa.Array:
        return _registry().schema_ids(data, headers, header)

    return _udf(schema_registry_id_with_headers, "string")(data, headers)


def schema_registry_payload(
    data: Column | str, headers: Column | str | None = None, *, key: bool = False, protobuf: bool = False
) -> Column:
    """The payload behind Confluent's prefix; the whole value if a header names the schema. Null without a schema.

    protobuf: skip the message indexes too. data, headers, key: as in schema_registry_id.
    """
    header = "__key_schema_id" if key else "__value_schema_id"
    if headers is None:

        def schema_registry_payload(data: pa.Array) -> pa.Array:
            return _registry().payloads(data, protobuf=protobuf)

        return _udf(schema_registry_payload, "binary")(data)

    def schema_registry_payload_with_headers(data: pa.Array, headers: pa.Array) -> pa.Array:
        return _registry().payloads(data, headers, header, protobuf=protobuf)

    return _udf(schema_registry_payload_with_headers, "binary")(data, headers)


def _options(options: Mapping[str, Any] | None) -> dict[str, str]:
    """Options as sources get them: lower-case keys, text; booleans are taken as well."""
    return {k.lower(): str(v).lower() if isinstance(v, bool) else str(v) for k, v in (options or {}).items()}


def _udf(function: Callable[..., pa.Array], kind: DataType | str) -> Callable[..., Column]:
    """The function on columns. Its hints, which name pyarrow of this module, tell Spark what it takes."""
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in the stubs of all releases

    made: Callable[..., Column] = arrow_udf(function, kind)
    return made


# In the workers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What one from_kafka does. message: portable. version: None for all."""

    message: str
    version: int | None
    permissive: bool
    header: bool
    prefixed: bool


def read_messages(data: pa.Array, reading: _Reading) -> pa.StructArray:
    """A struct for each message. Raises DecodeError or UnsupportedVersion with row and path unless permissive."""
    from kwire.spark.worker import prepare_worker

    prepare_worker()
    from kwire.plan.nested_columns import message_bounds

    if not reading.prefixed:
        return _reader(reading).read(data, permissive=reading.permissive)
    source, bounds = message_bounds(data)
    return _prefixed(reading).read_bounds(source, bounds, permissive=reading.permissive)


@lru_cache(maxsize=64)
def _reader(reading: _Reading) -> Any:
    from kwire.messages import registry
    from kwire.plan.nested_columns import NestedReader

    assert reading.version is not None
    spec, header = message_class(reading.message).SPEC, None
    if reading.header:
        name = "RequestHeader" if spec.kind == "request" else "ResponseHeader"
        header = registry.get(name).SPEC, spec.header_version(reading.version)
    return NestedReader(spec, reading.version, header=header)


@lru_cache(maxsize=64)
def _prefixed(reading: _Reading) -> Any:
    from kwire.plan.nested_versions import PrefixedReader

    return PrefixedReader(message_class(reading.message).SPEC, reading.version)


def write_messages(data: pa.Array, message: str, version: int) -> pa.BinaryArray:
    """The bytes of each struct. Raises OptionError for a wrong column, EncodeError with row and path for a value."""
    return _writer(message, version).write(data)


@lru_cache(maxsize=64)
def _writer(message: str, version: int) -> Any:
    from kwire.plan.nested_writing import NestedWriter

    cls = message_class(message)
    return NestedWriter(cls.SPEC, version, cls)


def _registry() -> Any:
    from kwire.spark.worker import prepare_worker

    prepare_worker()
    from kwire.spark import schema_registry

    return schema_registry
