"""Column functions for Kafka's messages and for values of schema registries.

    from kwire.spark.functions import from_kafka, from_registry

    df.select(from_kafka("value", "MetadataResponse", 9).alias("m")).select("m.topics.name")
    df.select(from_registry("value", "http://localhost:8081", topic="orders").alias("order"))

Modelled on pyspark.sql.avro.functions: they take a Column or a column's name, on classic Spark and Spark Connect. They
are Arrow UDFs, which process batches of columns, and require kwire on executors. Types, options, cost:
docs/functions.md and docs/schemas.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Literal

from kwire.errors import OptionError
from kwire.extras import needing
from kwire.spark.message_types import message_class, portable_message, struct_type
from kwire.spark.options.option import Option, check_names, choice, flag_option
from kwire.spark.plain_errors import without_traceback
from kwire.spark.process.worker import note_batch, warm_up

with needing("columns of messages", "spark"):
    import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

    from kwire.plan.nested_columns import NestedReader
    from kwire.plan.nested_versions import PrefixedReader
    from kwire.plan.nested_writing import NestedWriter
    from kwire.schemas import Registry
    from kwire.schemas.avro.resolution import Names
    from kwire.schemas.choice import Mode

__all__ = [
    "from_kafka",
    "from_registry",
    "schema_registry_id",
    "schema_registry_payload",
    "to_kafka",
    "to_registry",
]

PAGE = "docs/functions.md"
SOURCE_COLUMNS = 3

MODE = Option[Literal["FAILFAST", "PERMISSIVE"]](
    name="mode",
    parse=choice("FAILFAST", "PERMISSIVE"),
    default="FAILFAST",
    value="`FAILFAST` or `PERMISSIVE`",
    meaning="How to handle a message that cannot be decoded: fail the query, or return null.",
)
HEADER = flag_option(name="header", default=False, meaning="Whether messages are whole frames, with length and header.")
PREFIXED = flag_option(
    name="prefixed",
    default=False,
    meaning="Whether an int16 precedes each message, as in internal topics: its version. With version None the struct "
    "has the fields of all versions.",
)
OPTIONS: tuple[Option[object], ...] = (MODE, HEADER, PREFIXED)


def from_kafka(
    data: Column | str, message: str, version: int | None, options: Mapping[str, str | bool] | None = None
) -> Column:
    """Convert binary messages to structs with the fields of one version; null to null.

    message: a name such as "MetadataResponse", the path of a definition (.json, on the driver), or its text.
    options: mode, header, prefixed; see docs/functions.md. version None requires option prefixed.
    Raises OptionError, SchemaError, UnsupportedVersion when it is called.
    """
    given = {k.lower(): str(v).lower() if isinstance(v, bool) else str(v) for k, v in (options or {}).items()}
    check_names(given, OPTIONS, {}, source="from_kafka", page=PAGE)
    config = DecodeConfig(
        message=portable_message(message),
        version=version,
        permissive=MODE.of(given) == "PERMISSIVE",
        header=HEADER.of(given),
        prefixed=PREFIXED.of(given),
    )
    spec = message_class(config.message).SPEC
    if config.header and config.prefixed:
        raise OptionError("Only one of the following options can be specified: header, prefixed")
    if config.header and spec.kind not in ("request", "response"):
        raise OptionError(f"Option 'header': '{spec.name}' is not a request or response, so it has no header")
    if version is None and not config.prefixed:
        raise OptionError("version: None requires option 'prefixed', with which messages include their version")
    kind = struct_type(spec, version)

    def from_kafka(data: pa.Array) -> pa.Array:
        return read_messages(data, config)

    return _udf(from_kafka, kind)(data)


def to_kafka(data: Column | str, message: str, version: int) -> Column:
    """Convert structs to binary messages of one version; null to null. The inverse of from_kafka.

    message: as in from_kafka. Fields that the struct lacks get their defaults. A column that is not a field, and a
    value out of range, fail the query. Raises OptionError, SchemaError, UnsupportedVersion when it is called.
    """
    message = portable_message(message)
    struct_type(message_class(message).SPEC, version)

    def to_kafka(data: pa.Array) -> pa.Array:
        return write_messages(data, message, version)

    return _udf(to_kafka, "binary")(data)


def schema_registry_id(data: Column | str, headers: Column | str | None = None, *, key: bool = False) -> Column:
    """Return the schema id of a key or value, as text: `42`, or a GUID. Null without an id.

    data: binary with Confluent's prefix. headers: the column of that name, whose `__value_schema_id` (with key true,
    `__key_schema_id`) takes precedence over the prefix.
    """
    header = "__key_schema_id" if key else "__value_schema_id"

    def schema_registry_id(*columns: pa.Array) -> pa.Array:
        return _schema_ids(*columns, header=header)

    return _udf(schema_registry_id, "string")(data, *(() if headers is None else (headers,)))


def schema_registry_payload(
    data: Column | str, headers: Column | str | None = None, *, key: bool = False, protobuf: bool = False
) -> Column:
    """Return the payload after Confluent's prefix, or the whole value if a header has the schema id.

    Null without an id. protobuf: skip the message indexes too. data, headers, key: as in schema_registry_id.
    """
    header = "__key_schema_id" if key else "__value_schema_id"

    def schema_registry_payload(*columns: pa.Array) -> pa.Array:
        return _payloads(*columns, header=header, protobuf=protobuf)

    return _udf(schema_registry_payload, "binary")(data, *(() if headers is None else (headers,)))


def from_registry(
    column: Column | str,
    registry: Registry | str,
    *,
    subject: str | None = None,
    schema: str | int | None = None,
    mode: Mode = "failfast",
    topic: str | None = None,
    key: bool = False,
    message: str | None = None,
    headers: Column | str | None = None,
    source: Sequence[Column | str] = (),
    columns: Sequence[str] | None = None,
    names: Names = "any",
    recursive_field_max_depth: int = 0,
) -> Column:
    """Convert values that serializers of a schema registry wrote to structs; null to null.

    registry: a kwire.schemas.Registry, or its URL or folder.
    subject, topic: whose latest schema all values are read as; topic and key name a subject (TopicNameStrategy).
    schema: another reader's schema: its text or id; "union" for the fields of all versions of the subject.
    mode: failfast fails the query at the first bad value, permissive returns null, deadletter struct<value, error>.
    message: of a Protobuf schema, if it is not the first. headers: the column of that name, if ids may be there.
    source: the columns topic, partition and offset, which errors of failfast then name.
    columns: the fields to decode, of Avro also dotted paths; None for all. Others are skipped.
    names: strict makes Avro values bad whose records have other full names than the reader's.
    recursive_field_max_depth: how many times an Avro record that contains itself is decoded, as in Spark's from_avro.
    The driver asks the registry for the type when this is called. Raises RegistryError, InvalidSchema, OptionError.
    """
    from kwire.schemas.choice import SchemaChoice
    from kwire.spark.registry_columns import decoded_type, read_registry, to_data_type

    if source and len(source) != SOURCE_COLUMNS:
        raise OptionError("source: expected the columns topic, partition and offset")
    choice = SchemaChoice(
        registry=registry,
        subject=subject,
        topic=topic,
        key=key,
        schema=schema,
        message=message,
        mode=mode,
        names=names,
        recursive_field_max_depth=recursive_field_max_depth,
        columns=None if columns is None else tuple(columns),
    )
    chosen, has_headers = choice.resolve(), headers is not None
    kind = to_data_type(decoded_type(chosen))

    def from_registry(*batch: pa.Array) -> pa.Array:
        return read_registry(batch, chosen, has_headers)

    return _udf(from_registry, kind)(column, *(() if headers is None else (headers,)), *source)


def to_registry(
    column: Column | str,
    registry: Registry | str,
    *,
    subject: str | None = None,
    schema: str | int | None = None,
    topic: str | None = None,
    key: bool = False,
    message: str | None = None,
) -> Column:
    """Convert structs to binary with the id of a registered schema; null to null. The inverse of from_registry.

    subject, topic: whose latest schema is used, or the registered one with the text or id `schema`. Fields are matched
    by name. A column that is not a field, and a value that does not fit, fail the query.
    Raises RegistryError, InvalidSchema, OptionError when it is called.
    """
    from kwire.schemas.choice import SchemaChoice
    from kwire.spark.registry_columns import encoder_of, write_registry

    choice = SchemaChoice(registry=registry, subject=subject, topic=topic, key=key, schema=schema, message=message)
    chosen = choice.resolve_for_encoding()
    encoder_of(chosen)

    def to_registry(data: pa.Array) -> pa.Array:
        return write_registry(data, chosen)

    return _udf(to_registry, "binary")(column)


def _udf(function: Callable[..., pa.Array], kind: DataType | str) -> Callable[..., Column]:
    """Return an Arrow UDF; Spark derives its input from the annotations, which refer to this module's pyarrow."""
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in the stubs of all releases

    @wraps(function)
    def in_worker(*columns: pa.Array) -> pa.Array:
        with without_traceback():
            warm_up()
            note_batch(columns)
            return function(*columns)

    udf: Callable[..., Column] = arrow_udf(in_worker, kind)
    return udf


