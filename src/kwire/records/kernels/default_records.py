"""Read records of magic 2 into Arrow columns, in one pass that copies each value once.

reads     the rows of the header table (`table`) and the records at [START, END):

          varint     length of the rest
          int8       attributes, unused
          varlong    timestamp delta
          varint     offset delta
          varint     key length, -1 for null; key
          varint     value length, -1 for null; value
          varint     number of headers; for each: varint key length, key, varint value length or -1, value

writes    the columns at `addresses`, and `state` (`output`)
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.records import batch_table as t
from kwire.records.attributes import LOG_APPEND_TIME_FLAG
from kwire.records.faults import MAX_HEADERS, Fault
from kwire.records.kernels import output as o
from kwire.records.kernels.output import put_bytes, put_timestamp
from kwire.wire.kernels.arrays import Int64s, Int64Table, WritableInt64s
from kwire.wire.kernels.compiler import export, inlined, kernel
from kwire.wire.kernels.memory import clear_bit, load_byte, set_int32, set_int64
from kwire.wire.kernels.varints import VARINT_BYTES, VARLONG_BYTES, read_varint

__all__ = ["parse_default_records", "skip_records"]

BAD_LENGTH = int(Fault.RECORD_LENGTH)
BAD_FIELDS = int(Fault.RECORD_FIELDS)
BAD_KEY = int(Fault.KEY_LENGTH)
BAD_VALUE = int(Fault.VALUE_LENGTH)
BAD_HEADER_COUNT = int(Fault.HEADER_COUNT)
BAD_HEADER_KEY = int(Fault.HEADER_KEY)
BAD_HEADER_VALUE = int(Fault.HEADER_VALUE)
BAD_SIZE = int(Fault.RECORD_SIZE)
BYTES_LEFT = int(Fault.BYTES_LEFT)


@export
def parse_default_records(
    table: Int64Table,
    first: int,
    last: int,
    lowest_offset: int,
    highest_offset: int,
    addresses: Int64s,
    state: WritableInt64s,
) -> int:
    """Decode batches [first, last) of table into columns, less the records outside lowest_offset to highest_offset.

    Batches with SHIFT set are checked too, but add no rows.
    Returns the index of the batch after the last one decoded. If that is below `last`, the batch there is invalid:
    state[STOPPED_BY] has the fault, and the state counts nothing of that batch.
    Cost: 17 ns a record of 116 bytes into warm memory (benchmarks/records).
    """
    offsets, timestamps, types = addresses[o.OFFSETS], addresses[o.TIMESTAMPS], addresses[o.TIMESTAMP_TYPES]
    key_ends, keys, key_bitmap = addresses[o.KEY_ENDS], addresses[o.KEYS], addresses[o.KEY_BITMAP]
    value_ends, values, value_bitmap = addresses[o.VALUE_ENDS], addresses[o.VALUES], addresses[o.VALUE_BITMAP]
    header_ends = addresses[o.HEADER_ENDS]
    row, key_bytes, value_bytes = state[o.ROWS], state[o.KEY_BYTES], state[o.VALUE_BYTES]
    null_keys, null_values, unfit = state[o.NULL_KEYS], state[o.NULL_VALUES], state[o.UNFIT_TIMESTAMPS]
    i = first
    while i < last:
        batch = table[i]
        at, end = batch[t.START], batch[t.END]
        base_offset, base_timestamp, max_timestamp = (
            batch[t.BASE_OFFSET],
            batch[t.BASE_TIMESTAMP],
            batch[t.MAX_TIMESTAMP],
        )
        append_time = batch[t.ATTRIBUTES] & LOG_APPEND_TIME_FLAG != 0
        gives_rows = batch[t.SHIFT] == 0
        timestamp_type = np.int64(1) if append_time else np.int64(0)
        count = batch[t.COUNT]
        headers, null_headers = state[o.HEADERS], state[o.NULL_HEADERS]
        header_key_bytes, header_value_bytes = state[o.HEADER_KEY_BYTES], state[o.HEADER_VALUE_BYTES]
        null_header_values = state[o.NULL_HEADER_VALUES]
        fault = 0
        record = 0
        while record < count:
            length, at, _ = read_varint(at, end, VARINT_BYTES)
            if at == 0 or length < 0 or length > end - at:
                fault = BAD_LENGTH
                break
            record_end = at + length
            at += 1  # the attributes, which have no meaning
            timestamp_delta, at, _ = read_varint(at, record_end, VARLONG_BYTES)
            if at == 0:
                fault = BAD_FIELDS
                break
            offset_delta, at, _ = read_varint(at, record_end, VARINT_BYTES)
            if at == 0:
                fault = BAD_FIELDS
                break
            key_length, at, _ = read_varint(at, record_end, VARINT_BYTES)
            if at == 0:
                fault = BAD_FIELDS
                break
            key_at = at
            if key_length > 0:
                if key_length > record_end - at:
                    fault = BAD_KEY
                    break
                at += key_length
            value_length, at, _ = read_varint(at, record_end, VARINT_BYTES)
            if at == 0:
                fault = BAD_FIELDS
                break
            value_at = at
            if value_length > 0:
                if value_length > record_end - at:
                    fault = BAD_VALUE
                    break
                at += value_length
            offset = base_offset + offset_delta
            kept = gives_rows and lowest_offset <= offset <= highest_offset
            if at + 1 == record_end and load_byte(at) == 0:  # no headers, as in most records
                if kept and header_ends != 0:
                    put_no_headers(addresses, state, row)
            else:
                fault = read_headers(at, record_end, addresses, state, row, kept and header_ends != 0)
                if fault != 0:
                    break
            at = record_end
            record += 1
            if not kept:
                continue
            if offsets != 0:
                set_int64(offsets, row, offset)
            if timestamps != 0:
                unfit += put_timestamp(
                    timestamps, row, max_timestamp if append_time else base_timestamp + timestamp_delta
                )
            if types != 0:
                set_int32(types, row, timestamp_type)
            if key_ends != 0:
                key_bytes = put_bytes(key_ends, keys, key_bitmap, row, key_bytes, key_at, key_length, end)
                null_keys += key_length < 0
            if value_ends != 0:
                value_bytes = put_bytes(value_ends, values, value_bitmap, row, value_bytes, value_at, value_length, end)
                null_values += value_length < 0
            row += 1
        if fault == 0 and at != end and count > 0:
            fault = BYTES_LEFT
            record = -1
        if fault != 0:
            state[o.HEADERS], state[o.NULL_HEADERS] = headers, null_headers
            state[o.HEADER_KEY_BYTES], state[o.HEADER_VALUE_BYTES] = header_key_bytes, header_value_bytes
            state[o.NULL_HEADER_VALUES] = null_header_values
            state[o.STOPPED_BY] = fault
            state[o.STOPPED_AT] = record
            return i
        state[o.ROWS] = row
        state[o.KEY_BYTES] = key_bytes
        state[o.VALUE_BYTES] = value_bytes
        state[o.NULL_KEYS] = null_keys
        state[o.NULL_VALUES] = null_values
        state[o.UNFIT_TIMESTAMPS] = unfit
        i += 1
    return i


@export
def skip_records(at: int, end: int, most: int, most_bytes: int) -> tuple[int, int]:
    """Skip at least one record, at most `most` and, beyond the first, `most_bytes`: (number, address after them).

    There is a record at `at`, and parse_default_records has found all of them valid.
    """
    start = at
    records = 0
    while at < end and records < most:
        length, after, _ = read_varint(at, end, VARINT_BYTES)
        if records > 0 and after + length - start > most_bytes:
            break
        at = after + length
        records += 1
    return records, at


@inlined
def put_no_headers(addresses, state, row):
    """Append a null to the headers column."""
    set_int32(addresses[o.HEADER_ENDS], row, state[o.HEADERS])
    clear_bit(addresses[o.HEADER_BITMAP], row)
    state[o.NULL_HEADERS] += 1


@kernel
def read_headers(at, end, addresses, state, row, wanted):
    """Check the headers of a record at [at, end) and add them to their column if wanted. Returns a Fault or 0."""
    count, at, _ = read_varint(at, end, VARINT_BYTES)
    if at == 0:
        return BAD_FIELDS
    if count < 0 or count > end - at or count > MAX_HEADERS:
        return BAD_HEADER_COUNT
    header, key_bytes, value_bytes = state[o.HEADERS], state[o.HEADER_KEY_BYTES], state[o.HEADER_VALUE_BYTES]
    null_values = state[o.NULL_HEADER_VALUES]
    if wanted:
        set_int32(addresses[o.HEADER_ENDS], row, header)
    for _ in range(count):
        length, at, _ = read_varint(at, end, VARINT_BYTES)
        if at == 0 or length < 0 or length > end - at:
            return BAD_HEADER_KEY
        if wanted:
            key_bytes = put_bytes(
                addresses[o.HEADER_KEY_ENDS], addresses[o.HEADER_KEYS], 0, header, key_bytes, at, length, end
            )
        at += length
        length, at, _ = read_varint(at, end, VARINT_BYTES)
        if at == 0 or length > end - at:
            return BAD_HEADER_VALUE
        if wanted:
            value_bytes = put_bytes(
                addresses[o.HEADER_VALUE_ENDS],
                addresses[o.HEADER_VALUES],
                addresses[o.HEADER_VALUE_BITMAP],
                header,
                value_bytes,
                at,
                length,
                end,
            )
            null_values += length < 0
            header += 1
        if length > 0:
            at += length
    if at != end:
        return BAD_SIZE
    if wanted:
        if count == 0:
            put_no_headers(addresses, state, row)
        state[o.HEADERS] = header
        state[o.HEADER_KEY_BYTES] = key_bytes
        state[o.HEADER_VALUE_BYTES] = value_bytes
        state[o.NULL_HEADER_VALUES] = null_values
    return 0
