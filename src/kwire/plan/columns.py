"""Many messages of one version as one Arrow table, without an object for each.

    ColumnReader(spec, 9, ["topics[].name", "topics[].partitions[].leader_id"]).read(data, starts) -> pyarrow.Table

A path names a field from the message down, with `[]` after every unfolded array of structs. The table has one row
for each element of the innermost array (a message with none has no row, as with SQL's UNNEST); fields further out
repeat. So each array on a path must contain, or be inside, every other one. Fields that the version lacks, and tagged
ones that were not sent, have their default; fields below a null struct are null.

    bool, int8 ... uint32, int64, float64       the same in Arrow          uuid               fixed_size_binary(16)
    string, bytes and records                   string, binary; as a       array of those     list of the same
                                                dictionary when repeated   numbers

Fields in no path are checked but not stored; tagged ones among them are skipped by their size, unread.
This module imports numba, numpy and pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kwire import native
from kwire.errors import DecodeError, Malformed, OptionError
from kwire.plan import rows as r
from kwire.plan.compiler import compile_message
from kwire.plan.kernels.flatten import MAX_LEVELS
from kwire.plan.kernels.operands import FULL
from kwire.plan.reading import Reader
from kwire.plan.slices import DEFAULT_SLICE, NUMPY, SLICE, ColumnArray, Int64Array, bits, gather_slices, stored_default
from kwire.schema.model import Field, Message, Struct

__all__ = ["ColumnReader"]

Buffer = bytes | bytearray | memoryview
UInt8Array = np.ndarray[Any, np.dtype[np.uint8]]

ARROW = {
    r.BOOL: pa.bool_(),
    r.INT8: pa.int8(),
    r.INT16: pa.int16(),
    r.UINT16: pa.uint16(),
    r.INT32: pa.int32(),
    r.UINT32: pa.uint32(),
    r.INT64: pa.int64(),
    r.FLOAT64: pa.float64(),
    r.UUID: pa.binary(16),
}


@dataclass(slots=True, kw_only=True)
class _Column:
    """A projected field. level: the innermost array around it. row: of the plan; -1 if the version lacks the field.

    code: of a number as the kernel stores it, or of the elements of a list; 0 for strings and bytes.
    optional: may be omitted from a message. nullable_struct: the field of the nullable struct around it, or None.
    """

    path: str
    field: Field
    level: int
    row: int = -1
    code: int = 0
    is_slice: bool = False
    optional: bool = False
    nullable_struct: Field | None = None

    @property
    def default_slice(self) -> int:
        return -1 if self.field.default is None else DEFAULT_SLICE

    @property
    def struct_is_null(self) -> bool:
        """Whether its struct is null when it is omitted."""
        return self.nullable_struct is not None and self.nullable_struct.default is None


class ColumnReader:
    """Reads columns of one version of one message.

    paths: the columns, in the order of the table. Raises OptionError for an unknown path, one that ends in an array of
    structs, or one in an array beside those of the other paths; UnsupportedVersion outside spec.valid.
    """

    def __init__(self, spec: Message, version: int, paths: Sequence[str]) -> None:
        self.plan = compile_message(spec, version)
        self.paths = tuple(paths)
        self._levels: list[tuple[str, ...]] = [()]
        wanted = [self._find(spec.struct, version, path) for path in self.paths]
        if len(self._levels) > MAX_LEVELS:
            raise OptionError(f"{len(self._levels) - 1} nested arrays exceed the maximum of {MAX_LEVELS - 1}")
        self._columns = {column.path: column for column in wanted}
        self._projection = np.zeros((len(self.plan.rows), 4), np.int64)
        self._captured = self._bind()
        self._rows = np.array(self.plan.rows, np.int64)
        self._explain = Reader(self.plan)

    def read(self, data: bytes | bytearray | memoryview, starts: Int64Array | Sequence[int]) -> pa.Table:
        """Read the messages in data as a table; message i is at [starts[i], starts[i + 1]).

        Raises DecodeError with the position in data and the path for the first message that is not well-formed.
        Cost: benchmarks/messages/columns.py.
        """
        bounds = np.ascontiguousarray(starts, np.int64)
        if len(bounds) and (bounds[0] < 0 or bounds[-1] > len(data) or (np.diff(bounds) < 0).any()):
            raise OptionError("starts must ascend from 0 to the length of the data")
        count = max(0, len(bounds) - 1)
        source = np.frombuffer(data, np.uint8)
        room = [count] + [len(data) // 32 + 64] * (len(self._levels) - 1)
        while True:
            arrays = _Arrays(self._captured, room)
            counts = np.zeros(2 * MAX_LEVELS, np.int64)
            counts[MAX_LEVELS : MAX_LEVELS + len(room)] = room
            frames = np.zeros((self.plan.depth + 1) * 8, np.int64)
            code = native.flatten(
                source.ctypes.data,
                bounds.ctypes.data,
                count,
                self._rows.ctypes.data,
                self._projection.ctypes.data,
                arrays.columns.ctypes.data,
                arrays.parents.ctypes.data,
                counts.ctypes.data,
                frames.ctypes.data,
            )
            if code == 0:
                break
            if code > FULL:
                raise self._error(data, bounds, int(counts[0]) - 1)
            room[FULL - code] *= 4
        return self._table(data, bounds, source, arrays, counts[: len(room)].tolist())

    def read_all(self, messages: Sequence[bytes | bytearray | memoryview]) -> pa.Table:
        """Read separate messages as a table; positions in errors are those in the joined messages."""
        starts = np.zeros(len(messages) + 1, np.int64)
        np.cumsum([len(m) for m in messages], out=starts[1:])
        return self.read(b"".join(messages), starts)

    # Before reading: the rows of the projected fields

    def _find(self, struct: Struct, version: int, path: str) -> _Column:
        """Return the column of a path; adds its arrays to the levels."""
        steps = path.split(".")
        nullable: list[Field] = []
        optional = False
        way: tuple[str, ...] = ()
        level: tuple[str, ...] = ()
        inside: Struct | None = struct
        present = True
        found: Field | None = None
        for i, step in enumerate(steps):
            name = step.removesuffix("[]")
            found = next((f for f in inside.fields if f.attr == name), None) if inside is not None else None
            if found is None:
                raise OptionError(f"{path}: unknown field {'.'.join(steps[: i + 1])}")
            present = present and version in found.versions
            unfolded = step.endswith("[]")
            last = i == len(steps) - 1
            if unfolded != (found.is_array and found.struct is not None) or (last and found.struct is not None):
                raise OptionError(f"{path}: write [] after each array of structs, and end the path with a field")
            optional = optional or version in found.tagged
            way = (*way, step)
            if unfolded:
                level, nullable, optional = way, [], False
                if level not in self._levels:
                    if level[: len(self._levels[-1])] != self._levels[-1]:
                        raise OptionError(f"{path}: outside of array {'.'.join(self._levels[-1])}; use two tables")
                    self._levels.append(level)
            elif found.struct is not None and version in found.nullable:
                nullable.append(found)
            inside = found.struct
        assert found is not None
        if len(nullable) > 1:
            raise OptionError(f"{path}: inside {len(nullable)} nullable structs; at most 1 is supported")
        column = _Column(path=path, field=found, level=self._levels.index(level), optional=optional or bool(nullable))
        column.nullable_struct = nullable[0] if nullable else None
        if present:
            column.row = next(
                n for n, fields in enumerate(self.plan.fields) if found in fields and self.plan.paths[n] == way[:-1]
                and self.plan.rows[n][0] in (r.FIXED, r.VARINTS, r.STRING, r.BYTES, r.LIST, r.VARLIST)
            )  # fmt: skip
        return column

    def _bind(self) -> list[_Column]:
        """Fill the projection. Returns the columns in the order of the plan."""
        captured = sorted(
            (c for c in self._columns.values() if c.row >= 0),
            key=lambda c: (c.row, self.plan.fields[c.row].index(c.field)),
        )
        for index, column in enumerate(captured):
            op, codes, code, *_ = self.plan.rows[column.row]
            projected = self._projection[column.row]
            if op in (r.FIXED, r.VARINTS):
                place = self.plan.fields[column.row].index(column.field)
                column.code = codes >> 4 * place & 15 if op == r.FIXED else r.INT64
                if projected[0] == 0:
                    projected[1] = index
                projected[0] |= 1 << place
            else:
                column.is_slice, column.code = True, code if op in (r.LIST, r.VARLIST) else 0
                projected[:2] = 1, index
        for number, row in enumerate(self.plan.rows):
            name = (*self.plan.paths[number], *(f.attr for f in self.plan.fields[number][:1]))
            if row[0] == r.ARRAY:
                level = (*self.plan.paths[number], f"{name[-1]}[]")
                self._projection[number][0] = self._levels.index(level) if level in self._levels else 0
            elif row[0] in (r.NULLABLE, r.ENTRY):
                below = [i for i, column in enumerate(captured) if _is_below(column, name)]
                self._projection[number][0] = bool(below) or _is_on_the_way(self._levels, name)
                if below and row[0] == r.NULLABLE:
                    self._projection[number][1:3] = self._below_struct(captured, name)
        return captured

    def _below_struct(self, captured: list[_Column], name: tuple[str, ...]) -> tuple[int, int]:
        """Return the range of columns that are null when the struct is: those of its level."""
        level = max(i for i, level in enumerate(self._levels) if name[: len(level)] == level)
        own = [i for i, column in enumerate(captured) if _is_below(column, name) and column.level == level]
        return (own[0], own[-1] + 1) if own else (0, 0)

    def _error(self, data: Buffer, bounds: Int64Array, message: int) -> DecodeError:
        """Return the walker's error for a message."""
        start, end = int(bounds[message]), int(bounds[message + 1])
        try:
            self._explain.read(bytes(memoryview(data)[start:end]), 0)
        except DecodeError as error:
            return type(error)(f"{error.what}, in message {message}", start + error.position, error.path)
        return Malformed(f"message {message} cannot be read", start)

    # After reading: from arrays to a table

    def _table(
        self, data: Buffer, bounds: Int64Array, source: UInt8Array, arrays: _Arrays, counts: list[int]
    ) -> pa.Table:
        takes: list[Int64Array | None] = [None] * len(counts)
        take: Int64Array | None = None
        for level in range(len(counts) - 1, 0, -1):
            parents = arrays.parent_rows[level][: counts[level]]
            take = parents if take is None else parents[take]
            takes[level - 1] = take
        length = counts[-1]
        made = {
            column.path: self._array(column, index, data, bounds, source, arrays, counts[column.level], takes)
            for index, column in enumerate(self._captured)
        }
        for path, column in self._columns.items():
            if column.row < 0:
                made[path] = _constant(column, length)
        return pa.table({path: made[path] for path in self.paths})

    def _array(
        self,
        column: _Column,
        index: int,
        data: Buffer,
        bounds: Int64Array,
        source: UInt8Array,
        arrays: _Arrays,
        count: int,
        takes: list[Int64Array | None],
    ) -> pa.Array:
        take = takes[column.level]
        values = arrays.values[index][:count]
        if not column.is_slice:
            validity = arrays.validity[index]
            mask = None if validity is None else validity[:count] == 0
            if take is not None:
                values = values[take]
                mask = None if mask is None else mask[take]
            wanted = r.CODES[column.field.type]
            if wanted != column.code:  # an encoding of KIP-625; whatever came of it fits the field's type
                values = values.astype(NUMPY[wanted])
            return _numbers(wanted, values, mask)
        made = _gathered(column, values, source)
        if pa.types.is_string(made.type):
            try:
                made.validate(full=True)
            except pa.ArrowInvalid:
                raise self._bad_text(data, bounds) from None
        if take is None:
            return made
        if column.code:
            return made.take(pa.array(take))
        return pa.DictionaryArray.from_arrays(pa.array(take.astype(np.int32)), made)

    def _bad_text(self, data: Buffer, bounds: Int64Array) -> DecodeError:
        """Return the error of the first message with invalid UTF-8; Arrow does not say which one it is."""
        for message in range(len(bounds) - 1):
            error = self._error(data, bounds, message)
            if error.path or error.what.startswith("invalid UTF-8"):
                return error
        return Malformed("invalid UTF-8", 0)


