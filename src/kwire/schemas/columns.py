"""decode_arrow and encode_arrow: whole columns, with a choice of the reader's schema and of what errors do."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

import pyarrow as pa

from kwire.errors import DecodeError, EncodeError, InvalidSchema, Malformed, OptionError, did_you_mean
from kwire.schemas.avro.resolution import Names, check_names
from kwire.schemas.decoder import Decoded, RowError
from kwire.schemas.decoding import ReaderDecoder, UnionDecoder, WriterSchemas, union_of
from kwire.schemas.formats import ParsedSchema, ValueSchema, make_encoder, parse_schema
from kwire.schemas.registered import RegisteredSchema, SchemaType
from kwire.schemas.registry import Registry, subject_name
from kwire.schemas.wire_format import encode_path

__all__ = [
    "ColumnDecoder",
    "ColumnEncoder",
    "Mode",
    "Target",
    "decode",
    "decode_arrow",
    "encode",
    "encode_arrow",
    "schema_type",
    "union_type",
]

Mode = Literal["failfast", "permissive", "deadletter"]
LATEST, UNION = "latest", "union"
JSON_SCHEMA_WORDS = {"$schema", "$id", "$ref", "properties", "oneOf", "anyOf", "allOf", "enum", "const"}
NAMES_ELSEWHERE = {
    "PROTOBUF": "a Protobuf message of another name is always a bad value",
    "JSON": "types of JSON Schema have no names",
}
AVRO_TYPES = {"record", "enum", "fixed", "map", "error"}


def open_registry(registry: Registry | str | os.PathLike[str]) -> Registry:
    """Return the registry at a URL or in a folder, or the given one; a log directory or cluster has it as `_schemas`.

    Raises OptionError, RegistryError, LogError.
    """
    if isinstance(registry, Registry):
        return registry
    text = os.fspath(registry)  # a topic is read here, on the driver
    if text.lower().startswith("kafka://") or os.path.isdir(os.path.join(text, "_schemas-0")):
        return Registry.from_topic(text)
    return Registry(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The reader's or writer's schema, as an option names it, resolved once.

    schema: None for the union of subject's versions, or with subject None, of the ids in each array. message: of
    Protobuf. names: which of Avro match, for decoding.
    """

    schema: RegisteredSchema | None
    subject: str | None
    message: str | None
    key: bool
    names: Names = "any"

    @classmethod
    def resolve(
        cls,
        registry: Registry,
        *,
        subject: str | None,
        schema: str | int | RegisteredSchema | None,
        topic: str | None,
        key: bool,
        message: str | None,
        names: Names = "any",
    ) -> Target:
        """Ask the registry for the schema that options name. Raises OptionError, RegistryError."""
        if subject is not None and topic is not None:
            raise OptionError("subject and topic are mutually exclusive")
        name = subject_name(topic, key=key) if topic is not None else subject
        registered: RegisteredSchema | None = None
        if isinstance(schema, RegisteredSchema):
            registered = schema
        elif isinstance(schema, int):
            registered = registry.schema(schema)
        elif schema is None or schema == LATEST:
            if name is not None:
                registered = registry.latest(name)
            elif schema == LATEST:
                raise OptionError("schema: 'latest' requires subject or topic")
        elif schema != UNION:
            registered = RegisteredSchema(text=schema, type=_type_of(schema, registry, name))
        _check_names(names, registered)
        return cls(schema=registered, subject=name, message=message, key=key, names=names)

    def value_schema(self, registry: Registry) -> ValueSchema:
        """Parse the schema. Raises InvalidSchema, RegistryError."""
        assert self.schema is not None
        return parse_schema(registry, self.schema).named(self.message)

    def union(self, registry: Registry) -> pa.DataType:
        """Return the type of all versions of the subject. Raises OptionError without one."""
        if self.subject is None:
            raise OptionError("one of subject, topic and schema is required")
        writers = WriterSchemas(registry)
        versions = [registry.version(self.subject, each) for each in registry.versions(self.subject)]
        if all(each.id is not None for each in versions):
            return union_of(registry, [cast("int", each.id) for each in versions], self.message)
        parsed: list[ParsedSchema] = [parse_schema(writers.registry, each) for each in versions]
        from kwire.schemas.unions import merge_types

        return merge_types(each.named(self.message).arrow_type() for each in parsed)


