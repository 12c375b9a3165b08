"""The steps from Arrow columns to batches, between the kernels. See column_writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kwire import native
from kwire.errors import EncodeError, OptionError
from kwire.native.arrays import WIDE
from kwire.records.attributes import NO_TIMESTAMP, Compression, TimestampType
from kwire.records.columns import plain_encoder
from kwire.records.columns.encoder_layout import Column, NewBatch, State, Stop
from kwire.records.compression.compressor import compress_into, largest_compressed
from kwire.records.format.batch_checksums import write_crcs
from kwire.records.format.batch_header import DEFAULT_HEADER_BYTES, LARGEST_RECORD, LARGEST_SIZE
from kwire.records.format.builder import BatchBuilder
from kwire.records.format.default_writer import MAX_INT32, MAX_INT64
from kwire.records.format.legacy_writer import append_message, legacy_attributes

__all__ = ["ColumnEncoder"]

Table = npt.NDArray[np.int64]
Room = npt.NDArray[np.uint8]

ROOM_BYTES = 512 << 10  # half a common second-level cache; a batch above it makes its own room
TABLE_ROWS = 4096
LARGEST_COLUMN_BYTES = MAX_INT32  # Arrow's plain binary counts in an int32
UNITS = {"ms": 1, "us": 1000, "ns": 1_000_000}
FAULTS = {
    Stop.BAD_TIMESTAMP: "timestamp before 1970 that is not -1 ms",
    Stop.BAD_OFFSET: "offset that is negative or does not come after the one before",
    Stop.BAD_ARROW: "value whose place lies outside its Arrow buffer",
    Stop.NULL_HEADER_KEY: "header whose key is null",
    Stop.TOO_LARGE: f"record above {LARGEST_RECORD} bytes",
}


class ColumnEncoder:
    """Encodes, compresses and completes batches. like: a builder with the options of every batch."""

    def __init__(self, like: BatchBuilder, batch_size: int, base_sequence: int, keep_offsets: bool) -> None:
        if not 0 < batch_size <= LARGEST_SIZE:
            raise OptionError(f"batch_size {batch_size} is out of range: 1 to {LARGEST_SIZE} bytes")
        self.like, self.batch_size, self.keep_offsets = like, batch_size, keep_offsets
        self.next_offset, self.sequence = like.base_offset, base_sequence
        append_time = like.timestamp_type == TimestampType.LOG_APPEND_TIME
        self.append_time = like.log_append_time_ms if append_time else NO_TIMESTAMP
        self.room = self.make_room(max(ROOM_BYTES, batch_size + WIDE))
        self.packed: Room = np.empty(0, np.uint8)
        self.table: Table = np.zeros((TABLE_ROWS, len(NewBatch)), np.int64)
        self.state: npt.NDArray[np.int64] = np.zeros(len(State), np.int64)

    @staticmethod
    def make_room(n_bytes: int) -> Room:
        """Allocate memory for kernels to write to."""
        return np.empty(n_bytes, np.uint8)

    def write(
        self, batch: pa.RecordBatch, order: Table | None = None, ends: Sequence[int] = ()
    ) -> Iterator[memoryview]:
        """Write a record batch; see ColumnWriter.write."""
        columns = ColumnBuffers(batch, self.keep_offsets)
        if columns.must_split:
            if order is not None:
                batch = batch.take(pa.array(order))
            rows = batch.num_rows
            yield from self.write(batch.slice(0, rows // 2))
            yield from self.write(batch.slice(rows // 2))
            return
        rows = batch.num_rows
        if order is not None:
            rows = len(order)
            columns.order(order, batch.num_rows)
        if not self.keep_offsets and self.next_offset + rows - 1 > MAX_INT64:
            raise EncodeError(f"{rows} rows from offset {self.next_offset} on exceed the range of offsets")
        row, base = 0, self.next_offset
        for end in (*ends, rows):
            while row < end:
                self.encode(columns, row, end, base)
                used, batches, stop = (int(self.state[i]) for i in (State.USED, State.BATCHES, State.STOP))
                row = int(self.state[State.ROW])
                if batches:
                    self.next_offset = int(self.table[batches - 1, NewBatch.LAST_OFFSET]) + 1
                    yield self.finish(batches, used)
                if stop >= Stop.BAD_TIMESTAMP:
                    raise self.fault(stop, row)
                if stop == Stop.NO_ROOM and not batches:
                    self.room = self.make_room(max(2 * len(self.room), int(self.state[State.NEEDED])))

    def encode(self, columns: ColumnBuffers, row: int, rows: int, base_offset: int) -> None:
        """Encode rows from `row` on until the room is full."""
        source = columns.addresses, row, rows, base_offset, self.batch_size
        room = self.room.ctypes.data, len(self.room)
        relative = self.like.magic == 1 and self.like.codec != Compression.NONE
        if native.LEVEL is None:
            encoded = plain_encoder.encode_batch(
                *source, self.like.magic, relative, self.append_time, self.table, self.state
            )
            self.room = np.frombuffer(encoded, np.uint8)
        elif self.like.magic == 2:
            native.encode_default_batches(*source, *room, self.table, self.state)
        else:
            native.encode_messages(*source, self.like.magic, relative, self.append_time, *room, self.table, self.state)

    def fault(self, stop: int, row: int) -> EncodeError:
        """Create the error for a row."""
        if stop == Stop.HAS_HEADERS:
            return EncodeError(f"row {row}: Magic v{self.like.magic} does not support record headers")
        return EncodeError(f"row {row}: {FAULTS[Stop(stop)]}")

    def finish(self, batches: int, used: int) -> memoryview:
        """Compress the batches in the room, and complete their headers."""
        room = self.room
        if self.like.magic < 2:
            return memoryview(self.wrap(batches)) if self.like.codec else room.data[:used]
        if self.like.codec:
            used, room = self.compress(batches), self.packed
        fields = self.like.fields
        assert fields is not None
        write_headers = plain_encoder.write_headers if native.LEVEL is None else native.write_headers
        self.sequence = write_headers(
            room.ctypes.data,
            self.table,
            batches,
            fields.attributes,
            fields.partition_leader_epoch,
            fields.producer_id,
            fields.producer_epoch,
            self.sequence,
            self.append_time,
        )
        write_crcs(room, self.table[:batches])
        return room.data[:used]

    def compress(self, batches: int) -> int:
        """Compress the batches of the room into packed; returns the bytes used there."""
        table = self.table[:batches, : NewBatch.SIZE + 1].tolist()
        need = sum(DEFAULT_HEADER_BYTES + largest_compressed(self.like.codec, size) for _, size in table)
        if len(self.packed) < need:
            self.packed = np.empty(need, np.uint8)
        source, target, at = self.room.data, self.packed.data, 0
        for i, (position, size) in enumerate(table):
            payload = source[position + DEFAULT_HEADER_BYTES : position + size]
            start = at + DEFAULT_HEADER_BYTES
            size = DEFAULT_HEADER_BYTES + compress_into(self.like.codec, payload, target[start:], level=self.like.level)
            self.table[i, NewBatch.POSITION], self.table[i, NewBatch.SIZE] = at, size
            at += size
        return at

    def wrap(self, batches: int) -> bytearray:
        """Wrap each batch of messages of magic 0 or 1 in the room in a compressed message."""
        out, source = bytearray(), self.room.data
        magic, codec = self.like.magic, self.like.codec
        target = np.empty(largest_compressed(codec, len(self.room)), np.uint8).data
        for position, size, _, _, last_offset, _, max_timestamp in self.table[:batches].tolist():
            n = compress_into(codec, source[position : position + size], target, magic=magic, level=self.like.level)
            append_message(
                out,
                magic,
                offset=last_offset,
                attributes=legacy_attributes(magic, codec, self.like.timestamp_type),
                timestamp=self.append_time if self.append_time >= 0 else max_timestamp,
                key=None,
                value=target[:n],
            )
        return out


class ColumnBuffers:
    """Addresses of the columns of an Arrow record batch, which it keeps alive.

    must_split: a column is too long for int32 offsets; the caller must pass fewer rows.
    """

    def __init__(self, batch: pa.RecordBatch, keep_offsets: bool) -> None:
        self.addresses: npt.NDArray[np.int64] = np.zeros(len(Column), np.int64)
        self.kept: list[Any] = []
        self.must_split = False
        if "value" not in batch.schema.names:
            raise OptionError("column 'value' is missing")
        self.binary(batch.column("value"), "value", Column.VALUE_ENDS)
        if "key" in batch.schema.names:
            self.binary(batch.column("key"), "key", Column.KEY_ENDS)
        if "headers" in batch.schema.names:
            self.headers(batch.column("headers"))
        if "timestamp" in batch.schema.names:
            self.timestamps(batch.column("timestamp"))
        if keep_offsets:
            self.offsets(batch)

    def address(self, buffer: pa.Buffer | None) -> int:
        """Return the address of a buffer; missing and empty ones get an address that is not 0 and never read."""
        if buffer is None or not buffer.size:
            return WIDE
        self.kept.append(buffer)
        return int(buffer.address)

    def bitmap(self, array: pa.Array, at: int) -> None:
        """Return the address of a validity bitmap and its first bit."""
        buffer = array.buffers()[0] if array.null_count else None
        self.addresses[at] = self.address(buffer) if buffer is not None else 0
        self.addresses[at + 1] = array.offset

    def binary(self, array: pa.Array, name: str, at: int) -> None:
        """A column of bytes or text: ends, data, size of the data, bitmap, its first bit."""
        plain = self.plain(array, name)
        if plain is None:
            return
        _, ends, data = plain.buffers()
        if ends is None or not ends.size:
            return  # no rows
        self.addresses[at] = self.address(ends) + 4 * plain.offset
        self.addresses[at + 1] = self.address(data)
        self.addresses[at + 2] = data.size if data is not None else 0
        self.bitmap(plain, at + 3)

    def plain(self, array: pa.Array, name: str) -> pa.Array | None:
        """Convert array to plain binary; None (and must_split) if it is too long for that."""
        kind = array.type
        if pa.types.is_dictionary(kind):
            array = array.dictionary_decode()
            kind = array.type
        if pa.types.is_null(kind):
            return pa.nulls(len(array), pa.binary())
        if pa.types.is_binary(kind) or pa.types.is_string(kind):
            return array
        if pa.types.is_fixed_size_binary(kind):
            return array.cast(pa.binary())
        if pa.types.is_binary_view(kind) or pa.types.is_string_view(kind):
            array = array.cast(pa.large_binary())
        elif pa.types.is_large_string(kind):
            array = array.view(pa.large_binary())
        elif not pa.types.is_large_binary(kind):
            raise OptionError(f"column {name!r} is {kind}; expected binary or string")
        n_bytes = pc.sum(pc.binary_length(array)).as_py() or 0
        if n_bytes > LARGEST_COLUMN_BYTES:
            if len(array) == 1:
                raise EncodeError(f"row 0: {name} of {n_bytes} bytes exceeds the maximum of {LARGEST_RECORD}")
            self.must_split = True
            return None
        return array.cast(pa.binary())

    def headers(self, array: pa.Array) -> None:
        """A column of lists of key and value."""
        kind = array.type
        if pa.types.is_null(kind):
            return
        if pa.types.is_large_list(kind):
            array = array.cast(pa.list_(kind.value_field))
            kind = array.type
        items = kind.value_type if pa.types.is_list(kind) else None
        if (
            items is None
            or not pa.types.is_struct(items)
            or {items.field(i).name for i in range(items.num_fields)}
            != {
                "key",
                "value",
            }
        ):
            raise OptionError(f"column 'headers' is {kind}; expected list<struct<key, value>>")
        if not len(array):
            return
        ends = array.buffers()[1]
        entries = array.values  # all of them, whatever the slice
        if entries.null_count:
            raise EncodeError("column 'headers' contains a null header")
        self.addresses[Column.HEADER_ENDS] = self.address(ends) + 4 * array.offset
        self.bitmap(array, Column.HEADER_BITMAP)
        self.addresses[Column.HEADER_COUNT] = len(entries)
        self.binary(entries.field("key"), "headers.key", Column.HEADER_KEY_ENDS)
        self.binary(entries.field("value"), "headers.value", Column.HEADER_VALUE_ENDS)
        if not self.addresses[Column.HEADER_KEY_ENDS] and not self.must_split:
            self.addresses[Column.HEADER_ENDS] = 0  # no header in any row

    def order(self, order: Table, rows: int) -> None:
        """Use the rows with these numbers, in this order. rows: number of rows of the columns."""
        if not len(order):
            return
        if order.dtype != np.int64 or not order.flags.c_contiguous or order.min() < 0 or order.max() >= rows:
            raise OptionError(f"order: expected an array of int64 from 0 to {rows - 1}")
        self.kept.append(order)
        self.addresses[Column.ORDER] = order.ctypes.data

    def timestamps(self, array: pa.Array) -> None:
        """A column of timestamps of any unit, or of int64 milliseconds."""
        kind = array.type
        if pa.types.is_null(kind):
            return
        try:
            if pa.types.is_int64(kind):
                unit = 1
            elif not pa.types.is_timestamp(kind):
                raise OptionError(f"column 'timestamp' is {kind}; expected timestamp or int64 (milliseconds)")
            else:
                if kind.unit == "s":
                    array = array.cast(pa.timestamp("ms", kind.tz))
                unit = UNITS[array.type.unit]
        except pa.ArrowInvalid as error:
            raise EncodeError(f"timestamp: {error}") from None
        if not len(array):
            return
        self.addresses[Column.TIMESTAMPS] = self.address(array.buffers()[1]) + 8 * array.offset
        self.addresses[Column.TIMESTAMP_UNIT] = unit
        self.bitmap(array, Column.TIMESTAMP_BITMAP)

    def offsets(self, batch: pa.RecordBatch) -> None:
        """Read the column of offsets, which has no nulls."""
        array = batch.column("offset") if "offset" in batch.schema.names else None
        if array is None or not pa.types.is_int64(array.type):
            raise OptionError("column 'offset' of int64 is missing; keep_offsets needs it")
        if array.null_count:
            raise EncodeError("column 'offset' contains a null")
        if len(array):
            self.addresses[Column.OFFSETS] = self.address(array.buffers()[1]) + 8 * array.offset
