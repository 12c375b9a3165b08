"""One scan over the records of a magic 2 batch, for what a broker needs to know before it appends them.

There are two equivalent scanners: the compiled one, and one in plain Python for where there is no compiled code.
Source: org.apache.kafka.common.record.DefaultRecord.readFrom, DefaultRecordBatch.RecordIterator.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire import native
from kwire.errors import Malformed, Truncated
from kwire.records.attributes import NO_TIMESTAMP
from kwire.records.format.default_batch import SMALLEST_RECORD_BYTES
from kwire.records.format.faults import MAX_HEADERS, Fault
from kwire.records.format.wrapping import to_int64
from kwire.wire.varint import read_varint, read_varlong

__all__ = ["SectionScan", "scan_section"]


class SectionScan(NamedTuple):
    """Properties of the records of a batch.

    fault, fault_index: a Fault and the record that has it (-1: the batch); 0 and 0 when all decode.
    is_contiguous: offset deltas are 0, 1, 2 ...
    smallest_timestamp, largest_timestamp: milliseconds, of the records that have one; both -1 if none has.
    null_keys: records without key.
    first_delta: timestamp delta of the first record.
    is_canonical: encoding the records again gives the same bytes, because every number has its shortest form.
    With a fault, only fault and fault_index are set.
    """

    fault: int
    fault_index: int
    is_contiguous: bool
    smallest_timestamp: int
    largest_timestamp: int
    null_keys: int
    first_delta: int
    is_canonical: bool


def faulty(fault: Fault, index: int) -> SectionScan:
    """Return the scan of records that do not decode."""
    return SectionScan(fault, index, False, NO_TIMESTAMP, NO_TIMESTAMP, 0, 0, False)


def scan_section(section: memoryview, count: int, base_timestamp: int) -> SectionScan:
    """Scan the records of a decompressed section. count: from the header. base_timestamp: milliseconds."""
    if count < 0 or count * SMALLEST_RECORD_BYTES > len(section):
        return faulty(Fault.RECORD_COUNT, -1)
    if native.LEVEL is None:
        return scan_plain(section, count, base_timestamp)
    return SectionScan._make(native.scan_section(section, count, base_timestamp))


class Walker:
    """Reads the numbers of one record and keeps track of whether each has its shortest form."""

    __slots__ = ("body", "is_canonical", "pos")

    def __init__(self, body: memoryview, pos: int) -> None:
        self.body, self.pos, self.is_canonical = body, pos, True

    def varint(self) -> int:
        """Read a number of 32 bits; raises Truncated, Malformed."""
        return self.note(*read_varint(self.body, self.pos))

    def varlong(self) -> int:
        """Read a number of 64 bits; raises Truncated, Malformed."""
        return self.note(*read_varlong(self.body, self.pos))

    def note(self, value: int, end: int) -> int:
        """Continue after a number; its last byte is 0 only in an over-long form."""
        if end - self.pos > 1 and not self.body[end - 1]:
            self.is_canonical = False
        self.pos = end
        return value

    def skip(self, length: int, *, nullable: bool = True) -> bool:
        """Skip `length` bytes; False if they extend beyond the end."""
        if length < 0:
            self.is_canonical &= length == -1
            return nullable
        if length > len(self.body) - self.pos:
            return False
        self.pos += length
        return True


def scan_plain(section: memoryview, count: int, base_timestamp: int) -> SectionScan:
    """Scan in Python: 5 us per record."""
    contiguous = canonical = True
    smallest = largest = NO_TIMESTAMP
    null_keys = first_delta = pos = 0
    for index in range(count):
        frame = Walker(section, pos)
        try:
            length = frame.varint()
        except (Truncated, Malformed):
            return faulty(Fault.RECORD_LENGTH, index)
        if not 0 <= length <= len(section) - frame.pos:
            return faulty(Fault.RECORD_LENGTH, index)
        pos = frame.pos + length
        record = Walker(section[frame.pos : pos], 1)
        fault = Fault.RECORD_FIELDS
        try:
            timestamp_delta = record.varlong()
            offset_delta = record.varint()
            key_length = record.varint()
            if not record.skip(key_length):
                return faulty(Fault.KEY_LENGTH, index)
            if not record.skip(record.varint()):
                return faulty(Fault.VALUE_LENGTH, index)
            headers = record.varint()
            if not 0 <= headers <= min(length - record.pos, MAX_HEADERS):
                return faulty(Fault.HEADER_COUNT, index)
            for _ in range(headers):
                fault = Fault.HEADER_KEY
                if not record.skip(record.varint(), nullable=False):
                    return faulty(fault, index)
                fault = Fault.HEADER_VALUE
                if not record.skip(record.varint()):
                    return faulty(fault, index)
        except (Truncated, Malformed):
            return faulty(fault, index)
        if record.pos != length:
            return faulty(Fault.RECORD_SIZE, index)
        timestamp = to_int64(base_timestamp + timestamp_delta)
        if timestamp != NO_TIMESTAMP:
            smallest = timestamp if smallest == NO_TIMESTAMP else min(smallest, timestamp)
            largest = timestamp if largest == NO_TIMESTAMP else max(largest, timestamp)
        if index == 0:
            first_delta = timestamp_delta
        contiguous &= offset_delta == index
        null_keys += key_length < 0
        canonical &= frame.is_canonical and record.is_canonical and not record.body[0]
    if pos != len(section):
        return faulty(Fault.BYTES_LEFT, -1)
    return SectionScan(0, 0, contiguous, smallest, largest, null_keys, first_delta, canonical)
