"""JSON values without a registry, as Arrow arrays of a given type.

    JsonDecoder(parse_ddl("id BIGINT, at TIMESTAMP"), mode="deadletter").decode(values)

The compiled kernel of JSON Schema reads booleans, 64-bit integers, doubles, strings, structs, lists and maps. Narrower
numbers, decimals, dates and timestamps are converted from these afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import InvalidSchema, OptionError
from kwire.schemas.choice import Mode, check_mode
from kwire.schemas.ddl import parse_ddl
from kwire.schemas.json_schema import Decoder, JsonSchema
from kwire.schemas.json_schema.parsing import Node
from kwire.schemas.schema_codec import Decoded, RowError
from kwire.schemas.text_values import shown, typed_texts
from kwire.schemas.value_decoder import finished, finished_type

__all__ = ["JsonColumn", "JsonDecoder", "decode_json"]

AS_THEY_ARE = {pa.bool_(): "boolean", pa.int64(): "integer", pa.float64(): "number", pa.string(): "string_or_text"}
CONVERTED = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), "integer"),
    pa.float32(): "number",
    **dict.fromkeys((pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")), "string"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonColumn:
    """How JSON values are decoded. Picklable; equal ones have equal hashes.

    type: of the values. columns: the fields to decode, in this order; all by default.
    """

    type: pa.DataType
    mode: Mode = "failfast"
    columns: tuple[str, ...] | None = None


class JsonDecoder:
    """Decodes JSON values to one type. type: of decoded values."""

    def __init__(self, column: JsonColumn) -> None:
        """Compile the type. Raises OptionError for a type that is not supported, and for unknown columns."""
        check_mode(column.mode)
        self._mode = column.mode
        kind = column.type
        node = _node(kind, "")
        try:
            decoder = Decoder(JsonSchema(document=True, references={}, root=node), column.columns)
        except InvalidSchema as error:
            raise OptionError(f"columns: {error}") from None
        if column.columns is not None:
            kind = pa.struct([kind.field(name) for name in column.columns])
        self._decoder, self.type = decoder, kind

    @property
    def result_type(self) -> pa.DataType:
        """The type of decode's result: with mode deadletter, that of values and their errors."""
        return finished_type(self.type, self._mode)

    def decode(self, values: pa.Array, headers: pa.Array | None = None, source: Sequence[pa.Array] = ()) -> pa.Array:
        """Decode an array of binary; null to null. headers: ignored. source: arrays that say where each record is.

        A value is bad if it is not JSON, or has a value of another type where the type has a field. Properties without
        a field are ignored, missing ones are null. Raises DecodeError for the first bad value with mode failfast.
        """
        zeros = np.zeros(len(values), np.int64)
        decoded = self._decoder.decode(values, zeros, zeros.astype(np.int32))
        array, faults = _converted(decoded.array, self.type, "")
        errors = decoded.errors
        if faults:
            first: dict[int, RowError] = {}
            for fault in faults:
                first.setdefault(fault.row, RowError(fault.row, 0, fault.what))
            rows = np.arange(len(array))
            array = array.take(pa.array(rows, mask=np.isin(rows, list(first))))
            errors = sorted([*errors, *first.values()])
        return finished(Decoded(array, errors), self._mode, source)


def decode_json(
    values: pa.Array | pa.ChunkedArray,
    schema: pa.DataType | str,
    *,
    mode: Mode = "failfast",
    columns: Sequence[str] | None = None,
) -> pa.Array:
    """Decode JSON values, as they are without a registry; null to null.

    values: binary. schema: a type, or Spark's DDL: "id BIGINT, lines ARRAY<STRUCT<sku: STRING>>".
    mode: failfast raises DecodeError for the first bad value, permissive makes it null, deadletter returns
    struct<value, error>. columns: the fields to decode.
    Raises OptionError for types that are not supported, such as binary.
    """
    kind = parse_ddl(schema) if isinstance(schema, str) else schema
    decoder = JsonDecoder(JsonColumn(type=kind, mode=mode, columns=None if columns is None else tuple(columns)))
    return decoder.decode(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)


class _Fault(NamedTuple):
    """A value that cannot be converted. row: in its array, then in the array around it."""

    row: int
    what: str


