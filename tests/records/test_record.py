"""Records that compiled code creates are those that Record() creates."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import sys
import threading
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from tests.records.both_paths import without_compiled_code
from tests.records.building import Header, batch, record

from kwire import native
from kwire.errors import CorruptBatch
from kwire.records import Record, TimestampType, read_batches
from kwire.records.format.record import decode_header_key, factory

HEADERS: list[Header] = [
    (b"a", b"1"),
    (b"b", None),
    (b"a", b""),
    (b"\xff\xed\xa0\x80", b"2"),
    (b"", b"3"),
]
DATA = batch(
    record(0, 0, b"k", b"v", HEADERS) + record(1, 5, None, None) + record(2, 5, b"", b"", HEADERS[:1]),
    count=3,
    base_offset=2**40,
    producer_id=7,
    producer_epoch=0,
    base_sequence=2**31 - 2,
)


def records_of(data: bytes | bytearray) -> list[Record]:
    """Read all records of a record set."""
    return [record for each in read_batches(data) for record in each.records()]


def test_compiled_code_creates_records() -> None:
    assert factory() is not None


def test_a_record_of_compiled_code_is_one_of_python() -> None:
    found = records_of(DATA)
    with without_compiled_code():
        expected = records_of(DATA)
    assert [repr(each) for each in found] == [repr(each) for each in expected]
    assert found == expected
    for each in found:
        assert type(each) is Record
        assert type(each.timestamp_type) is TimestampType
        assert type(each.headers) is list
        assert all(type(pair) is tuple for pair in each.headers)
        assert pickle.loads(pickle.dumps(each)) == copy.copy(each) == copy.deepcopy(each) == each
        assert msgspec.structs.replace(each, offset=1).offset == 1
        assert msgspec.to_builtins(each)["offset"] == each.offset
        with pytest.raises(AttributeError):
            each.offset = 2  # type: ignore[misc]
        with pytest.raises(TypeError, match="unhashable"):
            hash(each)
    assert [each.sequence for each in found] == [2**31 - 2, 2**31 - 1, 0]
    assert found[0].headers == [("a", b"1"), ("b", None), ("a", b""), ("\ufffd\ufffd", b"2"), ("", b"3")]


def test_the_headers_of_a_record_are_its_own() -> None:
    data = batch(record(0) + record(1) + record(2, headers=[(b"a", b"1")]), count=3)
    first, second, third = records_of(data)
    first.headers.append(("x", b"y"))
    third.headers.clear()
    assert (first.headers, second.headers, third.headers) == ([("x", b"y")], [], [])
    assert [each.headers for each in records_of(data)] == [[], [], [("a", b"1")]]


@pytest.mark.slow
def test_records_survive_collections_and_leave_no_memory() -> None:
    def read() -> None:
        for each in records_of(DATA * 10):
            each.headers.append(("self", b""))
        with pytest.raises(CorruptBatch):
            records_of(batch(record(0, headers=HEADERS) + b"\x01", count=2))
        gc.collect()

    read()
    held = [sys.getrefcount(each) for each in (None, Record, decode_header_key, *TimestampType)]
    tracemalloc.start()
    for _ in range(20):
        read()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    now = [sys.getrefcount(each) for each in (None, Record, decode_header_key, *TimestampType)]
    assert grown < 20_000
    assert all(abs(a - b) < 100 for a, b in zip(held, now, strict=True))


def test_a_buffer_that_another_thread_writes_to_is_read_within_its_bounds(tmp_path: Path) -> None:
    """Bytes may change after the kernel has checked them: any records or errors, but no byte outside the buffer."""
    buffer = bytearray(batch(b"".join(record(i, headers=HEADERS) for i in range(60)), count=60))
    (tmp_path / "bytes").write_bytes(bytes(buffer[61:]) + bytes(b ^ 0xFF for b in buffer[61:]))
    size, done = len(buffer) - 61, threading.Event()

    def write() -> None:
        with open(tmp_path / "bytes", "rb") as file, memoryview(buffer)[61:] as view:
            while not done.is_set():
                for position in (size, 0):
                    os.preadv(file.fileno(), [view], position)  # writes without the GIL

    writer = threading.Thread(target=write)
    writer.start()
    whole = 0
    try:
        for _ in range(500):
            with contextlib.suppress(CorruptBatch, BufferError):
                whole += len(records_of(buffer))
    finally:
        done.set()
        writer.join()
    assert whole % 60 == 0


def test_wrong_arguments_are_errors() -> None:
    header = (0,) * 8
    assert native.read_records(factory(), b"", None, 0, 0, 0, *header) == ([], 0, 0, 0)
    with pytest.raises(TypeError, match="takes"):
        native.read_records(factory(), b"")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="outside the buffer"):
        native.read_records(factory(), b"", None, 0, 1, 0, *header)
    with pytest.raises(ValueError, match="no such timestamp type"):
        native.read_records(factory(), b"", None, 2, 0, 0, *header)
    with pytest.raises(ValueError, match="PyCapsule"):
        native.read_records(None, b"", None, 0, 0, 0, *header)
