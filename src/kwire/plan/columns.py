"""Many messages of one version as one Arrow table, without an object for each.

    ColumnReader(spec, 9, ["topics[].name", "topics[].partitions[].leader_id"]).read(data, starts) -> pyarrow.Table

A path names a field from the message down, with `[]` after every unfolded array of structs. The table has one row
for each element of the innermost array (a message with none has no row, as with SQL's UNNEST); fields further out
repeat. So each array on a path must contain, or be inside, every other one. Fields that the version lacks, and tagged
ones that were not sent, have their default; fields below a null struct are null.

    bool, int8 ... uint32, int64, float64       the same in Arrow          uuid               fixed_size_binary(16)
    string, bytes and records                   string, binary; as a       array of those     list of the same
                                                dictionary when repeated

Fields in no path are checked but not stored. The columns are the same as in `kwire.plan.nested_columns`, unfolded. This
module imports numpy and pyarrow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from kwire.errors import DecodeError, OptionError
from kwire.extras import needing
from kwire.schema.model import Field, Message, Struct

with needing("columns of messages"):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from kwire.plan.nested_columns import ARROW, NestedReader, arrow_type
    from kwire.plan.slices import Bytes, Int64Array

__all__ = ["ColumnReader"]

Int32Array = np.ndarray[Any, np.dtype[np.int32]]
Steps = tuple[str, ...]
"""Of a path."""
TYPES = {**ARROW, "uint16": pa.uint16(), "uint32": pa.uint32(), "uuid": pa.binary(16)}


class ColumnReader:
    """Reads columns of one version of one message.

    paths: the columns, in the order of the table. Raises OptionError for an unknown path, one that ends in an array of
    structs, or one in another array than the other paths; UnsupportedVersion outside spec.valid.
    """

    def __init__(self, spec: Message, version: int, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        self._steps = [tuple(path.split(".")) for path in self.paths]
        self._fields = [_fields_of(spec.struct, path) for path in self.paths]
        arrays = {steps[: i + 1] for steps in self._steps for i, step in enumerate(steps) if step.endswith("[]")}
        self._levels: list[Steps] = [(), *sorted(arrays, key=len)]
        for outer, inner in zip(self._levels, self._levels[1:], strict=False):
            if inner[: len(outer)] != outer:
                raise OptionError(f"{'.'.join(inner)}: outside of array {'.'.join(outer)}; use two tables")
        wanted = _only(spec.struct, self._steps)
        self._reader = NestedReader(spec, version, wanted=wanted, types=TYPES)

    def read(self, data: bytes | bytearray | memoryview, starts: Int64Array | Sequence[int]) -> pa.Table:
        """Read the messages in data as a table; message i is at [starts[i], starts[i + 1]).

        Raises DecodeError with the position in data and the path for the first message that is not well-formed.
        Cost: benchmarks/messages/columns.py.
        """
        edges = np.ascontiguousarray(starts, np.int64)
        if len(edges) and (edges[0] < 0 or edges[-1] > len(data) or (np.diff(edges) < 0).any()):
            raise OptionError("starts must ascend from 0 to the length of the data")
        source = np.frombuffer(data, np.uint8)
        messages = self._reader.read_bounds(source, np.stack([edges[:-1], edges[1:]], axis=1), permissive=True)
        if messages.null_count:
            raise self._error(source, edges, int(np.flatnonzero(messages.is_null())[0]))
        return self._unfolded(messages)

    def read_all(self, messages: Sequence[bytes | bytearray | memoryview]) -> pa.Table:
        """Read separate messages as a table; positions in errors are those in the joined messages."""
        starts = np.zeros(len(messages) + 1, np.int64)
        np.cumsum([len(m) for m in messages], out=starts[1:])
        return self.read(b"".join(messages), starts)

    def _error(self, source: Bytes, edges: Int64Array, message: int) -> DecodeError:
        start = int(edges[message])
        error = self._reader.explain(source, start, int(edges[message + 1]))
        return type(error)(f"{error.what}, in message {message}", start + error.position, error.path)

    def _unfolded(self, messages: pa.StructArray) -> pa.Table:
        """Return the table of the innermost array's elements."""
        structs: list[pa.StructArray | None] = [messages]  # the elements of each level; None if the version lacks it
        parents: list[Int32Array] = []  # for each element of a level below: its row in the level above
        for outer, inner in zip(self._levels, self._levels[1:], strict=False):
            array = _array(structs[-1], inner[len(outer) :])
            structs.append(None if array is None else array.values)
            counts = np.zeros(0, np.int32) if array is None else np.diff(array.offsets.to_numpy())
            parents.append(np.repeat(np.arange(len(counts), dtype=np.int32), counts))
        takes: list[Int32Array | None] = [None]  # for each row of the table: its row in the level
        for rows in reversed(parents):
            takes.insert(0, rows if takes[0] is None else rows[takes[0]])
        columns = {}
        for path, steps, fields in zip(self.paths, self._steps, self._fields, strict=True):
            level = max(i for i, each in enumerate(self._levels) if steps[: len(each)] == each)
            columns[path] = _repeated(_column(structs[level], fields[len(self._levels[level]) :]), takes[level])
        return pa.table(columns)


