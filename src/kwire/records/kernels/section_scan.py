"""The kernel of `kwire.records.section_scan`: 6 ns a record of 116 bytes.

Reads records of magic 2 (their layout: `default_records`), each byte checked against the end of the section first;
returns the fields of a SectionScan. `canonical` there: every number has its shortest form, no reserved bit is set.
"""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np

from kwire.records.attributes import NO_TIMESTAMP
from kwire.records.faults import MAX_HEADERS, Fault
from kwire.wire.kernels.arrays import Bytes
from kwire.wire.kernels.compiler import export, kernel
from kwire.wire.kernels.memory import load_byte
from kwire.wire.kernels.varints import VARINT_BYTES, VARLONG_BYTES, read_varint

__all__ = ["scan_section"]

BAD_LENGTH = int(Fault.RECORD_LENGTH)
BAD_FIELDS = int(Fault.RECORD_FIELDS)
BAD_KEY = int(Fault.KEY_LENGTH)
BAD_VALUE = int(Fault.VALUE_LENGTH)
BAD_HEADER_COUNT = int(Fault.HEADER_COUNT)
BAD_HEADER_KEY = int(Fault.HEADER_KEY)
BAD_HEADER_VALUE = int(Fault.HEADER_VALUE)
BAD_SIZE = int(Fault.RECORD_SIZE)
BYTES_LEFT = int(Fault.BYTES_LEFT)


@kernel
def scan_headers(at, end):
    """Check the headers of a record at [at, end): (Fault or 0, whether their encoding is canonical)."""
    canonical = True
    count, at, short = read_varint(at, end, VARINT_BYTES)
    if at == 0:
        return BAD_FIELDS, False
    canonical &= short
    if count < 0 or count > end - at or count > MAX_HEADERS:
        return BAD_HEADER_COUNT, False
    for _ in range(count):
        length, at, short = read_varint(at, end, VARINT_BYTES)
        if at == 0 or length < 0 or length > end - at:
            return BAD_HEADER_KEY, False
        canonical &= short
        at += length
        length, at, short = read_varint(at, end, VARINT_BYTES)
        if at == 0 or length > end - at:
            return BAD_HEADER_VALUE, False
        canonical &= short and length >= -1
        if length > 0:
            at += length
    if at != end:
        return BAD_SIZE, False
    return 0, canonical


@kernel
def scan_records(start, length, count, base_timestamp):
    """Return the fields of a SectionScan for `count` records in `length` bytes at address `start`."""
    contiguous = canonical = True
    smallest = largest = np.int64(NO_TIMESTAMP)
    null_keys = np.int64(0)
    first_delta = np.int64(0)
    at, end = start, start + length
    fault = 0
    for index in range(count):
        size, at, short = read_varint(at, end, VARINT_BYTES)
        if at == 0 or size < 0 or size > end - at:
            return BAD_LENGTH, index, False, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, False
        canonical &= short
        record_end = at + size
        timestamp_delta, pos, short = read_varint(at + 1, record_end, VARLONG_BYTES)
        if pos == 0:
            return BAD_FIELDS, index, False, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, False
        canonical &= short and load_byte(at) == 0
        at = pos
        offset_delta, at, short = read_varint(at, record_end, VARINT_BYTES)
        if at == 0:
            return BAD_FIELDS, index, False, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, False
        canonical &= short
        key_length, at, short = read_varint(at, record_end, VARINT_BYTES)
        if at == 0:
            return BAD_FIELDS, index, False, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, False
        canonical &= short and key_length >= -1
        if key_length > record_end - at:
            return BAD_KEY, index, False, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, False
        if key_length > 0:
            at += key_length
        value_length, at, short = read_varint(at, record_end, VARINT_BYTES)
        if at == 0:
            return BAD_FIELDS, index, False, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, False
        canonical &= short and value_length >= -1
        if value_length > record_end - at:
            return BAD_VALUE, index, False, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, False
        if value_length > 0:
            at += value_length
        if not (at + 1 == record_end and load_byte(at) == 0):
            fault, short = scan_headers(at, record_end)
            if fault != 0:
                return fault, index, False, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, False
            canonical &= short
        at = record_end
        timestamp = base_timestamp + timestamp_delta
        if timestamp != NO_TIMESTAMP:
            if smallest == NO_TIMESTAMP or timestamp < smallest:
                smallest = timestamp
            if largest == NO_TIMESTAMP or timestamp > largest:
                largest = timestamp
        if index == 0:
            first_delta = timestamp_delta
        contiguous &= offset_delta == index
        null_keys += key_length < 0
    if at != end:
        return BYTES_LEFT, -1, False, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, False
    return 0, 0, contiguous, smallest, largest, null_keys, first_delta, canonical


@export
def scan_section(section: Bytes, count: int, base_timestamp: int) -> tuple[int, int, bool, int, int, int, int, bool]:
    """Scan the records in an array, whose address is slow to take in Python."""
    return scan_records(np.int64(section.ctypes.data), section.size, count, np.int64(base_timestamp))
