"""Expensive batches: many records, many headers, malformed control records."""

from __future__ import annotations

import cramjam
import pyarrow as pa
import pytest
from tests import golden
from tests.records.both_paths import through_both, through_columns, through_objects
from tests.records.building import with_right_checksums

from kwire import records
from kwire.errors import CorruptBatch
from kwire.records import ColumnReader, read_batches
from kwire.records.format.batch_header import DEFAULT_HEADER
from kwire.records.format.faults import MAX_HEADERS, Fault

SMALLEST = bytes.fromhex("0c000000010100")  # a record with neither key, value nor headers
ZSTD, CONTROL = 4, 32


def batch(payload: bytes, count: int, attributes: int = 0) -> bytes:
    """Return a batch of magic 2 with valid checksums."""
    size = DEFAULT_HEADER.size - 12 + len(payload)
    head = DEFAULT_HEADER.pack(0, size, -1, 2, 0, attributes, max(count - 1, 0), 1000, 1000, -1, -1, -1, count)
    return with_right_checksums(head + payload)


def zigzag(number: int) -> bytes:
    out, number = bytearray(), number << 1
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def test_a_batch_of_many_records_is_read_in_bounded_parts() -> None:
    count = 400_000
    data = batch(bytes(cramjam.zstd.compress(SMALLEST * count)), count, ZSTD)
    assert len(data) < 2000
    before, rows = pa.total_allocated_bytes(), 0
    for part in ColumnReader(topic="t" * 100, partition=0, max_rows=4096).read(data):
        rows += part.num_rows
        assert part.num_rows <= 4096
        assert pa.total_allocated_bytes() - before < 4 << 20  # the whole batch would be 60 MB
    assert rows == count


def test_a_batch_corrupt_at_its_end_returns_no_part() -> None:
    data = batch(SMALLEST * 100 + b"\x0c\0\0\0\x7e\1\0", 101)
    outcome = through_columns(data, max_rows=10)
    assert outcome.rows == []
    assert outcome.errors == through_objects(data).errors
    assert outcome.errors[0].startswith("record 100: ")


@pytest.mark.sampled
@pytest.mark.parametrize(("max_rows", "max_bytes"), [(1, 1 << 20), (3, 64), (1000, 1), (2, 100)])
def test_the_parts_of_a_batch_contain_all_its_records(max_rows: int, max_bytes: int) -> None:
    for line in (*golden.record_sets(), *golden.reads_of_invalid_bytes()):
        data = golden.unpack(line["b64"]) or b""
        if len(data) < 5000:
            found = through_columns(data, max_rows=max_rows, max_bytes=max_bytes, max_decompressed_bytes=1 << 20)
            assert found == through_objects(data, max_decompressed_bytes=1 << 20), golden.case_name(line)


def with_headers(count: int) -> bytes:
    body = b"\0\0\0\1\1" + zigzag(count) + b"\0\1" * count
    return batch(bytes(cramjam.zstd.compress(zigzag(len(body)) + body)), 1, ZSTD)


def test_the_number_of_headers_is_limited() -> None:
    data = with_headers(MAX_HEADERS + 1)
    outcome = through_both(data)
    assert outcome.rows == []
    assert outcome.errors == [f"record 0: {Fault.HEADER_COUNT.text}, in the batch at byte 0 (offset 0)"]
    with pytest.raises(records.RejectedRecords, match="header count"):
        records.validate_and_assign_offsets(data, first_offset=0, now_ms=0)
    [found] = read_batches(with_headers(MAX_HEADERS))
    assert sum(len(record.headers) for record in found.records()) == MAX_HEADERS


@pytest.mark.parametrize(
    ("payload", "count"), [(b"\x0c\0\0\0\x7e\1\0", 1), (b"", 1), (SMALLEST, -1), (SMALLEST + b"\0", 1)]
)
def test_a_malformed_control_batch_is_rejected_by_objects_and_columns(payload: bytes, count: int) -> None:
    data = batch(SMALLEST, 1) + batch(payload, count, CONTROL) + batch(SMALLEST, 1)
    outcome = through_both(data)
    assert (len(outcome.rows), len(outcome.errors)) == (2, 1)
    with pytest.raises(CorruptBatch):
        records.to_arrow(data)
    good = batch(SMALLEST, 1) + batch(SMALLEST, 1, CONTROL)
    assert through_both(good).errors == []
    assert records.to_arrow(good).num_rows == 1
