"""Arrow arrays of JSON values, read and written by kernels or in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from kwire.errors import EncodeError, InvalidSchema, Malformed, did_you_mean
from kwire.schemas.column_plan import ROOT
from kwire.schemas.json_schema.checking import Checker
from kwire.schemas.json_schema.encode_plan import compile_encode_plan, written_type
from kwire.schemas.json_schema.parsing import JsonSchema, Node
from kwire.schemas.json_schema.plan import compile_plan
from kwire.schemas.plan_decoder import PlanDecoder
from kwire.schemas.plan_encoder import PlanEncoder, bind
from kwire.schemas.schema_codec import Decoded, Int32Array, Int64Array, encode_error, row_errors

__all__ = ["Decoder", "Encoder"]

INT64 = range(-(2**63), 2**63)
Path = tuple[str | int, ...]
Converter = Callable[[Any, Path], Any]


class Decoder:
    """Decodes JSON to the Arrow type of one schema; the writers' schemas play no part."""

    def __init__(self, reader: JsonSchema, columns: Sequence[str] | None = None) -> None:
        """Compile the schema. columns: the properties to decode, in this order. Raises InvalidSchema."""
        node = reader.root
        if columns is not None:
            unknown = next((name for name in columns if name not in node.members), None)
            if unknown is not None:
                raise InvalidSchema(f"no property '{unknown}'{did_you_mean(unknown, node.members)}")
            node = replace(node, members={name: node.members[name] for name in columns})
        self.type: pa.DataType = node.type
        self._convert = _reader(node)
        self._json = msgspec.json.Decoder(float_hook=_Written) if _has_decimal(node) else msgspec.json.Decoder()
        self._decoder = PlanDecoder(compile_plan(node), "decode_json", lambda data, _: self.read(data))

    def decode(self, values: pa.Array, skip: Int64Array, writer: Int32Array | None = None) -> Decoded:
        """Decode an array of binary; see SchemaDecoder. Raises OptionError if a column has more than 2 GiB."""
        array, errors = self._decoder.decode(values, skip, ROOT if writer is None else np.where(writer >= 0, ROOT, -1))
        return Decoded(array, row_errors(errors))

    def read(self, data: bytes) -> Any:
        """Decode one value to what Arrow takes. Raises Malformed."""
        try:
            value = self._json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Malformed(f"not JSON: {error}", 0) from None
        return self._convert(value, ())