class _Arrays:
    """The output of one run of the kernel: for each column its values and validity, for each level its parents.

    All numbers share one allocation. All slices and parents share another, which is freed with the table: numpy uses
    huge pages from 4 MB up, and page faults on small ones would cost as much as the reading.
    """

    def __init__(self, columns: list[_Column], room: list[int]) -> None:
        kinds = [SLICE if column.is_slice else NUMPY[column.code] for column in columns]
        sizes = [room[column.level] for column in columns]
        needed = list(zip(kinds, sizes, strict=True))
        kept = _Arena(kind.itemsize * n for kind, n in needed if kind is not SLICE)
        passing = _Arena([*(16 * n for kind, n in needed if kind is SLICE), *(8 * n for n in room[1:])])
        self.values: list[ColumnArray] = []
        self.validity: list[UInt8Array | None] = []
        self.columns = np.zeros((len(columns) or 1, 4), np.int64)
        for i, (column, kind, n) in enumerate(zip(columns, kinds, sizes, strict=True)):
            values = (passing if column.is_slice else kept).take(kind, n)
            validity = None
            if column.is_slice and column.optional:
                values["position"] = 0
                values["count"] = -1 if column.struct_is_null else column.default_slice
            elif column.optional:
                values[:] = stored_default(column.field.default)
            if not column.is_slice and column.nullable_struct is not None:
                validity = np.full(n, 0 if column.struct_is_null else 1, np.uint8)
            self.values.append(values)
            self.validity.append(validity)
            self.columns[i] = (
                values.ctypes.data,
                0 if validity is None else validity.ctypes.data,
                0 if column.is_slice else 1,
                column.default_slice,
            )
        self.parent_rows: list[Int64Array] = [
            np.empty(0, np.int64),
            *(passing.take(np.dtype(np.int64), n) for n in room[1:]),
        ]
        self.parents = np.array([array.ctypes.data for array in self.parent_rows], np.int64)


