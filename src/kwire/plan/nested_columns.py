"""Many messages of one version as one Arrow array of structs, nested like the definition, without an object for each.

    NestedReader(spec, 9).read(pa.array([b"...", None, b"..."])) -> pyarrow.StructArray

The struct has the fields of that version, in the definition's order and under the names of the classes (snake case):

    bool, int8 ... int64, float64     the same in Arrow; uint16 as int32, uint32 as int64 (Spark has no unsigned ones)
    string                            string            bytes, records      binary
    uuid                              string, Kafka's 22 characters of base64 (Spark has no binary of fixed size)
    struct, array                     struct, list      null                null

Tagged fields that were not sent have their default. Unknown tagged fields are omitted. A null message is a null struct;
in permissive mode, so is an unreadable one.

Compiled code (`native/message_columns.c`) reads the messages once, into arrays whose size is estimated from a few of
them; if one is too small, or a message cannot be read, it counts the rest, and a second run fits. Without compiled
code, the walker reads each message. Cost: benchmarks/spark/functions.py. This imports numpy and pyarrow.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kwire import native
from kwire.errors import DecodeError, Malformed, OptionError
from kwire.plan import rows as r
from kwire.plan.compiler import compile_frame, compile_message
from kwire.plan.plain_columns import struct_array
from kwire.plan.reading import Reader
from kwire.plan.slices import MAX_ARROW_OFFSET, NUMPY, Bytes, ColumnArray, Int64Array, bits, gather_slices
from kwire.schema.model import Field, Message, Struct

__all__ = ["ARROW", "NestedReader", "arrow_type", "message_bounds", "version_type"]

Types = Mapping[str, pa.DataType]
Way = tuple[str, ...]
"""Attributes from the message down to a struct, with `[]` after arrays."""

ARROW: Types = {
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
COUNT, PRESENCE, SLICE = np.dtype(np.int64), np.dtype(np.uint8), np.dtype((np.int64, 2))
NUMBERS = (r.FIXED, r.VARINTS)
OF_VALUES = (*NUMBERS, r.STRING, r.BYTES, r.LIST, r.VARLIST, r.ARRAY, r.NULLABLE)
COLUMN, LEVEL = r.WORD["column"], r.WORD["level"]
ALIGNMENT = 64
SAMPLE, SPARE = 128, 64
"""Rows are estimated from this many messages; SPARE: rows beyond that."""
UUID_CHARACTERS = 22
BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)


def version_type(spec: Message, version: int | None) -> pa.StructType:
    """Return the Arrow type of one version, or of all versions together if version is None."""
    return _struct_type(spec.struct, version, ARROW)


def arrow_type(field: Field, version: int | None, types: Types = ARROW) -> pa.DataType:
    """Return the Arrow type of a field in one version, or in all versions together."""
    element = types[field.type] if field.struct is None else _struct_type(field.struct, version, types)
    return pa.list_(pa.field("element", element)) if field.is_array else element


def _struct_type(struct: Struct, version: int | None, types: Types) -> pa.StructType:
    fields = (f for f in struct.fields if version is None or version in f.versions)
    return pa.struct([pa.field(f.attr, arrow_type(f, version, types)) for f in fields])


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
    """An array that compiled code fills, of one level. op: of its row in the plan. code: of numbers, also in a list.

    optional: elements may be skipped, which keep `initial`. At level 0, null messages have skipped elements too.
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
    with their length, and the result omits the header. wanted: the struct of the message with fewer fields, to store
    only these. types: of Arrow, by the types of definitions. type: of the arrays that `read` returns.
    Raises UnsupportedVersion for an unknown version of either.
    """

    def __init__(
        self,
        spec: Message,
        version: int,
        *,
        header: tuple[Message, int] | None = None,
        wanted: Struct | None = None,
        types: Types = ARROW,
    ) -> None:
        self.spec, self.version = spec, version
        self.plan = compile_frame(*header, spec, version) if header else compile_message(spec, version)
        self._wanted, self._types = wanted or spec.struct, types
        self.type = _struct_type(self._wanted, version, types)
        self._columns: list[_Column | None] = []
        self._at: dict[tuple[Way, str, bool], int] = {}
        self._levels: dict[Way, int] = {(): 0}
        self._rows = np.array(self.plan.rows, np.int64)
        self._rows[:, [COLUMN, LEVEL]] = -1
        self._bind()
        self._nodes = self._struct(self._wanted, (), 0, "", False)
        self._walker = Reader(self.plan)

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
        if ((spans[:, 0] >= 0) & ((spans[:, 1] < spans[:, 0]) | (spans[:, 1] > len(data)))).any():
            raise OptionError("bounds of a message lie outside the data")
        if native.LEVEL is None or self.plan.depth > r.MAX_FRAMES:
            return self._read_plain(data, spans, permissive)
        rows = self._estimate(data, spans)
        while True:
            if max(rows) > MAX_ARROW_OFFSET:
                raise OptionError(
                    f"{max(rows)} elements in one column, {MAX_ARROW_OFFSET} at most; read fewer messages per call"
                )
            arrays = self._allocate(rows, bool((spans[:, 0] >= 0).all()))
            addresses = np.array([0 if array is None else array.ctypes.data for array in arrays] or [0], np.int64)
            levels = self._level_table(rows)
            unreadable, is_full = native.read_columns(data, spans, self._rows, addresses, levels)
            if unreadable and not permissive:
                row = int(np.flatnonzero((spans[:, 0] < 0) & (bounds[:, 0] >= 0))[0])
                raise self._located(self.explain(data, *bounds[row]), row)
            rows = [len(spans), *levels[1:, 0].tolist()]
            if not unreadable and not is_full:
                return self._assembled(arrays, rows, data, spans)

    def explain(self, data: Bytes, start: int, end: int) -> DecodeError:
        """Return the walker's error for the message at [start, end), with the position in the message."""
        try:
            self._walker.read(data[start:end].tobytes(), 0)
        except DecodeError as error:
            return error
        return Malformed("cannot be read", 0)

    def _located(self, error: DecodeError, row: int) -> DecodeError:
        where = f"in row {row} of {self.spec.name} version {self.version}"
        return type(error)(f"{error.what}, {where}", error.position, error.path)

    def _read_plain(self, data: Bytes, spans: Int64Array, permissive: bool) -> pa.StructArray:
        objects: list[Any] = []
        for row, (start, end) in enumerate(spans.tolist()):
            values: Any = None
            if start >= 0:
                try:
                    values, _ = self._walker.read(data[start:end].tobytes(), 0)
                except DecodeError as error:
                    if not permissive:
                        raise self._located(error, row) from None
            objects.append(values[-1] if values is not None and self._walker.framed else values)
        return struct_array(objects, self.spec.struct, self.type)

    def _level_table(self, room: Sequence[int]) -> Int64Array:
        table = np.zeros((len(self._levels), len(r.LEVEL_FIELDS)), np.int64)
        table[:, 1] = room
        return table

    def _estimate(self, data: Bytes, spans: Int64Array) -> list[int]:
        """Estimate the rows of each level from the bytes of some messages."""
        if len(self._levels) == 1:
            return [len(spans)]
        some = spans[:: max(1, len(spans) // SAMPLE)].copy()
        sizes = [int((each[:, 1] - each[:, 0])[each[:, 0] >= 0].sum()) for each in (spans, some)]
        levels = self._level_table([0] * len(self._levels))
        native.read_columns(data, some, self._rows, np.empty(0, np.int64), levels)
        if len(some) == len(spans):
            return [len(spans), *levels[1:, 0].tolist()]
        share = 1.125 * sizes[0] / max(sizes[1], 1)
        return [len(spans), *(min(int(n * share) + SPARE, MAX_ARROW_OFFSET) for n in levels[1:, 0].tolist())]

    # Before reading: a column for each row of the plan with a value, then the tree of fields

    def _bind(self) -> None:
        rows, paths = self.plan.rows, self.plan.paths
        body = max(i for i, row in enumerate(rows) if row[0] == r.STRUCT and not paths[i])
        wanted = set(self._ways(self._wanted, ()))
        for number in range(body, len(rows)):
            op, codes, code, *_ = rows[number]
            fields, path = self.plan.fields[number], paths[number]
            if op not in OF_VALUES or not any((path, each.attr) in wanted for each in fields):
                continue
            self._rows[number, COLUMN], level = len(self._columns), self._levels[_level_of(path)]
            for place, each in enumerate(fields):
                column: _Column | None
                if op in NUMBERS:
                    stored = codes >> 4 * place & 15 if op == r.FIXED else r.INT64
                    column = _Column(op=op, kind=NUMPY[stored], level=level, code=stored)
                elif op == r.ARRAY:
                    column = _Column(op=op, kind=COUNT, level=level)
                    self._rows[number, LEVEL] = self._levels[*path, f"{each.attr}[]"] = len(self._levels)
                elif op == r.NULLABLE:
                    column = _Column(op=op, kind=PRESENCE, level=level)
                else:
                    of = code if op in (r.LIST, r.VARLIST) else 0
                    column = _Column(op=op, kind=SLICE, level=level, code=of)
                self._at[path, each.attr, op == r.NULLABLE] = len(self._columns)
                self._columns.append(column if (path, each.attr) in wanted else None)

    def _ways(self, struct: Struct, path: Way) -> Iterator[tuple[Way, str]]:
        """Where the fields of a struct are: with the elements of arrays that have rows of their own."""
        for f in struct.fields:
            inside = (*path, f"{f.attr}[]" if f.is_array else f.attr)
            yield path, f.attr
            if f.struct is not None:
                yield from self._ways(f.struct, inside)
            else:
                yield inside, f.attr

    def _struct(self, struct: Struct, path: Way, level: int, name: str, optional: bool) -> list[_Node]:
        """Return the nodes of a struct's fields. optional: the struct may be missing from messages."""
        fields = (f for f in struct.fields if self.version in f.versions)
        return [self._field(f, path, level, name + f.attr, optional or self.version in f.tagged) for f in fields]

    def _field(self, f: Field, path: Way, level: int, name: str, optional: bool) -> _Node:
        if f.struct is not None and not f.is_array:
            column = self._at.get((path, f.attr, True), -1)
            if column >= 0:
                self._fill(column, int(f.default is not None), optional)
            node = _Node(kind="struct", field=f, path=name, level=level, column=column)
            node.children = self._struct(f.struct, (*path, f.attr), level, f"{name}.", optional or column >= 0)
            return node
        column = self._at[path, f.attr, False]
        op = self._column(column).op
        if op == r.ARRAY:
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
        if op in (r.STRING, r.BYTES, r.LIST, r.VARLIST):
            self._fill(column, (0, -1 if f.default is None else r.DEFAULT_SLICE), optional)
            return _Node(kind="slice", field=f, path=name, level=level, column=column)
        self._fill(column, np.void(f.default.bytes) if isinstance(f.default, uuid.UUID) else f.default, optional)
        return _Node(kind="number", field=f, path=name, level=level, column=column)

    def _column(self, index: int) -> _Column:
        column = self._columns[index]
        assert column is not None, "the field is wanted"
        return column

    def _fill(self, index: int, initial: object, optional: bool) -> None:
        column = self._column(index)
        column.initial, column.optional = initial, optional

    def _allocate(self, rows: Sequence[int], whole: bool) -> list[ColumnArray | None]:
        """Allocate the arrays of columns, filled with their initial value where elements may be skipped.

        Numbers share one allocation. The rest shares another, which is freed before the result: numpy uses huge pages
        from 4 MB up, and page faults on small ones would cost as much as the reading.
        """
        arrays: list[ColumnArray | None] = [None] * len(self._columns)
        for kept in (True, False):
            mine = [(i, each) for i, each in enumerate(self._columns) if each and kept == (each.op in NUMBERS)]
            sizes = [rows[column.level] * column.kind.itemsize for _, column in mine]
            starts = [0, *accumulate(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)]
            memory = np.empty(starts[-1], np.uint8)
            for (i, column), start, size in zip(mine, starts, sizes, strict=False):
                array = memory[start : start + size].view(column.kind.base).reshape(-1, *column.kind.shape)
                if column.optional or (column.level == 0 and not whole):
                    array[:] = np.array(column.initial, column.kind.base)
                arrays[i] = array
        return arrays

    # After reading: from arrays to Arrow

    def _assembled(
        self, arrays: Sequence[ColumnArray | None], rows: Sequence[int], data: Bytes, spans: Int64Array
    ) -> pa.StructArray:
        present = spans[:, 0] >= 0
        validity = None if present.all() else bits(present)
        return self._structs(self._nodes, arrays, rows, data, len(spans), validity)

    def _structs(
        self,
        nodes: Sequence[_Node],
        arrays: Sequence[ColumnArray | None],
        rows: Sequence[int],
        data: Bytes,
        count: int,
        validity: pa.Buffer | None,
    ) -> pa.StructArray:
        children = [self._array(node, arrays, rows, data) for node in nodes]
        kind = pa.struct([pa.field(node.field.attr, child.type) for node, child in zip(nodes, children, strict=True)])
        return pa.Array.from_buffers(kind, count, [validity], children=children)

    def _array(self, node: _Node, arrays: Sequence[ColumnArray | None], rows: Sequence[int], data: Bytes) -> pa.Array:
        count = rows[node.level]
        array = arrays[node.column] if node.column >= 0 else None
        if node.kind == "struct":
            validity = None if array is None else bits(array[:count] != 0)
            return self._structs(node.children, arrays, rows, data, count, validity)
        assert array is not None
        values = array[:count]
        if node.kind == "array":
            validity, offsets = _offsets(values)
            element = self._array(node.children[0], arrays, rows, data)
            return _list(element, count, validity, offsets)
        code, kind = self._column(node.column).code, self._types[node.field.type]
        if node.kind == "number":
            return _numbers(kind, code, values)
        validity, offsets, items = gather_slices(values, code, node.field.default, node.path, data)
        if code:
            return _list(_numbers(kind, code, items), count, validity, offsets)
        return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(offsets), pa.py_buffer(items)])


