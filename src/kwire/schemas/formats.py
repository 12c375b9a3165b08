"""Schemas of all formats, parsed, and their decoders and encoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from kwire.errors import InvalidSchema, did_you_mean
from kwire.schemas import avro, json_schema, protobuf
from kwire.schemas.avro.resolution import Names
from kwire.schemas.registered import RegisteredSchema, SchemaType
from kwire.schemas.schema_codec import (
    Decoded,
    Int32Array,
    Int64Array,
    SchemaDecoder,
    SchemaEncoder,
    encode_error,
    row_errors,
)

__all__ = ["ParsedSchema", "ValueSchema", "make_decoder", "make_encoder", "mismatch", "parse_schema"]

FIRST_MESSAGE = (0,)


@dataclass(slots=True, kw_only=True, eq=False)
class ValueSchema:
    """The schema of a value: of Protobuf, one message of a file. label: for messages. path: of the message."""

    type: SchemaType
    label: str
    schema: avro.Schema | protobuf.Message | json_schema.JsonSchema
    path: tuple[int, ...] = FIRST_MESSAGE

    @property
    def message_name(self) -> str | None:
        """The full name of Protobuf's message; None of other formats."""
        return self.schema.name if isinstance(self.schema, protobuf.Message) else None

    def arrow_type(self) -> pa.DataType:
        """Return the type of decoded values. Raises InvalidSchema."""
        return make_decoder([self], self).type


@dataclass(slots=True, kw_only=True, eq=False)
class ParsedSchema:
    """A schema of a registry with all it refers to."""

    registered: RegisteredSchema
    parsed: avro.Schema | protobuf.File | json_schema.JsonSchema
    values: dict[tuple[int, ...], ValueSchema] = field(default_factory=dict)

    @property
    def type(self) -> SchemaType:
        """The format."""
        return self.registered.type

    def value(self, path: tuple[int, ...] = FIRST_MESSAGE) -> ValueSchema:
        """Return the schema of a value. path: message indexes of Protobuf. Raises InvalidSchema."""
        if path not in self.values:
            schema = self._message(self.parsed, path) if isinstance(self.parsed, protobuf.File) else self.parsed
            label = self.registered.label
            self.values[path] = ValueSchema(type=self.type, label=label, schema=schema, path=path)
        return self.values[path]

    def named(self, message: str | None) -> ValueSchema:
        """Return the schema of a value. message: of Protobuf, its full or short name; the first one by default."""
        if message is None or not isinstance(self.parsed, protobuf.File):
            return self.value()
        paths = dict(_paths(self.parsed.messages, ()))
        if message in paths:
            return self.value(paths[message])
        for name, path in paths.items():
            if message == name.rpartition(".")[2]:
                return self.value(path)
        raise InvalidSchema(f"no message '{message}'{did_you_mean(message, paths)}", self.registered.label)

    @property
    def message_names(self) -> tuple[str, ...]:
        """The full names of Protobuf's messages; () of other formats."""
        if not isinstance(self.parsed, protobuf.File):
            return ()
        return tuple(name for name, _ in _paths(self.parsed.messages, ()))

    def _message(self, file: protobuf.File, path: tuple[int, ...]) -> protobuf.Message:
        messages = file.messages
        message = None
        for index in path:
            if not 0 <= index < len(messages):
                raise InvalidSchema(f"no message with the indexes {list(path)}", self.registered.label)
            message = messages[index]
            messages = message.nested
        assert message is not None
        return message


def _paths(messages: Sequence[protobuf.Message], path: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
    paths = list[tuple[str, tuple[int, ...]]]()
    for index, each in enumerate(messages):
        paths.append((each.name, (*path, index)))
        paths += _paths(each.nested, (*path, index))
    return paths


def parse_schema(registered: RegisteredSchema, references: Mapping[str, str]) -> ParsedSchema:
    """Parse a schema. references: the texts that it refers to, by name. Raises InvalidSchema."""
    parsed: avro.Schema | protobuf.File | json_schema.JsonSchema
    try:
        match registered.type:
            case "AVRO":
                parsed = avro.parse(registered.text, references)
            case "PROTOBUF":
                parsed = protobuf.parse(registered.text, references)
            case "JSON":
                parsed = json_schema.parse(registered.text, references)
        return ParsedSchema(registered=registered, parsed=parsed)
    except InvalidSchema as error:
        raise InvalidSchema(error.what, registered.label, error.path) from None
    except RecursionError:
        raise InvalidSchema("nested too deep", registered.label) from None


def mismatch(
    writer: ValueSchema,
    reader: ValueSchema,
    columns: Sequence[str] | None = None,
    names: Names = "any",
    depth: int = 0,
) -> str | None:
    """Return why values of one schema cannot be read as these columns of another's, or None."""
    if writer.type != reader.type:
        return f"{writer.type} cannot be read as {reader.type} of schema {reader.label}"
    if isinstance(writer.schema, protobuf.Message) and isinstance(reader.schema, protobuf.Message):
        if writer.schema.name != reader.schema.name:
            return f"message '{writer.schema.name}', expected '{reader.schema.name}' of schema {reader.label}"
        return None
    try:
        make_decoder([writer], reader, columns, names, depth)
    except InvalidSchema as error:
        return str(InvalidSchema(error.what, None, error.path))
    return None


def make_decoder(
    writers: Sequence[ValueSchema],
    reader: ValueSchema,
    columns: Sequence[str] | None = None,
    names: Names = "any",
    depth: int | None = None,
) -> SchemaDecoder:
    """Return a decoder of the writers' values. names, depth: of Avro, see build_columns. Raises InvalidSchema."""
    try:
        match reader.schema:
            case protobuf.Message():
                return protobuf.Decoder(reader.schema, columns)
            case json_schema.JsonSchema():
                return json_schema.Decoder(reader.schema, columns)
            case avro.Schema():
                schemas = [each.schema for each in writers if isinstance(each.schema, avro.Schema)]
                return _AvroDecoder(avro.Decoder(schemas, reader.schema, columns=columns, names=names, depth=depth))
    except InvalidSchema as error:
        raise InvalidSchema(error.what, error.schema or reader.label, error.path) from None
    except RecursionError:
        raise InvalidSchema("nested too deep", reader.label) from None


def make_encoder(schema: ValueSchema, given: pa.DataType) -> SchemaEncoder:
    """Return an encoder of arrays of a type. Raises InvalidSchema, EncodeError for a column without a field."""
    match schema.schema:
        case protobuf.Message():
            return protobuf.Encoder(schema.schema, given)
        case json_schema.JsonSchema():
            return json_schema.Encoder(schema.schema, given)
        case avro.Schema():
            return _AvroEncoder(avro.Encoder(schema.schema, given))


class _AvroDecoder:
    def __init__(self, decoder: avro.Decoder) -> None:
        self.type: pa.DataType = decoder.type
        self._decoder = decoder

    def decode(self, values: pa.Array, skip: Int64Array, writer: Int32Array | None = None) -> Decoded:
        """Decode an array of binary; see SchemaDecoder."""
        decoded = self._decoder.decode(values, skip=skip, writer=writer)
        return Decoded(decoded.array, row_errors(decoded.errors.by_row))


class _AvroEncoder:
    def __init__(self, encoder: avro.Encoder) -> None:
        self._encoder = encoder

    def encode(self, values: pa.Array, prefix: bytes) -> Decoded:
        """Encode values, each after the prefix; see SchemaEncoder."""
        encoded = self._encoder.encode(values, prefix=prefix)
        return Decoded(encoded.array, [encode_error(row, error) for row, error in encoded.errors.by_row])