def _check_names(names: Names, reader: RegisteredSchema | None) -> None:
    """Refuse strict names where there are none to compare. Raises OptionError."""
    check_names(names)
    if names == "any":
        return
    if reader is None:
        raise OptionError("names: strict requires the schema of a reader, not a union")
    if reader.type != "AVRO":
        raise OptionError(f"names: strict is for Avro; {NAMES_ELSEWHERE[reader.type]}")


def _type_of(text: str, registry: Registry, subject: str | None) -> SchemaType:
    """Return the format of a schema's text; that of the subject if the text could be Avro or JSON Schema."""
    stripped = text.strip()
    if not stripped:
        raise OptionError("schema: empty; expected 'latest', 'union', an id or the text of a schema")
    if stripped[0] not in '{["':
        if "{" not in stripped:
            known = (LATEST, UNION)
            raise OptionError(
                f"schema: expected 'latest', 'union', an id or the text of a schema, got '{stripped[:40]}'"
                f"{did_you_mean(stripped[:40], known)}"
            )
        return "PROTOBUF"
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"not JSON: {error}") from None
    if isinstance(value, dict) and value.get("type") not in AVRO_TYPES:
        if JSON_SCHEMA_WORDS & value.keys():
            return "JSON"
        if subject is not None:
            return registry.latest(subject).type
    return "AVRO"