# ---- in workers


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeConfig:
    """The arguments of from_kafka. message: portable. version: None for all."""

    message: str
    version: int | None
    permissive: bool
    header: bool
    prefixed: bool


def read_messages(data: pa.Array, config: DecodeConfig) -> pa.StructArray:
    """Decode messages to structs. Raises DecodeError, UnsupportedVersion with row and path unless permissive."""
    from kwire.plan.nested_columns import message_bounds

    if not config.prefixed:
        return _reader(config).read(data, permissive=config.permissive)
    source, bounds = message_bounds(data)
    return _prefixed_reader(config).read_bounds(source, bounds, permissive=config.permissive)


@lru_cache(maxsize=64)
def _reader(config: DecodeConfig) -> NestedReader:
    from kwire.messages import registry
    from kwire.plan.nested_columns import NestedReader

    assert config.version is not None
    spec, header = message_class(config.message).SPEC, None
    if config.header:
        name = "RequestHeader" if spec.kind == "request" else "ResponseHeader"
        header = registry.get(name).SPEC, spec.header_version(config.version)
    return NestedReader(spec, config.version, header=header)


@lru_cache(maxsize=64)
def _prefixed_reader(config: DecodeConfig) -> PrefixedReader:
    from kwire.plan.nested_versions import PrefixedReader

    return PrefixedReader(message_class(config.message).SPEC, config.version)


def write_messages(data: pa.Array, message: str, version: int) -> pa.BinaryArray:
    """Encode structs. Raises OptionError for a wrong column; EncodeError, with row and path, for a value."""
    return _writer(message, version).write(data)


@lru_cache(maxsize=64)
def _writer(message: str, version: int) -> NestedWriter:
    from kwire.plan.nested_writing import NestedWriter

    cls = message_class(message)
    return NestedWriter(cls.SPEC, version, cls)


def _schema_ids(data: pa.Array, headers: pa.Array | None = None, *, header: str) -> pa.StringArray:
    from kwire.schemas.wire_format import schema_ids

    return schema_ids(data, headers, header)


def _payloads(data: pa.Array, headers: pa.Array | None = None, *, header: str, protobuf: bool) -> pa.BinaryArray:
    from kwire.schemas.wire_format import payloads

    return payloads(data, headers, header, protobuf=protobuf)