class _Written(float):
    """A number with a fraction or an exponent, and its text, which has more digits."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        if math.isinf(self):
            raise msgspec.DecodeError("Number out of range")
        self.text = text


def _has_decimal(node: Node) -> bool:
    inner = [*node.members.values(), *([] if node.element is None else [node.element])]
    return node.kind == "decimal" or any(map(_has_decimal, inner))


def _fault(expected: str, value: object, path: Path) -> Malformed:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return Malformed(f"expected {expected}, got {names.get(type(value), 'a number')}", 0, path)


def _reader(node: Node) -> Converter:
    """Return a function that checks a value and returns what Arrow takes."""
    match node.kind:
        case "object":
            return _object_reader({name: _reader(member) for name, member in node.members.items()})
        case "array" | "map":
            assert node.element is not None
            return (_array_reader if node.kind == "array" else _map_reader)(_reader(node.element))
        case "any":
            return lambda value, path: None if value is None else _text(value)
        case "string_or_text":
            return lambda value, path: value if value is None or type(value) is str else _text(value)
        case "decimal":
            return _read_decimal
        case "boolean":
            return lambda value, path: _checked(value, bool, "a boolean", path)
        case "string":
            return lambda value, path: _checked(value, str, "a string", path)
    return _read_integer if node.kind == "integer" else _read_number


def _text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=float).decode()


def _checked(value: Any, kind: type, expected: str, path: Path) -> Any:
    if value is not None and type(value) is not kind:
        raise _fault(expected, value, path)
    return value


def _read_decimal(value: Any, path: Path) -> Any:
    if value is None or type(value) is str:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _fault("a number", value, path)
    return value.text if isinstance(value, _Written) else str(value)


def _read_integer(value: Any, path: Path) -> Any:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1.0 is an integer of JSON Schema
    if value is not None and type(value) is not int:
        raise _fault("an integer", value, path)
    if value is not None and value not in INT64:
        raise Malformed("out of the range of 64 bits", 0, path)
    return value


def _read_number(value: Any, path: Path) -> Any:
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise Malformed("out of range", 0, path) from None
    if value is not None and not isinstance(value, float):
        raise _fault("a number", value, path)
    return None if value is None else float(value)


def _object_reader(members: dict[str, Converter]) -> Converter:
    def read(value: Any, path: Path) -> Any:
        if value is None:
            return None
        if type(value) is not dict:
            raise _fault("an object", value, path)
        return {name: convert(value.get(name), (*path, name)) for name, convert in members.items()}

    return read


def _array_reader(element: Converter) -> Converter:
    def read(value: Any, path: Path) -> Any:
        if value is None:
            return None
        if type(value) is not list:
            raise _fault("an array", value, path)
        return [element(each, (*path, index)) for index, each in enumerate(value)]

    return read


def _map_reader(element: Converter) -> Converter:
    def read(value: Any, path: Path) -> Any:
        if value is None:
            return None
        if type(value) is not dict:
            raise _fault("an object", value, path)
        return [(name, element(each, (*path, name))) for name, each in value.items()]

    return read


class Encoder:
    """Encodes values as JSON, and checks them against the schema as Confluent's serializers do."""

    def __init__(self, schema: JsonSchema, given: pa.DataType) -> None:
        """Compile the schema for arrays of a type. Raises EncodeError for a column without a property."""
        _check_names(schema.root, given, ())
        self._schema = schema
        self._checker = Checker(schema)
        self._kind = written_type(schema.root, given)
        self._plan = compile_encode_plan(schema.root, self._kind)
        self._encoder = PlanEncoder(self._plan, ROOT, "encode_json", self._write)

    def encode(self, values: pa.Array, prefix: bytes) -> Decoded:
        """Encode values, each after the prefix; see SchemaEncoder. Raises OptionError above 2 GiB of output."""
        bound = dict[int, pa.Array]()
        try:
            bind(values if values.type == self._kind else values.cast(self._kind), self._plan.columns[ROOT], bound)
            encoder = self._encoder
        except (
            pa.ArrowInvalid,
            pa.ArrowNotImplementedError,
        ):  # such as a number above 64 bits: plain Python says where
            left = compile_encode_plan(Node(kind="any"), values.type)
            encoder = PlanEncoder(left, ROOT, "encode_json", self._write)
        array, errors = encoder.encode(values, bound, prefix)
        return Decoded(array, [encode_error(row, error) for row, error in errors])

    def _write(self, values: pa.Array) -> Iterator[bytes | EncodeError]:
        for each in values:
            try:
                value = _written(self._schema.root, each.as_py(), ())
                data = msgspec.json.encode(value)
                self._checker.check(value, len(data))
                yield data
            except EncodeError as error:
                error.__traceback__ = error.__context__ = None  # and all that their frames refer to
                yield error
            except (TypeError, ValueError, msgspec.MsgspecError) as error:
                yield EncodeError(f"cannot be written as JSON: {error}")


def _check_names(node: Node, given: pa.DataType, path: tuple[str, ...]) -> None:
    """Raise EncodeError for a column without a property."""
    if node.kind == "object" and pa.types.is_struct(given):
        for field in given:
            if field.name not in node.members:
                raise EncodeError("the schema has no such property", (*path, field.name))
            _check_names(node.members[field.name], field.type, (*path, field.name))
    elif node.element is not None and pa.types.is_map(given):
        _check_names(node.element, given.item_type, path)
    elif node.element is not None and hasattr(given, "value_type"):
        _check_names(node.element, given.value_type, path)


def _written(node: Node, value: Any, path: Path) -> Any:
    """Return the JSON value of what Arrow gave; nulls of properties that do not take null are omitted."""
    if value is None:
        return None
    if node.kind == "any" and isinstance(value, str):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise EncodeError(f"expected JSON text: {error}", path) from None
    if isinstance(value, float) and not math.isfinite(value):
        raise EncodeError(f"{value} is not a number of JSON", path)
    if node.kind == "object" and isinstance(value, dict):
        return {
            name: _written(node.members[name], each, (*path, name))
            for name, each in value.items()
            if each is not None or node.members[name].takes_null
        }
    if node.element is not None and isinstance(value, list):
        if node.kind == "map":
            return {name: _written(node.element, each, (*path, name)) for name, each in value}
        return [_written(node.element, each, (*path, index)) for index, each in enumerate(value)]
    return value