def _fields_of(struct: Struct, path: str) -> list[Field]:
    """Return the fields on a path."""
    fields: list[Field] = []
    inside: Struct | None = struct
    steps = path.split(".")
    for i, step in enumerate(steps):
        name = step.removesuffix("[]")
        field = next((f for f in inside.fields if f.attr == name), None) if inside is not None else None
        if field is None:
            raise OptionError(f"{path}: unknown field {'.'.join(steps[: i + 1])}")
        is_last = i == len(steps) - 1
        if step.endswith("[]") != (field.is_array and field.struct is not None) or (
            is_last and field.struct is not None
        ):
            raise OptionError(f"{path}: write [] after each array of structs, and end the path with a field")
        fields.append(field)
        inside = field.struct
    return fields


def _only(struct: Struct, paths: Sequence[Steps]) -> Struct:
    """Return the struct with no fields but those on the paths."""
    fields = []
    for f in struct.fields:
        below = [steps[1:] for steps in paths if steps and steps[0].removesuffix("[]") == f.attr]
        if below:
            fields.append(f if f.struct is None else dataclasses.replace(f, struct=_only(f.struct, below)))
    return dataclasses.replace(struct, fields=tuple(fields))


def _array(structs: pa.StructArray | None, steps: Steps) -> pa.ListArray | None:
    """Return the array that is unfolded next; None if the version lacks it."""
    array = structs
    for step in steps:
        name = step.removesuffix("[]")
        if array is None or array.type.get_field_index(name) < 0:
            return None
        array = array.field(name)
    return array


def _column(structs: pa.StructArray | None, fields: Sequence[Field]) -> pa.Array:
    """Return a field below structs: null where one on the way is, its default if the version lacks it."""
    array: Any = structs
    present: pa.BooleanArray | None = None
    for i, field in enumerate(fields):
        if array is None or array.type.get_field_index(field.attr) < 0:
            array = _constant(fields[i:], 0 if array is None else len(array))
            break
        array = array.field(field.attr)
        if array.null_count and field is not fields[-1]:
            present = array.is_valid() if present is None else pc.and_(present, array.is_valid())
    return array if present is None else pc.if_else(present, array, pa.scalar(None, array.type))


def _repeated(column: pa.Array, take: Int32Array | None) -> pa.Array:
    if take is None:
        return column
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return pa.DictionaryArray.from_arrays(pa.array(take), column)
    return column.take(pa.array(take))


def _constant(fields: Sequence[Field], count: int) -> pa.Array:
    """Return the default of the last field, or null if the default of a struct around it is null."""
    field = fields[-1]
    default: Any = None if any(each.default is None for each in fields[:-1]) else field.default
    if default == ():
        default = []
    elif isinstance(default, UUID):
        default = default.bytes
    return pa.array([default] * count, arrow_type(field, None, TYPES))
