"""The layout of batch headers: structs, parser, scan, and the kernels that read headers themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kwire.errors import CorruptBatch
from kwire.maintenance.verify.resync import Range, find_header
from kwire.records import Record, TimestampType, write_batch
from kwire.records.attributes import CONTROL_FLAG, TRANSACTIONAL_FLAG
from kwire.records.format import batch_table as t
from kwire.records.format.batch_header import (
    DEFAULT_HEADER,
    DEFAULT_HEADER_BYTES,
    FRAME_BYTES,
    LEGACY_HEADER,
    LEGACY_TIMESTAMP,
    SMALLEST_SIZE,
    BatchHeader,
    batch_spans,
    header_fault,
    parse_header,
)

OFFSET, EPOCH, DELTA, BASE_MS, MAX_MS, PRODUCER, PRODUCER_EPOCH, SEQUENCE, COUNT = range(1001, 1010)
ATTRIBUTES = TRANSACTIONAL_FLAG | CONTROL_FLAG | 3
SIZE = 70
DEFAULT = DEFAULT_HEADER.pack(
    OFFSET, SIZE, EPOCH, 2, 77, ATTRIBUTES, DELTA, BASE_MS, MAX_MS, PRODUCER, PRODUCER_EPOCH, SEQUENCE, COUNT
) + bytes(SIZE + FRAME_BYTES - DEFAULT_HEADER_BYTES)  # fmt: skip
MAGIC_1 = LEGACY_HEADER.pack(OFFSET, 22, 77, 1, 0x8B) + LEGACY_TIMESTAMP.pack(MAX_MS) + bytes(8)
MAGIC_0 = LEGACY_HEADER.pack(OFFSET, 14, 77, 0, 1) + bytes(8)


def test_a_header_of_magic_2_is_parsed_field_by_field() -> None:
    header = parse_header(b"before" + DEFAULT, 6, 500, "f.log")
    assert header == BatchHeader(
        500, SIZE + 12, OFFSET, OFFSET + DELTA, 2, ATTRIBUTES, MAX_MS, PRODUCER, EPOCH, PRODUCER_EPOCH, SEQUENCE
    )
    assert (header.codec, header.is_transactional, header.is_control) == (3, True, True)
    assert (header.base_offset, header.last_sequence) == (OFFSET, SEQUENCE + DELTA)


@pytest.mark.parametrize(
    ("data", "magic", "attributes", "timestamp"), [(MAGIC_1, 1, 0x8B, MAX_MS), (MAGIC_0, 0, 1, -1)]
)
def test_a_message_of_magic_0_or_1_has_no_producer_and_no_flags(
    data: bytes, magic: int, attributes: int, timestamp: int
) -> None:
    header = parse_header(data, 0, 0, "f.log")
    assert header == BatchHeader(0, len(data), OFFSET, OFFSET, magic, attributes, timestamp, -1, -1)
    assert (header.is_transactional, header.is_control, header.last_sequence) == (False, False, -1)


@pytest.mark.parametrize("data", [DEFAULT, MAGIC_1, MAGIC_0])
def test_a_truncated_header_is_not_parsed(data: bytes) -> None:
    needed = {2: DEFAULT_HEADER_BYTES, 1: 26, 0: 18}[data[16]]
    assert all(parse_header(data[:cut], 0, 0, "f.log") is None for cut in range(needed))
    assert parse_header(data[:needed], 0, 0, "f.log") is not None


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (LEGACY_HEADER.pack(0, 13, 0, 0, 0), "size 13 is below the minimum of 14"),
        (LEGACY_HEADER.pack(0, -1, 0, 0, 0), "size -1 is below the minimum of 14"),
        (LEGACY_HEADER.pack(0, 2**31 - 1, 0, 0, 0), "size 2147483647 is above the maximum of 2147483635"),
        (LEGACY_HEADER.pack(0, 100, 0, 3, 0), "unknown magic 3"),
        (LEGACY_HEADER.pack(0, 100, 0, -3, 0), "unknown magic -3"),
        (LEGACY_HEADER.pack(0, 21, 0, 1, 0), "size 21 is below the minimum of 22 in magic 1"),
        (LEGACY_HEADER.pack(0, 48, 0, 2, 0), "size 48 leaves no room for the header of magic 2, which needs 49"),
        (LEGACY_HEADER.pack(-1, 100, 0, 0, 0), "offset -1 is negative"),
    ],
)
def test_an_invalid_header_is_an_error_with_a_reason(head: bytes, what: str) -> None:
    with pytest.raises(CorruptBatch) as caught:
        parse_header(head, 0, 40, "f.log")
    assert str(caught.value) == f"f.log: {what}, in the batch at byte 40"


def test_a_negative_magic_is_an_error_signed_and_unsigned() -> None:
    assert header_fault(100, 253) == header_fault(100, -3) == "unknown magic -3"


def test_the_scan_ends_before_a_truncated_batch_or_an_invalid_size() -> None:
    buf = MAGIC_0 + DEFAULT + MAGIC_1
    first, second = len(MAGIC_0), len(MAGIC_0) + len(DEFAULT)
    spans = [(0, first), (first, second), (second, len(buf))]
    assert list(batch_spans(buf)) == spans
    assert list(batch_spans(buf, first)) == spans[1:]
    for cut in range(len(buf)):
        assert list(batch_spans(buf[:cut])) == [span for span in spans if span[1] <= cut]
    for size in (-FRAME_BYTES, -1, 0, SMALLEST_SIZE - 1):
        assert list(batch_spans(MAGIC_0 + LEGACY_HEADER.pack(0, size, 0, 0, 0) + bytes(90))) == spans[:1]


def real_batches() -> bytes:
    rows = [
        Record(offset=i, timestamp=1000 + i, timestamp_type=TimestampType.CREATE_TIME, key=b"k", value=b"v", headers=[])
        for i in range(3)
    ]
    return b"".join(write_batch(rows, magic=magic, base_offset=10 * magic) for magic in (0, 1, 2))


@pytest.mark.parametrize("buf", [MAGIC_0 + DEFAULT + MAGIC_1, real_batches()], ids=["made up", "written"])
@pytest.mark.parametrize("scan", [t.scan_batches, t.scan_plain])
def test_a_scan_reads_the_headers_of_the_parser(scan: Any, buf: bytes) -> None:
    data = np.frombuffer(buf, np.uint8)
    table = np.zeros((16, t.COLUMN_COUNT), np.int64)
    rows, position, status = scan(data, 0, table)
    assert (position, status) == (len(buf), t.WHOLE)
    spans = list(batch_spans(buf))
    assert rows == len(spans)
    for row, (start, end) in zip(table[:rows], spans, strict=True):
        header = parse_header(buf, start, start, "f.log")
        assert header is not None
        assert (row[t.POSITION], row[t.SIZE]) == (start, end - start) == (header.position, header.size_bytes)
        assert (row[t.BASE_OFFSET], row[t.LAST_OFFSET]) == (header.stored_offset, header.last_offset)
        assert (row[t.MAGIC], row[t.ATTRIBUTES]) == (header.magic, header.attributes)
        assert (row[t.MAX_TIMESTAMP], row[t.PRODUCER_ID]) == (header.max_timestamp, header.producer_id)
        if header.magic == 2:
            fields = DEFAULT_HEADER.unpack_from(buf, start)
            assert (row[t.BASE_TIMESTAMP], row[t.COUNT]) == (fields[7], fields[12])
            assert row[t.START] == data.ctypes.data + start + DEFAULT_HEADER_BYTES


def test_both_scans_end_at_the_same_place() -> None:
    whole = MAGIC_0 + DEFAULT + MAGIC_1
    bufs = [whole[:cut] for cut in range(len(whole) + 1)]
    for at in (8, 9, 10, 11, 16):  # the size, and the magic
        for batch in (MAGIC_0, MAGIC_1, DEFAULT):
            changed = (0, 1, 2, 3, 13, 14, 22, 48, 49, 0x7F, 0x80, 0xFF)
            bufs += [MAGIC_1 + batch[:at] + bytes([byte]) + batch[at + 1 :] for byte in changed]
    statuses = set()
    for buf in bufs:
        data = np.frombuffer(buf, np.uint8) if buf else np.empty(0, np.uint8)
        for rows in (0, 1, 2, 3, 4):
            plain, fast = (np.full((rows, t.COLUMN_COUNT), 77, np.int64) for _ in range(2))
            ending = t.scan_plain(data, 0, plain)
            assert t.scan_batches(data, 0, fast) == ending
            assert (plain == fast).all()
            statuses.add(ending[2])
    assert statuses == {t.WHOLE, t.CUT, t.UNBELIEVABLE, t.FULL}


def test_the_search_finds_headers_of_each_magic() -> None:
    for batch in (MAGIC_0 + bytes(61), MAGIC_1 + bytes(61), DEFAULT):
        data = np.frombuffer(b"\xff" * 30 + batch, np.uint8)
        assert find_header(data, 0, len(data), Range(OFFSET, OFFSET + DELTA + 1)) == 30