class ColumnDecoder:
    """Decodes columns as one target says. type: of decoded values; None if it depends on the ids in each array."""

    def __init__(
        self,
        registry: Registry,
        target: Target,
        *,
        mode: Mode = "failfast",
        type: pa.DataType | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        """Compile the schema. type: of a union, if it is known. Raises InvalidSchema, RegistryError, OptionError."""
        if mode not in get_args(Mode):
            raise OptionError(f"mode: expected one of {', '.join(get_args(Mode))}, got '{mode}'")
        self._mode = mode
        self.type: pa.DataType | None
        self._decoder: ReaderDecoder | UnionDecoder
        if target.schema is not None:
            reader = target.value_schema(registry)
            self._decoder = ReaderDecoder(registry, reader, key=target.key, columns=columns, names=target.names)
            self.type = self._decoder.type
            return
        if columns is not None:
            raise OptionError("columns requires the schema of a reader, not a union")
        if type is None and target.subject is not None:
            type = target.union(registry)
        self._decoder = UnionDecoder(registry, type, key=target.key)
        self.type = type

    @property
    def result_type(self) -> pa.DataType:
        """The type of decode's result: with mode deadletter, that of values and their errors."""
        assert self.type is not None
        return _with_error(self.type) if self._mode == "deadletter" else self.type

    def decode(self, values: pa.Array, headers: pa.Array | None = None, source: Sequence[pa.Array] = ()) -> pa.Array:
        """Decode values. headers: of their records. source: arrays that say where each record is, for errors.

        Raises DecodeError for the first bad value with mode failfast, RegistryError if the registry cannot be used.
        """
        decoded = self._decoder.decode(values, headers)
        if self._mode == "failfast" and decoded.errors:
            raise self._error(decoded.errors[0], source)
        return _with_errors(decoded) if self._mode == "deadletter" else decoded.array

    def _error(self, error: RowError, source: Sequence[pa.Array]) -> DecodeError:
        where = _where(error.row, source)
        return Malformed(f"{where}: {error.what}", error.position)


def _where(row: int, source: Sequence[pa.Array]) -> str:
    """Return the place of a record: `orders-0, offset 17` for topic, partition and offset."""
    if not source:
        return f"row {row}"
    topic, partition, offset = (each[row].as_py() for each in source)
    return f"{topic}-{partition}, offset {offset}"


def _with_error(kind: pa.DataType) -> pa.StructType:
    return pa.struct([("value", kind), ("error", pa.string())])


def _with_errors(decoded: Decoded) -> pa.StructArray:
    """Return struct<value, error>."""
    texts: list[str | None] = [None] * len(decoded.array)
    for row, position, what in decoded.errors:
        texts[row] = texts[row] or f"{what}, at byte {position}"
    children = [decoded.array, pa.array(texts, pa.string())]
    return pa.StructArray.from_arrays(children, fields=list(_with_error(decoded.array.type)))


class ColumnEncoder:
    """Encodes columns with the schema of a target, which is registered."""

    def __init__(self, registry: Registry, target: Target) -> None:
        """Parse the schema. Raises InvalidSchema, RegistryError, OptionError if its id is not known."""
        if target.schema is None or target.schema.id is None:
            raise OptionError("one of subject and topic is required, or as schema the id of a registered one")
        self._schema = target.value_schema(registry)
        self._prefix = b"\0" + target.schema.id.to_bytes(4, "big", signed=True)
        if self._schema.type == "PROTOBUF":
            self._prefix += encode_path(self._schema.path)

    def encode(self, values: pa.Array) -> pa.Array:
        """Encode values, each after its prefix. Raises EncodeError with row and path for the first bad one."""
        encoded = make_encoder(self._schema, values.type).encode(values, self._prefix)
        if encoded.errors:
            row, _, what = encoded.errors[0]
            raise EncodeError(f"row {row}: {what}")
        return encoded.array


def encoding_target(
    registry: Registry,
    *,
    subject: str | None,
    schema: str | int | RegisteredSchema | None,
    topic: str | None,
    key: bool,
    message: str | None,
) -> Target:
    """Return the registered schema to encode with. Raises OptionError, RegistryError if it is not registered."""
    if schema == UNION:
        raise OptionError("schema: 'union' is for decoding; expected 'latest', an id or the text of a schema")
    target = Target.resolve(registry, subject=subject, schema=schema, topic=topic, key=key, message=message)
    if target.schema is not None and target.schema.id is None and target.subject is not None:
        given = target.schema
        registered = registry.find(target.subject, given.text, given.type, given.references)
        return replace(target, schema=registered)
    return target


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
    other full names than the reader's.
    Raises RegistryError, InvalidSchema, OptionError.
    """
    opened = open_registry(registry)
    target = Target.resolve(opened, subject=subject, schema=schema, topic=topic, key=key, message=message, names=names)
    decoder = ColumnDecoder(opened, target, mode=mode, columns=columns)
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
    opened = open_registry(registry)
    target = encoding_target(opened, subject=subject, schema=schema, topic=topic, key=key, message=message)
    return ColumnEncoder(opened, target).encode(_one_chunk(values))


def decode(data: bytes | None, registry: Registry | str | os.PathLike[str], **options: Any) -> Any:
    """Decode one value to Python objects. options: as for decode_arrow."""
    return decode_arrow(pa.array([data], pa.binary()), registry, **options)[0].as_py()


def encode(value: Any, registry: Registry | str | os.PathLike[str], **options: Any) -> bytes | None:
    """Encode one value, a dict for a record. options: as for encode_arrow."""
    opened = open_registry(registry)
    given = {"subject": None, "schema": None, "topic": None, "key": False, "message": None} | options
    target = encoding_target(opened, **given)
    encoder = ColumnEncoder(opened, target)
    kind = target.value_schema(opened).arrow_type()
    try:
        array = pa.array([value], kind)
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
    opened = open_registry(registry)
    target = Target.resolve(opened, subject=subject, schema=schema, topic=topic, key=key, message=message)
    return target.union(opened) if target.schema is None else target.value_schema(opened).arrow_type()


def union_type(
    registry: Registry | str | os.PathLike[str], ids: Sequence[int | str], *, message: str | None = None
) -> pa.DataType:
    """Return the Arrow type with the fields of the schemas with these ids. Raises RegistryError, InvalidSchema."""
    return union_of(open_registry(registry), ids, message)


def _one_chunk(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
