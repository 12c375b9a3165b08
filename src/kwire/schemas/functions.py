"""decode_arrow and encode_arrow: whole arrays, with the options of a SchemaChoice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kwire.errors import EncodeError, OptionError
from kwire.schemas.avro.resolution import Names
from kwire.schemas.choice import Mode, SchemaChoice, open_registry
from kwire.schemas.encoding import ValueEncoder
from kwire.schemas.parsed_schemas import ParsedSchemas
from kwire.schemas.registered import RegisteredSchema
from kwire.schemas.registry import Registry
from kwire.schemas.value_decoder import ValueDecoder

__all__ = ["decode", "decode_arrow", "encode", "encode_arrow", "schema_type", "union_type"]


def decode_arrow(
    values: pa.Array | pa.ChunkedArray,
    registry: Registry | str | os.PathLike[str],
    *,
    subject: str | None = None,
    schema: str | int | RegisteredSchema | None = None,
    mode: Mode = "failfast",
    topic: str | None = None,
    key: bool = False,
    message: str | None = None,
    columns: Sequence[str] | None = None,
    headers: pa.Array | None = None,
    names: Names = "any",
    recursive_field_max_depth: int = 0,
) -> pa.Array:
    """Decode values that serializers of a schema registry wrote; null to null.

    values: binary. registry: a Registry, or its URL or folder.
    subject, topic: whose latest schema all values are read as; topic and key name a subject (TopicNameStrategy).
    schema: another reader's schema: its text or id; "union" for the fields of all versions of the subject. Without
    subject, topic and schema, the result has the fields of the schemas in `values`.
    mode: failfast raises DecodeError for the first bad value, permissive makes it null, deadletter returns
    struct<value, error>.
    message: of a Protobuf schema, if it is not the first. columns: fields to decode. headers: of the records, as
    list<struct<key, value>>, if schema ids may be there. names: strict makes Avro values bad whose records have
    other full names than the reader's. recursive_field_max_depth: how many times an Avro record that contains itself is
    decoded, 1 to 15; what is deeper is left out. 0: such a schema is an error.
    Raises RegistryError, InvalidSchema, OptionError.
    """
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
    decoder = ValueDecoder(choice.resolve())
    return decoder.decode(_one_chunk(values), None if headers is None else _one_chunk(headers))


def encode_arrow(
    values: pa.Array | pa.ChunkedArray,
    registry: Registry | str | os.PathLike[str],
    *,
    subject: str | None = None,
    schema: str | int | RegisteredSchema | None = None,
    topic: str | None = None,
    key: bool = False,
    message: str | None = None,
) -> pa.Array:
    """Encode values with a registered schema, as binary with its id; null to null. The inverse of decode_arrow.

    subject, topic: whose latest schema is used, or the registered one with the text or id `schema`.
    Fields are matched by name. Raises EncodeError with row and path, RegistryError, InvalidSchema, OptionError.
    """
    encoder = _encoder(registry, subject=subject, schema=schema, topic=topic, key=key, message=message)
    return encoder.encode(_one_chunk(values))


def _encoder(
    registry: Registry | str | os.PathLike[str],
    *,
    subject: str | None = None,
    schema: str | int | RegisteredSchema | None = None,
    topic: str | None = None,
    key: bool = False,
    message: str | None = None,
) -> ValueEncoder:
    choice = SchemaChoice(registry=registry, subject=subject, topic=topic, key=key, schema=schema, message=message)
    return ValueEncoder(choice.resolve_for_encoding())


def decode(data: bytes | None, registry: Registry | str | os.PathLike[str], **options: Any) -> Any:
    """Decode one value to Python objects. options: as for decode_arrow."""
    return decode_arrow(pa.array([data], pa.binary()), registry, **options)[0].as_py()


def encode(value: Any, registry: Registry | str | os.PathLike[str], **options: Any) -> bytes | None:
    """Encode one value, a dict for a record. options: as for encode_arrow."""
    encoder = _encoder(registry, **options)
    try:
        array = pa.array([value], encoder.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise EncodeError(f"not a value of the schema: {error}") from None
    encoded: bytes | None = encoder.encode(array)[0].as_py()
    return encoded


def schema_type(
    registry: Registry | str | os.PathLike[str],
    *,
    subject: str | None = None,
    schema: str | int | RegisteredSchema | None = None,
    topic: str | None = None,
    key: bool = False,
    message: str | None = None,
) -> pa.DataType:
    """Return the Arrow type that decode_arrow returns with these options. Raises RegistryError, InvalidSchema."""
    choice = SchemaChoice(registry=registry, subject=subject, topic=topic, key=key, schema=schema, message=message)
    return ValueDecoder(choice.resolve()).result_type


def union_type(
    registry: Registry | str | os.PathLike[str], ids: Sequence[int | str], *, message: str | None = None
) -> pa.DataType:
    """Return the Arrow type with the fields of the schemas with these ids. Raises RegistryError, InvalidSchema."""
    if not ids:
        raise OptionError("no schema ids")
    opened = open_registry(registry)
    return ParsedSchemas(opened).union_type([opened.schema(each) for each in ids], message)


def _one_chunk(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
