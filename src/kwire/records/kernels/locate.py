"""Find the fields of the records of a batch, from which module.c builds objects: 5 ns a record.

reads     the records of a decompressed magic 2 batch (their layout: `default_records`)
writes    a row for each record, with the columns below; addresses are those of the bytes in the section

Every byte is checked against the end of the section first.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.records.attributes import NO_SEQUENCE
from kwire.records.faults import Fault
from kwire.records.kernels.section_scan import scan_headers
from kwire.wire.kernels.compiler import export, inlined
from kwire.wire.kernels.memory import int64_at, load_byte, set_int64
from kwire.wire.kernels.varints import VARINT_BYTES, VARLONG_BYTES, read_varint

__all__ = ["COLUMNS", "HEADER_FIELDS", "MOST_BYTES", "MOST_RECORDS", "locate_records", "put_row"]

MOST_RECORDS = 256
"""In one call."""
MOST_BYTES = 1 << 20
"""Of records in one call, beyond the first."""

ROW = ("OFFSET", "TIMESTAMP", "SEQUENCE", "KEY", "KEY_BYTES", "VALUE", "VALUE_BYTES", "HEADERS", "END", "COLUMNS")
OFFSET, TIMESTAMP, SEQUENCE, KEY, KEY_BYTES, VALUE, VALUE_BYTES, HEADERS, END, COLUMNS = range(10)
"""HEADERS: the address of the header count, 0 without headers. END: of the record. Sizes are negative for null."""

BASE_OFFSET, BASE_TIMESTAMP, IS_APPEND_TIME, MAX_TIMESTAMP, BASE_SEQUENCE, LOWEST_OFFSET, HIGHEST_OFFSET = range(7)
HEADER_FIELDS = 7
"""What `header` holds of the batch; records outside LOWEST_OFFSET to HIGHEST_OFFSET get no row."""
CHECK_CRC = BASE_TIMESTAMP
"""In place of a field that inner messages of magic 0 and 1 do not have; BASE_OFFSET is added to their offsets."""

LARGEST_SEQUENCE = 0x7FFF_FFFF
BAD_LENGTH = int(Fault.RECORD_LENGTH)
BAD_FIELDS = int(Fault.RECORD_FIELDS)
BAD_KEY = int(Fault.KEY_LENGTH)
BAD_VALUE = int(Fault.VALUE_LENGTH)
BYTES_LEFT = int(Fault.BYTES_LEFT)


@inlined
def low_int32(value):
    """Wrap a number to 32 bits, with its sign."""
    return ((value & 0xFFFF_FFFF) ^ 0x8000_0000) - 0x8000_0000


@inlined
def sequence_at(base, delta):
    """Return `wrapping.add_to_sequence`, -1 without a base sequence."""
    if base < 0:
        return np.int64(NO_SEQUENCE)
    if base > low_int32(LARGEST_SEQUENCE - delta):
        return low_int32(delta - (LARGEST_SEQUENCE - base) - 1)
    return low_int32(base + delta)


@inlined
def put_row(rows, number, offset, timestamp, sequence, key, key_bytes, value, value_bytes, headers, end):
    """Write a row."""
    row = rows + 8 * COLUMNS * number
    set_int64(row, OFFSET, offset)
    set_int64(row, TIMESTAMP, timestamp)
    set_int64(row, SEQUENCE, sequence)
    set_int64(row, KEY, key)
    set_int64(row, KEY_BYTES, key_bytes)
    set_int64(row, VALUE, value)
    set_int64(row, VALUE_BYTES, value_bytes)
    set_int64(row, HEADERS, headers)
    set_int64(row, END, end)


@export
def locate_records(
    start: int, end: int, position: int, count: int, header: int, rows: int
) -> tuple[int, int, int, int]:
    """Find the next records of the section at [start, end), which has `count` more from `position` on.

    header: the address of HEADER_FIELDS numbers. rows: of MOST_RECORDS rows.
    Returns (rows written, records read, position after them, Fault or 0). With a fault, the records before it are
    read; BYTES_LEFT is a fault of the last record.
    """
    at = start + position
    first = at
    base_offset, base_timestamp = int64_at(header, BASE_OFFSET), int64_at(header, BASE_TIMESTAMP)
    append_time, max_timestamp = int64_at(header, IS_APPEND_TIME) != 0, int64_at(header, MAX_TIMESTAMP)
    base_sequence = int64_at(header, BASE_SEQUENCE)
    lowest, highest = int64_at(header, LOWEST_OFFSET), int64_at(header, HIGHEST_OFFSET)
    read = np.int64(0)
    written = np.int64(0)
    fault = 0
    while read < count and read < MOST_RECORDS and at - first <= MOST_BYTES:
        length, field, _ = read_varint(at, end, VARINT_BYTES)
        if field == 0 or length < 0 or length > end - field:
            fault = BAD_LENGTH
            break
        record_end = field + length
        timestamp_delta, field, _ = read_varint(field + 1, record_end, VARLONG_BYTES)
        if field == 0:
            fault = BAD_FIELDS
            break
        offset_delta, field, _ = read_varint(field, record_end, VARINT_BYTES)
        if field == 0:
            fault = BAD_FIELDS
            break
        key_bytes, key, _ = read_varint(field, record_end, VARINT_BYTES)
        if key == 0:
            fault = BAD_FIELDS
            break
        if key_bytes > record_end - key:
            fault = BAD_KEY
            break
        value_bytes, value, _ = read_varint(key + max(key_bytes, 0), record_end, VARINT_BYTES)
        if value == 0:
            fault = BAD_FIELDS
            break
        if value_bytes > record_end - value:
            fault = BAD_VALUE
            break
        field = value + max(value_bytes, 0)
        headers = np.int64(0)
        if not (field + 1 == record_end and load_byte(field) == 0):
            fault, _ = scan_headers(field, record_end)
            if fault != 0:
                break
            headers = field
        if read + 1 == count and record_end != end:
            fault = BYTES_LEFT
            break
        at = record_end
        read += 1
        offset = base_offset + offset_delta
        if lowest <= offset <= highest:
            timestamp = max_timestamp if append_time else base_timestamp + timestamp_delta
            sequence = sequence_at(base_sequence, offset_delta)
            put_row(rows, written, offset, timestamp, sequence, key, key_bytes, value, value_bytes, headers, at)
            written += 1
    return written, read, at - start, fault
