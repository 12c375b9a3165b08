"""The memory of columns that the kernel fills, and the Arrow arrays made from it.

Columns of top-level fields have room for every row. Others, and the bytes of strings, start with an estimate: the
kernel stops when a column is full, the column grows, and the kernel continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire.errors import OptionError
from kwire.native.buffers import allocate_together, bitmap_bytes
from kwire.schemas.column_plan import Column, ColumnPlan
from kwire.wire.value_rows import COLUMN, COLUMN_WORDS, KINDS, MAX_OFFSET

__all__ = ["Buffers", "ColumnBuffers", "assemble"]

WORD = {name: index for index, name in enumerate(COLUMN)}
LEAST_VALUES, LEAST_BYTES = 64, 256
UNLIMITED = 2**62
FIRST_OFFSET = bytes(4)

Buffers = list[pa.Buffer | None]


class ColumnBuffers:
    """Memory for the columns of a plan. words: the columns as the kernel reads them.

    rows: of the input. data_bytes: of all their values together.
    """

    def __init__(self, plan: ColumnPlan, rows: int, data_bytes: int) -> None:
        self.plan = plan
        self.words = np.zeros((len(plan.columns), COLUMN_WORDS), np.int64)
        self.buffers: list[dict[str, pa.Buffer]] = [{} for _ in plan.columns]
        self.groups = groups(plan.columns)
        strings = sum(each.kind == "BINARY" for each in plan.columns)
        share = min(MAX_OFFSET, 2 * data_bytes // max(strings, 1) + LEAST_BYTES)
        sizes = dict[tuple[int, str], int]()  # of what never grows
        for column in plan.columns:
            words = self.words[column.number]
            words[WORD["KIND"]], words[WORD["WIDTH"]] = KINDS.index(column.kind), column.width
            words[WORD["CHILDREN"]] = plan.children[column.number]
            words[WORD["CHILD_COUNT"]] = len(column.children)
            if self.groups[column.number]:
                self.set_capacity(column, max(rows, LEAST_VALUES))
                if column.kind in ("BINARY", "LIST"):
                    np.frombuffer(self.buffers[column.number]["OFFSETS"], np.int32, 1)[0] = 0
            else:
                words[WORD["CAPACITY"]] = rows if needs_room(column) else UNLIMITED
                sizes |= {(column.number, part): size for part, size in sizes_of(column, rows).items()}
            if column.kind == "BINARY":
                self.resize(column, "DATA", share)
                words[WORD["DATA_CAPACITY"]] = share
        begins = {place: FIRST_OFFSET for place in sizes if place[1] == "OFFSETS"}
        for (number, part), buffer in allocate_together(sizes, begins).items():
            self.buffers[number][part], self.words[number, WORD[part]] = buffer, buffer.address

    def resize(self, column: Column, part: str, n_bytes: int) -> None:
        """Allocate a buffer of a column from Arrow, which reuses memory, or change its size."""
        buffers = self.buffers[column.number]
        if part in buffers:
            buffers[part].resize(n_bytes)
        else:
            buffers[part] = pa.allocate_buffer(n_bytes, resizable=True)
        self.words[column.number, WORD[part]] = buffers[part].address

    def set_capacity(self, column: Column, values: int) -> None:
        """Make room for this number of values."""
        for part, size in sizes_of(column, values).items():
            self.resize(column, part, size)
        self.words[column.number, WORD["CAPACITY"]] = values if needs_room(column) else UNLIMITED

    def grow(self, number: int, needed: int, is_data: bool, share_done: float) -> None:
        """Make room in a column. share_done: of the input, which the size at the end is estimated from."""
        column = self.plan.columns[number]
        part = "DATA_CAPACITY" if is_data else "CAPACITY"
        capacity = int(self.words[number, WORD[part]])
        estimate = int(needed / share_done * 1.1) if share_done > 0.01 else 0
        room = min(MAX_OFFSET, max(needed, 2 * capacity, estimate))
        if is_data:
            self.resize(column, "DATA", room)
            self.words[number, WORD["DATA_CAPACITY"]] = room
            return
        for each in self.plan.columns:  # one at a time, each would stop the kernel in the same row again
            if self.groups[each.number] == self.groups[number] and self.words[each.number, WORD["CAPACITY"]] < room:
                self.set_capacity(each, room)

    def finished(self, column: Column) -> tuple[int, Buffers]:
        """Return the number of values, and the buffers without their unused ends."""
        words, buffers = self.words[column.number], self.buffers[column.number]
        length = int(words[WORD["LENGTH"]])
        sizes = sizes_of(column, length)
        if column.kind == "BINARY":
            sizes["DATA"] = int(words[WORD["DATA_BYTES"]])
        trimmed: Buffers = []
        for part in parts(column):
            buffer = buffers.get(part)
            if buffer is not None and buffer.size != sizes[part]:
                buffer = self.shrunk(buffer, sizes[part])
            trimmed.append(buffer)
        return length, trimmed

    def shrunk(self, buffer: pa.Buffer, n_bytes: int) -> pa.Buffer:
        """Return the buffer without its unused end."""
        buffer.resize(n_bytes, shrink_to_fit=True)
        return buffer


def groups(columns: Sequence[Column]) -> list[int]:
    """Return for each column the number of the list around it, 0 without one: columns of a group have equal lengths."""
    list_numbers = [0] * len(columns)
    for column in columns:  # a column comes before those inside
        for child in column.children:
            list_numbers[child.number] = column.number + 1 if column.kind == "LIST" else list_numbers[column.number]
    return list_numbers


def needs_room(column: Column) -> bool:
    """Return whether each value takes memory of the column itself."""
    return column.kind != "NOTHING" and (column.nullable or column.kind != "STRUCT")


def sizes_of(column: Column, values: int) -> dict[str, int]:
    """Return the sizes of buffers with a place for each value, in bytes by part."""
    sizes = {}
    if column.nullable and column.kind != "NOTHING":
        sizes["VALIDITY"] = bitmap_bytes(values)
    if column.kind == "BITS":
        sizes["DATA"] = bitmap_bytes(values)
    elif column.kind == "WIDE":
        sizes["DATA"] = values * column.width
    elif column.kind in ("BINARY", "LIST"):
        sizes["OFFSETS"] = 4 * (values + 1)
    return sizes


def parts(column: Column) -> Iterator[str]:
    """Yield the names of a column's buffers, as Arrow orders them."""
    yield "VALIDITY"
    if column.kind in ("BINARY", "LIST"):
        yield "OFFSETS"
    if column.kind in ("BITS", "WIDE", "BINARY"):
        yield "DATA"