def _node(kind: pa.DataType, path: str) -> Node:
    """Return the node that the kernel reads a type as. Raises OptionError."""
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            raise OptionError(f"{_at(path)}a struct without fields cannot be decoded from JSON")
        names = [field.name for field in kind]
        if len(set(names)) < len(names):
            raise OptionError(f"{_at(path)}a name is there twice in {kind}")
        return Node(kind="object", members={each.name: _node(each.type, _inside(path, each.name)) for each in kind})
    if pa.types.is_list(kind):
        return Node(kind="array", element=_node(kind.value_type, _inside(path, "element")))
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return Node(kind="map", element=_node(kind.item_type, _inside(path, "value")))
    name = AS_THEY_ARE.get(kind) or CONVERTED.get(kind) or ("decimal" if pa.types.is_decimal128(kind) else None)
    if name is None:
        raise OptionError(
            f"{_at(path)}{kind} cannot be decoded from JSON; supported: boolean, tinyint, smallint, int, bigint, "
            "float, double, decimal, string, date, timestamp, timestamp_ntz, struct, array, map with keys "
            "of type string"
        )
    return Node(kind=name)


def _at(path: str) -> str:
    return f"'{path}': " if path else ""


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_as_read(kind: pa.DataType) -> bool:
    """Return whether the kernel gives this type."""
    if pa.types.is_nested(kind):
        return all(_is_as_read(kind.field(i).type) for i in range(kind.num_fields))
    return kind in AS_THEY_ARE


def _converted(array: pa.Array, kind: pa.DataType, path: str) -> tuple[pa.Array, list[_Fault]]:
    """Convert what the kernel gave, which has no offset; values that cannot be converted are null."""
    if _is_as_read(kind):
        return array, []
    if not pa.types.is_nested(kind):
        return _converted_leaf(array, kind, path)
    if pa.types.is_struct(kind):
        children, faults = list[pa.Array](), list[_Fault]()
        for i, field in enumerate(kind):
            child, found = _converted(array.field(i), field.type, _inside(path, field.name))
            children.append(child)
            faults += found
        if faults and array.null_count:  # what a struct that is null has inside means nothing
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            faults = [fault for fault in faults if valid[fault.row]]
    else:
        inside, inner = (array.values, kind.value_type) if pa.types.is_list(kind) else (array.items, kind.item_type)
        child, found = _converted(inside, inner, _inside(path, "element" if pa.types.is_list(kind) else "value"))
        ends = array.offsets.to_numpy()[1:]
        rows = np.searchsorted(ends, [fault.row for fault in found], side="right").tolist()
        faults = [_Fault(row, fault.what) for row, fault in zip(rows, found, strict=True)]
        if pa.types.is_map(kind):
            child = pa.StructArray.from_arrays([array.keys, child], fields=list(_entries(kind)))
        children = [child]
    buffers = array.buffers()[: 1 if pa.types.is_struct(kind) else 2]
    assert array.offset == 0
    return pa.Array.from_buffers(kind, len(array), buffers, children=children), sorted(faults)


def _entries(kind: pa.MapType) -> tuple[pa.Field, pa.Field]:
    return pa.field(kind.key_field.name, pa.string(), nullable=False), kind.item_field


def _converted_leaf(array: pa.Array, kind: pa.DataType, path: str) -> tuple[pa.Array, list[_Fault]]:
    if pa.types.is_floating(kind):
        made = array.cast(kind, safe=False)
        bad = pc.and_(pc.is_inf(made), pc.invert(pc.is_inf(array)))
        what = "out of the range of float"
    elif pa.types.is_integer(kind):
        info = np.iinfo(kind.to_pandas_dtype())
        bad = pc.or_(pc.less(array, int(info.min)), pc.greater(array, int(info.max)))
        made = pc.if_else(bad, None, array).cast(kind)
        what = f"out of the range of {info.bits} bits"
    else:
        made, what = typed_texts(array, kind)
        bad = pc.and_(pc.is_null(made), pc.is_valid(array))
    indices = np.flatnonzero(pc.fill_null(bad, False).to_numpy(zero_copy_only=False)).tolist()
    return made, [_Fault(index, f"{path}: {what}: {shown(array[index].as_py())}") for index in indices]