def _level_of(path: Way) -> Way:
    """The innermost array around a struct."""
    while path and not path[-1].endswith("[]"):
        path = path[:-1]
    return path


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


def _numbers(kind: pa.DataType, code: int, values: ColumnArray) -> pa.Array:
    """Convert numbers to the field's type; numbers of a KIP-625 encoding fit it."""
    if code == r.UUID:
        return _uuids(kind, np.ascontiguousarray(values).view(np.uint8).reshape(len(values), r.UUID_BYTES))
    if code == r.BOOL:
        return pa.array(values != 0, kind)
    return pa.array(values.astype(kind.to_pandas_dtype(), copy=False), kind)


def _uuids(kind: pa.DataType, values: Bytes) -> pa.Array:
    """Render uuids as Kafka does, URL-safe base64 without padding, unless the type is binary."""
    count = len(values)
    if not pa.types.is_string(kind):
        return pa.FixedSizeBinaryArray.from_buffers(kind, count, [None, pa.py_buffer(values)])
    padded = np.zeros((count, 18), np.uint8)
    padded[:, : r.UUID_BYTES] = values
    a, b, c = (padded[:, i::3] for i in range(3))
    sextets = np.stack([a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63], axis=2).reshape(count, 24)
    text = np.ascontiguousarray(BASE64[sextets[:, :UUID_CHARACTERS]])
    if text.size > MAX_ARROW_OFFSET:
        raise OptionError(f"{count} uuids in one column; read fewer messages per call")
    offsets = np.arange(0, text.size + 1, UUID_CHARACTERS, dtype=np.int32)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