def assemble(column: Column, finished: Sequence[tuple[int, Buffers]]) -> pa.Array:
    """Return the array of a column. finished: the length and the buffers of each column, by number."""
    length, buffers = finished[column.number]
    if column.kind == "NOTHING":
        return pa.nulls(length)
    nulls = 0 if buffers[0] is None else -1
    children = [assemble(each, finished) for each in column.children]
    return pa.Array.from_buffers(column.type, length, buffers, nulls, children=children or None)


def binary_bounds(values: pa.Array) -> tuple[pa.Buffer, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the bytes, starts and ends of an array of binary. Raises OptionError for another type."""
    if not isinstance(values, pa.Array):
        raise OptionError(f"values are {type(values).__name__}, expected pyarrow.Array; decode one chunk at a time")
    kind = values.type
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        width: np.dtype[np.int32] | np.dtype[np.int64] = np.dtype(np.int32)
    elif pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        width = np.dtype(np.int64)
    else:
        raise OptionError(f"values are {kind}, expected binary")
    _, offsets, data = values.buffers()
    if not len(values):
        empty = np.zeros(0, np.int64)
        return pa.py_buffer(b"\0"), empty, empty
    edges = np.frombuffer(offsets, width, len(values) + 1, values.offset * width.itemsize).astype(np.int64)
    return data if data is not None and data.size else pa.py_buffer(b"\0"), edges[:-1], edges[1:]