class _Arena:
    """One allocation for arrays of the given sizes in bytes."""

    def __init__(self, sizes: Iterable[int]) -> None:
        self._memory = np.empty(sum(_aligned(size) for size in sizes), np.uint8)
        self._used = 0

    def take(self, kind: np.dtype[np.generic], count: int) -> ColumnArray:
        """Return the next array, uninitialized."""
        size = kind.itemsize * count
        array = self._memory[self._used : self._used + size].view(kind)
        self._used += _aligned(size)
        return array


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


def _is_below(column: _Column, name: tuple[str, ...]) -> bool:
    """Whether the column is the field `name` or inside it."""
    steps = tuple(column.path.split("."))
    return steps[: len(name)] == name or steps[: len(name)] == (*name[:-1], f"{name[-1]}[]")


def _is_on_the_way(levels: list[tuple[str, ...]], name: tuple[str, ...]) -> bool:
    """Whether the innermost unfolded array is the field `name` or inside it."""
    deepest = levels[-1]
    return deepest[: len(name)] == name or deepest[: len(name)] == (*name[:-1], f"{name[-1]}[]")


def _numbers(code: int, values: ColumnArray, mask: ColumnArray | None) -> pa.Array:
    if code != r.UUID:
        return pa.array(values, ARROW[code], mask=mask)
    validity = None if mask is None else bits(~mask)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.FixedSizeBinaryArray.from_buffers(ARROW[code], len(values), [validity, data])


def _gathered(column: _Column, slices: ColumnArray, source: UInt8Array) -> pa.Array:
    """Strings, bytes or lists of the slices."""
    validity, offsets, values = gather_slices(slices, column.code, column.field, column.path, source)
    buffers = [validity, pa.py_buffer(offsets)]
    if not column.code:
        kind = pa.string() if column.field.type == "string" else pa.binary()
        return pa.Array.from_buffers(kind, len(slices), [*buffers, pa.py_buffer(values)])
    wanted = r.CODES[column.field.type]
    elements = _numbers(wanted, values.astype(NUMPY[wanted], copy=False), None)
    return pa.Array.from_buffers(pa.list_(ARROW[wanted]), len(slices), buffers, children=[elements])


def _constant(column: _Column, length: int) -> pa.Array:
    """Return the default of a field that the version lacks, once for each row."""
    field = column.field
    default: Any = None if column.struct_is_null else field.default
    code = r.CODES.get(field.type, 0)
    kind = ARROW[code] if code else pa.string() if field.type == "string" else pa.binary()
    if field.is_array:
        kind, default = pa.list_(kind), [] if default == () else default
    elif code == r.UUID and default is not None:
        default = default.bytes
    return pa.array([default] * length, kind)
