"""The buffers of one Arrow record batch, from allocation to the finished columns.

Buffers have the maximum size for the input and are shrunk at the end: untouched memory is free, a second pass over the
records is not.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kwire.native.arrays import WIDE
from kwire.native.buffers import allocate_together, bitmap_bytes
from kwire.records.columns import layout as o
from kwire.records.format.default_batch import SMALLEST_RECORD_BYTES
from kwire.records.format.record import decode_header_key

__all__ = ["COLUMN_TYPES", "ArrowColumns", "ConstantColumns"]

HEADER_FIELDS = [pa.field("key", pa.string()), pa.field("value", pa.binary())]
COLUMN_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", pa.struct(HEADER_FIELDS))),  # "element" is what Spark calls it
}
SMALLEST_HEADER_BYTES = 2
KEY_PLACES = (o.KEY_ENDS, o.KEYS, o.KEY_BITMAP)
VALUE_PLACES = (o.VALUE_ENDS, o.VALUES, o.VALUE_BITMAP)


class ConstantColumns:
    """The topic and partition columns: built once, sliced for every batch. None gives nulls."""

    def __init__(self, topic: str | None, partition: int | None) -> None:
        self.values = {"topic": topic, "partition": partition}
        self.built: dict[str, pa.Array] = {}

    def column(self, name: str, rows: int) -> pa.Array:
        """Return the column with `rows` rows."""
        built = self.built.get(name)
        if built is None or len(built) < rows:
            built = self.built[name] = repeated(self.values[name], COLUMN_TYPES[name], rows)
        return built if len(built) == rows else built.slice(0, rows)


def repeated(value: str | int | None, kind: pa.DataType, rows: int) -> pa.Array:
    """Create a column that repeats one value.

    It is made from buffers because pa.scalar() and pa.array() import pandas if it is installed, which takes longer than
    reading ten thousand records.
    """
    if value is None:
        return pa.nulls(rows, kind)
    if isinstance(value, int):
        buffers = [None, pa.py_buffer(np.array([value], kind.to_pandas_dtype()))]
    else:
        data = value.encode()
        buffers = [None, pa.py_buffer(np.array([0, len(data)], np.int32)), pa.py_buffer(data)]
    return pa.repeat(pa.Array.from_buffers(kind, 1, buffers)[0], rows)


class ArrowColumns:
    """Buffers for the records of one Arrow batch, which kernels fill.

    rows: maximum. section_bytes: of all record sections together, which bounds keys, values and headers.
    """

    def __init__(self, columns: tuple[str, ...], rows: int, section_bytes: int) -> None:
        self.columns = columns
        self.addresses = np.zeros(len(o.ADDRESSES), np.int64)
        self.state = np.zeros(len(o.STATE), np.int64)
        self.buffers: dict[int, pa.Buffer] = {}
        data_bytes = section_bytes + WIDE
        sizes: dict[int, int] = {}  # of buffers that are full if all records are kept
        set_bits: dict[int, bytes] = {}
        for column in columns:
            if column in ("offset", "timestamp"):
                sizes[o.OFFSETS if column == "offset" else o.TIMESTAMPS] = 8 * rows
            elif column == "timestampType":
                sizes[o.TIMESTAMP_TYPES] = 4 * rows
            elif column in ("key", "value"):
                ends, data, bitmap = KEY_PLACES if column == "key" else VALUE_PLACES
                sizes[ends], sizes[bitmap] = 4 * (rows + 1), bitmap_bytes(rows)
                set_bits[bitmap] = b"\xff" * sizes[bitmap]
                self.allocate(data, data_bytes)
            elif column == "headers":
                headers = max(0, section_bytes - SMALLEST_RECORD_BYTES * rows) // SMALLEST_HEADER_BYTES
                sizes[o.HEADER_ENDS], sizes[o.HEADER_BITMAP] = 4 * (rows + 1), bitmap_bytes(rows)
                set_bits[o.HEADER_BITMAP] = b"\xff" * sizes[o.HEADER_BITMAP]
                for place in (o.HEADER_KEY_ENDS, o.HEADER_VALUE_ENDS):
                    self.allocate(place, 4 * (headers + 1))
                for place in (o.HEADER_KEYS, o.HEADER_VALUES):
                    self.allocate(place, data_bytes)
                self.allocate(o.HEADER_VALUE_BITMAP, bitmap_bytes(headers))
                memoryview(self.buffers[o.HEADER_VALUE_BITMAP]).cast("B")[:] = b"\xff" * bitmap_bytes(headers)
        for place, part in allocate_together(sizes, set_bits).items():
            self.buffers[place], self.addresses[place] = part, part.address

    def allocate(self, place: int, n_bytes: int) -> None:
        """Allocate memory from Arrow, which reuses it between batches."""
        buffer = pa.allocate_buffer(n_bytes, resizable=True)
        self.buffers[place], self.addresses[place] = buffer, buffer.address

    def finish(self, schema: pa.Schema, constants: ConstantColumns) -> pa.RecordBatch:
        """Create the record batch from what kernels have written; the object cannot be used again."""
        rows = int(self.state[o.ROWS])
        arrays = []
        for column in self.columns:
            if column in ("topic", "partition"):
                arrays.append(constants.column(column, rows))
            elif column == "offset":
                arrays.append(self.fixed(COLUMN_TYPES[column], o.OFFSETS, rows))
            elif column == "timestampType":
                arrays.append(self.fixed(COLUMN_TYPES[column], o.TIMESTAMP_TYPES, rows))
            elif column == "timestamp":
                arrays.append(self.timestamps(rows))
            elif column == "key":
                arrays.append(self.binary(o.KEY_ENDS, o.KEYS, o.KEY_BITMAP, rows, o.KEY_BYTES, o.NULL_KEYS))
            elif column == "value":
                arrays.append(self.binary(o.VALUE_ENDS, o.VALUES, o.VALUE_BITMAP, rows, o.VALUE_BYTES, o.NULL_VALUES))
            else:
                arrays.append(self.headers(rows))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def shrunk(self, place: int, n_bytes: int) -> pa.Buffer:
        """Return the buffer without its unused end."""
        buffer = self.buffers[place]
        if n_bytes >= buffer.size * 3 // 4 or not isinstance(buffer, pa.ResizableBuffer):
            return buffer.slice(0, n_bytes)
        buffer.resize(n_bytes, shrink_to_fit=True)
        return buffer

    def ends(self, place: int, values: int) -> pa.Buffer:
        """Return the Arrow offsets of `values` values, including the total at the end."""
        return self.shrunk(place, 4 * (values + 1))

    def bitmap(self, place: int, values: int, nulls: int) -> pa.Buffer | None:
        """Return the validity bitmap, None if every value is valid."""
        return self.shrunk(place, (values + 7) // 8) if nulls else None

    def fixed(self, kind: pa.DataType, place: int, rows: int) -> pa.Array:
        """Create a column of numbers without nulls."""
        return pa.Array.from_buffers(kind, rows, [None, self.buffers[place]], 0)

    def binary(self, ends: int, data: int, bitmap: int, values: int, total_in: int, nulls_in: int) -> pa.Array:
        """Create a binary column."""
        total, nulls = int(self.state[total_in]), int(self.state[nulls_in])
        buffers = [self.bitmap(bitmap, values, nulls), self.ends(ends, values), self.shrunk(data, total)]
        return pa.Array.from_buffers(pa.binary(), values, buffers, nulls)

    def timestamps(self, rows: int) -> pa.Array:
        """Create the timestamp column; null where the milliseconds do not fit 64-bit microseconds."""
        unfit = int(self.state[o.UNFIT_TIMESTAMPS])
        bitmap = None
        if unfit:
            valid = np.frombuffer(self.buffers[o.TIMESTAMPS], np.int64)[:rows] != o.UNFIT_TIMESTAMP
            bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(COLUMN_TYPES["timestamp"], rows, [bitmap, self.buffers[o.TIMESTAMPS]], unfit)

    def headers(self, rows: int) -> pa.Array:
        """Create the headers column: null for records without headers, as in Spark."""
        headers, nulls = int(self.state[o.HEADERS]), int(self.state[o.NULL_HEADERS])
        key_bytes = int(self.state[o.HEADER_KEY_BYTES])
        key_ends = self.ends(o.HEADER_KEY_ENDS, headers)
        keys = pa.Array.from_buffers(pa.string(), headers, [None, key_ends, self.shrunk(o.HEADER_KEYS, key_bytes)], 0)
        values = self.binary(
            o.HEADER_VALUE_ENDS,
            o.HEADER_VALUES,
            o.HEADER_VALUE_BITMAP,
            headers,
            o.HEADER_VALUE_BYTES,
            o.NULL_HEADER_VALUES,
        )
        pairs = pa.StructArray.from_arrays([with_valid_text(keys), values], fields=HEADER_FIELDS)
        buffers = [self.bitmap(o.HEADER_BITMAP, rows, nulls), self.ends(o.HEADER_ENDS, rows)]
        return pa.Array.from_buffers(COLUMN_TYPES["headers"], rows, buffers, nulls, children=[pairs])


def with_valid_text(strings: pa.Array) -> pa.Array:
    """Return the column, with replacement characters for invalid UTF-8."""
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([decode_header_key(raw) for raw in strings.cast(pa.binary()).to_pylist()], pa.string())
    return strings
