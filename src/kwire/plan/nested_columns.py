"""Many messages of one version as one Arrow array of structs, nested like the definition, without an object for each.

    NestedReader(spec, 9).read(pa.array([b"...", None, b"..."])) -> pyarrow.StructArray

The struct has the fields of that version, in the definition's order and under the names of the classes (snake case):

    bool, int8 ... int64, float64     the same in Arrow; uint16 as int32, uint32 as int64 (Spark has no unsigned ones)
    string                            string            bytes, records      binary
    uuid                              string, Kafka's 22 characters of base64 (Spark has no binary of fixed size)
    struct, array                     struct, list      null                null

Tagged fields that were not sent have their default. Unknown tagged fields are omitted. A null message is a null struct;
in permissive mode, so is an unreadable one.

Cost: two passes over the bytes, one to count and check, one to fill; benchmarks/spark/functions.py.
Like `kwire.plan.columns`, this imports numba, numpy and pyarrow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kwire import native
from kwire.errors import DecodeError, Malformed, OptionError
from kwire.plan import rows as r
from kwire.plan.compiler import compile_frame, compile_message
from kwire.plan.reading import Reader
from kwire.plan.slices import (
    DEFAULT_SLICE,
    MAX_ARROW_OFFSET,
    NUMPY,
    SLICE,
    ColumnArray,
    Int64Array,
    bits,
    gather_slices,
    stored_default,
)
from kwire.schema.model import Field, Message, Struct

__all__ = ["Bytes", "Int64Array", "NestedReader", "arrow_type", "message_bounds", "version_type"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

ARROW = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "uint32": pa.int64(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "uuid": pa.string(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "records": pa.binary(),
}
STORED = NUMPY | {r.BOOL: np.dtype(np.uint8)}
COUNT, PRESENCE = np.dtype(np.int64), np.dtype(np.uint8)
NO_LIMIT = 2**62
UUID_CHARACTERS = 22
BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)


def version_type(spec: Message, version: int | None) -> pa.StructType:
    """Return the Arrow type of one version, or of all versions together if version is None."""
    return _struct_type(spec.struct, version)


def arrow_type(field: Field, version: int | None) -> pa.DataType:
    """Return the Arrow type of a field in one version, or in all versions together."""
    element = ARROW[field.type] if field.struct is None else _struct_type(field.struct, version)
    return pa.list_(pa.field("element", element)) if field.is_array else element


def _struct_type(struct: Struct, version: int | None) -> pa.StructType:
    fields = (f for f in struct.fields if version is None or version in f.versions)
    return pa.struct([pa.field(f.attr, arrow_type(f, version)) for f in fields])


def message_bounds(messages: pa.Array) -> tuple[Bytes, Int64Array]:
    """Return (all bytes, start and end of each message) of an Arrow array of binary; a null starts at -1.

    Raises OptionError for an array of another type.
    """
    if pa.types.is_binary(messages.type):
        width: Any = np.int32
    elif pa.types.is_large_binary(messages.type):
        width = np.int64
    else:
        raise OptionError(f"messages are {messages.type}, not binary")
    count = len(messages)
    _, offsets, data = messages.buffers()
    bounds = np.empty((count, 2), np.int64)
    if count:
        edges = np.frombuffer(offsets, width, count + 1, messages.offset * np.dtype(width).itemsize)
        bounds[:, 0], bounds[:, 1] = edges[:-1], edges[1:]
    if messages.null_count:
        bounds[messages.is_null().to_numpy(zero_copy_only=False), 0] = -1
    return np.frombuffer(data if data is not None and data.size else b"\0", np.uint8), bounds


@dataclass(slots=True, kw_only=True)
class _Column:
    """An array that the kernel fills, of one level. op: of its row in the plan. code: of numbers, alone or in a list.

    optional: the kernel may skip elements, which keep `initial`. At level 0, it also skips those of null messages.
    """

    op: int
    kind: np.dtype[Any]
    level: int
    code: int = 0
    initial: Any = None
    optional: bool = False


@dataclass(slots=True, kw_only=True)
class _Node:
    """A field, or the elements of an array. column: -1 for a struct that is never null."""

    kind: Literal["number", "slice", "array", "struct"]
    field: Field
    path: str
    level: int
    column: int = -1
    children: list[_Node] = dataclasses.field(default_factory=list)


class NestedReader:
    """Reads one version of one message into columns.

    header: (definition, version) of the header before the body; messages are then whole frames, beginning
    with their length, and the result omits the header. type: the type of the arrays that `read` returns.
    Raises UnsupportedVersion for an unknown version of either.
    """

    def __init__(self, spec: Message, version: int, *, header: tuple[Message, int] | None = None) -> None:
        self.spec, self.version = spec, version
        self.type = version_type(spec, version)
        self.plan = compile_frame(*header, spec, version) if header else compile_message(spec, version)
        self._columns: list[_Column] = []
        self._at: dict[tuple[tuple[str, ...], str, bool], int] = {}
        self._levels: dict[tuple[str, ...], int] = {(): 0}
        self._projection = np.full((len(self.plan.rows), 4), -1, np.int64)
        self._bind()
        self._nodes = self._struct(spec.struct, (), 0, "", False)
        self._rows = np.array(self.plan.rows, np.int64)
        self._explain = Reader(self.plan)

    def read(self, messages: pa.Array | Sequence[bytes | None], *, permissive: bool = False) -> pa.StructArray:
        """Return a struct for each message, null for a null.

        permissive: null also for unreadable messages. Otherwise raises DecodeError for the first of them, with its row,
        the position in that message and the field's path.
        """
        array = messages if isinstance(messages, pa.Array) else pa.array(messages, pa.binary())
        return self.read_bounds(*message_bounds(array), permissive=permissive)

    def read_bounds(self, data: Bytes, bounds: Int64Array, *, permissive: bool = False) -> pa.StructArray:
        """Read messages at [bounds[i, 0], bounds[i, 1]) of data; one with a negative start is null."""
        spans = np.array(bounds, np.int64, order="C")
        present = spans[:, 0] >= 0
        if (present & ((spans[:, 1] < spans[:, 0]) | (spans[:, 1] > len(data)))).any():
            raise OptionError("bounds of a message lie outside the data")
        counters = np.zeros((3, len(self._levels)), np.int64)
        counters[2] = NO_LIMIT
        if self._run(data, spans, [], counters, filling=False) and not permissive:
            raise self._error(data, bounds, int(np.flatnonzero(present & (spans[:, 0] < 0))[0]))
        rows = [len(spans), *counters[0, 1:].tolist()]
        if max(rows) > MAX_ARROW_OFFSET:
            raise OptionError(
                f"{max(rows)} elements in one column, {MAX_ARROW_OFFSET} at most; read fewer messages per call"
            )
        present = spans[:, 0] >= 0
        whole = bool(present.all())
        arrays = [self._allocate(column, rows[column.level], whole) for column in self._columns]
        counters[0], counters[2] = 0, rows
        failed = self._run(data, spans, arrays, counters, filling=True)
        assert not failed, "a message was read once and not again"
        children = [self._array(node, arrays, rows, data) for node in self._nodes]
        return pa.Array.from_buffers(self.type, len(spans), [None if whole else bits(present)], children=children)

    def _run(
        self, data: Bytes, bounds: Int64Array, arrays: list[ColumnArray], counters: Int64Array, *, filling: bool
    ) -> int:
        addresses = np.array([array.ctypes.data for array in arrays] or [0], np.int64)
        frames = np.zeros((self.plan.depth + 1) * 8, np.int64)
        return native.nest(
            data.ctypes.data,
            bounds.ctypes.data,
            len(bounds),
            self._rows.ctypes.data,
            self._projection.ctypes.data,
            addresses.ctypes.data,
            len(self._levels),
            counters.ctypes.data,
            frames.ctypes.data,
            int(filling),
        )

    def _error(self, data: Bytes, bounds: Int64Array, row: int) -> DecodeError:
        """Return the walker's error for a message."""
        where = f"in row {row} of {self.spec.name} version {self.version}"
        try:
            self._explain.read(data[bounds[row, 0] : bounds[row, 1]].tobytes(), 0)
        except DecodeError as error:
            return type(error)(f"{error.what}, {where}", error.position, error.path)
        return Malformed(f"cannot be read, {where}", 0)

    # Before reading: a column for each row of the plan with a value, then the tree of fields

    def _bind(self) -> None:
        rows, paths = self.plan.rows, self.plan.paths
        body = max(i for i, row in enumerate(rows) if row[0] == r.STRUCT and not paths[i])
        for number in range(body, len(rows)):
            op, codes, code, *_ = rows[number]
            fields, path, projected = self.plan.fields[number], paths[number], self._projection[number]
            if op not in (r.FIXED, r.VARINTS, r.STRING, r.BYTES, r.LIST, r.VARLIST, r.ARRAY, r.NULLABLE):
                continue
            projected[0], level = len(self._columns), self._levels[self._level_of(path)]
            for place, each in enumerate(fields):
                self._at[path, each.attr, op == r.NULLABLE] = len(self._columns)
                if op in (r.FIXED, r.VARINTS):
                    stored = codes >> 4 * place & 15 if op == r.FIXED else r.INT64
                    self._columns.append(_Column(op=op, kind=STORED[stored], level=level, code=stored))
                elif op == r.ARRAY:
                    self._columns.append(_Column(op=op, kind=COUNT, level=level))
                    projected[1] = self._levels[*path, f"{each.attr}[]"] = len(self._levels)
                elif op == r.NULLABLE:
                    self._columns.append(_Column(op=op, kind=PRESENCE, level=level))
                else:
                    of = code if op in (r.LIST, r.VARLIST) else 0
                    self._columns.append(_Column(op=op, kind=SLICE, level=level, code=of))

    def _level_of(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The innermost array around a struct."""
        while path and not path[-1].endswith("[]"):
            path = path[:-1]
        return path

    def _struct(self, struct: Struct, path: tuple[str, ...], level: int, name: str, optional: bool) -> list[_Node]:
        """Return the nodes of a struct's fields. optional: the struct may be missing from messages."""
        fields = (f for f in struct.fields if self.version in f.versions)
        return [self._field(f, path, level, name + f.attr, optional or self.version in f.tagged) for f in fields]

    def _field(self, f: Field, path: tuple[str, ...], level: int, name: str, optional: bool) -> _Node:
        if f.struct is not None and not f.is_array:
            column = self._at.get((path, f.attr, True), -1)
            if column >= 0:
                self._fill(column, int(f.default is not None), optional)
            node = _Node(kind="struct", field=f, path=name, level=level, column=column)
            node.children = self._struct(f.struct, (*path, f.attr), level, f"{name}.", optional or column >= 0)
            return node
        column = self._at[path, f.attr, False]
        if self._columns[column].op == r.ARRAY:
            self._fill(column, -1 if f.default is None else 0, optional)
            inside, below = (*path, f"{f.attr}[]"), self._levels[*path, f"{f.attr}[]"]
            node = _Node(kind="array", field=f, path=name, level=level, column=column)
            if f.struct is not None:
                element = _Node(kind="struct", field=f, path=f"{name}[]", level=below)
                element.children = self._struct(f.struct, inside, below, f"{name}[].", False)
            else:
                place = self._at[inside, f.attr, False]
                element = _Node(kind="slice", field=f, path=f"{name}[]", level=below, column=place)
            node.children = [element]
            return node
        if self._columns[column].op in (r.STRING, r.BYTES, r.LIST, r.VARLIST):
            self._fill(column, (0, -1 if f.default is None else DEFAULT_SLICE), optional)
            return _Node(kind="slice", field=f, path=name, level=level, column=column)
        self._fill(column, stored_default(f.default), optional)
        return _Node(kind="number", field=f, path=name, level=level, column=column)

    def _fill(self, column: int, initial: object, optional: bool) -> None:
        self._columns[column].initial, self._columns[column].optional = initial, optional

    def _allocate(self, column: _Column, count: int, whole: bool) -> ColumnArray:
        """Allocate the array of a column, filled with its initial value if the kernel may skip elements."""
        array = np.empty(count, column.kind)
        if column.optional or (column.level == 0 and not whole):
            array[:] = np.array(column.initial, column.kind)
        return array

    # After reading: from arrays to Arrow

    def _array(self, node: _Node, arrays: list[ColumnArray], rows: list[int], data: Bytes) -> pa.Array:
        count = rows[node.level]
        if node.kind == "struct":
            assert node.field.struct is not None
            children = [self._array(child, arrays, rows, data) for child in node.children]
            validity = None if node.column < 0 else bits(arrays[node.column] != 0)
            kind = _struct_type(node.field.struct, self.version)
            return pa.Array.from_buffers(kind, count, [validity], children=children)
        values, code = arrays[node.column], self._columns[node.column].code
        if node.kind == "number":
            return _numbers(node.field.type, values)
        if node.kind == "array":
            validity, offsets = _offsets(values)
            element = self._array(node.children[0], arrays, rows, data)
            return _list(element, count, validity, offsets)
        return _slices(node, code, values, data)


def _offsets(counts: Int64Array) -> tuple[pa.Buffer | None, ColumnArray]:
    """Return (validity, offsets) of lists with these counts, negative ones being null."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    if len(counts) == 0 or counts.min() >= 0:
        np.cumsum(counts, out=offsets[1:])
        return None, offsets
    np.cumsum(np.maximum(counts, 0), out=offsets[1:])
    return bits(counts >= 0), offsets


def _list(elements: pa.Array, count: int, validity: pa.Buffer | None, offsets: ColumnArray) -> pa.Array:
    kind = pa.list_(pa.field("element", elements.type))
    return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(offsets)], children=[elements])


def _numbers(kind: str, values: ColumnArray) -> pa.Array:
    """Convert numbers to the field's type; those of a KIP-625 encoding fit it."""
    if kind == "uuid":
        return _uuids(values)
    if kind == "bool":
        return pa.array(values != 0, pa.bool_())
    return pa.array(values.astype(ARROW[kind].to_pandas_dtype(), copy=False), ARROW[kind])


def _uuids(values: ColumnArray) -> pa.Array:
    """Render uuids as Kafka does: URL-safe base64 without padding."""
    count = len(values)
    padded = np.zeros((count, 18), np.uint8)
    padded[:, :16] = np.ascontiguousarray(values).view(np.uint8).reshape(count, 16)
    a, b, c = (padded[:, i::3] for i in range(3))
    sextets = np.stack([a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63], axis=2).reshape(count, 24)
    text = np.ascontiguousarray(BASE64[sextets[:, :UUID_CHARACTERS]])
    if text.size > MAX_ARROW_OFFSET:
        raise OptionError(f"{count} uuids in one column; read fewer messages per call")
    offsets = np.arange(0, text.size + 1, UUID_CHARACTERS, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def _slices(node: _Node, code: int, slices: ColumnArray, data: Bytes) -> pa.Array:
    """Return an Arrow array of strings, bytes, or lists of numbers."""
    validity, offsets, values = gather_slices(slices, code, node.field, node.path, data)
    if code:
        return _list(_numbers(node.field.type, values), len(slices), validity, offsets)
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(ARROW[node.field.type], len(slices), buffers)
