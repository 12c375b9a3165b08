"""Arrow arrays of JSON values: read by a kernel or in plain Python, written through Python objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from kwire.errors import EncodeError, InvalidSchema, Malformed, did_you_mean
from kwire.schemas.column_plan import ROOT
from kwire.schemas.json_schema.checking import Checker
from kwire.schemas.json_schema.parsing import JsonSchema, Node
from kwire.schemas.json_schema.plan import compile_plan
from kwire.schemas.plan_decoder import PlanDecoder
from kwire.schemas.schema_codec import Decoded, Int32Array, Int64Array, RowError, encode_error, row_errors

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
        self._decoder = PlanDecoder(compile_plan(node), "decode_json", lambda data, _: self.read(data))

    def decode(self, values: pa.Array, skip: Int64Array, writer: Int32Array) -> Decoded:
        """Decode an array of binary; see SchemaDecoder. Raises OptionError if a column has more than 2 GiB."""
        array, errors = self._decoder.decode(values, skip, np.where(writer >= 0, ROOT, -1))
        return Decoded(array, row_errors(errors))

    def read(self, data: bytes) -> Any:
        """Decode one value to what Arrow takes. Raises Malformed."""
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Malformed(f"not JSON: {error}", 0) from None
        return self._convert(value, ())


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
            return lambda value, path: None if value is None else msgspec.json.encode(value).decode()
        case "boolean":
            return lambda value, path: _checked(value, bool, "a boolean", path)
        case "string":
            return lambda value, path: _checked(value, str, "a string", path)
    return _read_integer if node.kind == "integer" else _read_number


def _checked(value: Any, kind: type, expected: str, path: Path) -> Any:
    if value is not None and type(value) is not kind:
        raise _fault(expected, value, path)
    return value


def _read_integer(value: Any, path: Path) -> Any:
    if type(value) is float and value.is_integer():
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
    return _checked(value, float, "a number", path)


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
        if pa.types.is_struct(given) and schema.root.kind == "object":
            for field in given:
                if field.name not in schema.root.members:
                    raise EncodeError("the schema has no such property", (field.name,))
        self._schema = schema
        self._checker = Checker(schema)

    def encode(self, values: pa.Array, prefix: bytes) -> Decoded:
        """Encode values, each after the prefix; see SchemaEncoder."""
        rows = list[bytes | None]()
        errors = list[RowError]()
        for row, given in enumerate(values.to_pylist()):
            rows.append(None)
            if given is None:
                continue
            try:
                value = _written(self._schema.root, given, ())
                data = msgspec.json.encode(value)
                self._checker.check(value, len(data))
                rows[-1] = prefix + data
            except EncodeError as error:
                errors.append(encode_error(row, error))
            except (TypeError, ValueError, msgspec.MsgspecError) as error:
                errors.append(RowError(row, 0, f"cannot be written as JSON: {error}"))
        return Decoded(pa.array(rows, pa.binary()), errors)


def _written(node: Node, value: Any, path: Path) -> Any:
    """Return the JSON value of what Arrow gave; nulls of properties that do not take null are omitted."""
    if value is None:
        return None
    if node.kind == "any" and isinstance(value, str):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise EncodeError(f"expected JSON text: {error}", path) from None
    if node.kind == "object" and isinstance(value, dict):
        unknown = next((name for name in value if name not in node.members), None)
        if unknown is not None:
            raise EncodeError("the schema has no such property", (*path, unknown))
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
