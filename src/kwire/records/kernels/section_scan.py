"""The headers of records of magic 2 (their layout: `default_records`), for kernels that only check them."""
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from kwire.records.faults import MAX_HEADERS, Fault
from kwire.wire.kernels.compiler import kernel
from kwire.wire.kernels.varints import VARINT_BYTES, read_varint

__all__ = ["scan_headers"]

BAD_FIELDS = int(Fault.RECORD_FIELDS)
BAD_HEADER_COUNT = int(Fault.HEADER_COUNT)
BAD_HEADER_KEY = int(Fault.HEADER_KEY)
BAD_HEADER_VALUE = int(Fault.HEADER_VALUE)
BAD_SIZE = int(Fault.RECORD_SIZE)


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
