"""Arrow columns to batches: the bytes of the object path, accepted types, rejected values."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.fuzz import record_writing
from tests.records.both_paths import without_compiled_code
from tests.records.test_builder import plain
from tests.waiting import HANG_S

from kwire import native
from kwire.errors import EncodeError, OptionError
from kwire.records import (
    ColumnWriter,
    Compression,
    TimestampType,
    from_arrow,
    read_batches,
    to_arrow,
    write_batch,
    write_batches,
)
from kwire.records.columns import encoder

NOW = 1_700_000_000_000
HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


@pytest.fixture(params=["compiled", "plain"])
def path(request: pytest.FixtureRequest) -> Iterator[None]:
    """Write with and without compiled code."""
    if request.param == "compiled":
        yield
    else:
        with without_compiled_code():
            yield


with_and_without_compiled_code = pytest.mark.usefixtures("path")


def table(**columns: Any) -> pa.RecordBatch:
    """Return a record batch of arrays or lists of bytes."""
    arrays = {n: c if isinstance(c, pa.Array) else pa.array(c, pa.binary()) for n, c in columns.items()}
    return pa.RecordBatch.from_pydict(arrays)


def values(data: bytes) -> list[bytes | None]:
    return [r.value for b in read_batches(data) for r in b.records()]


def timestamps(data: bytes) -> list[int]:
    return [r.timestamp for b in read_batches(data) for r in b.records()]


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(4))
def test_random_rows_give_the_bytes_of_the_object_path_and_round_trip(seed: int) -> None:
    for number in range(60):
        record_writing.write_both(random.Random(f"{seed} {number}"))


@pytest.mark.slow
def test_kernels_stay_inside_their_buffers() -> None:
    """In a separate process, since an access past the end of a buffer kills it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.record_writing", "guarded", "150"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "150"), done.stderr[-3000:]


@with_and_without_compiled_code
@pytest.mark.requirement("R-31", "R-33", "R-34", "R-35")
def test_every_batch_attribute_is_written() -> None:
    rows = [plain(i, b"k", b"v%d" % i, NOW + i) for i in range(3)]
    batch = table(key=[b"k"] * 3, value=[b"v0", b"v1", b"v2"], timestamp=pa.array([NOW, NOW + 1, NOW + 2]))
    settings: dict[str, Any] = {
        "base_offset": 9,
        "producer_id": 2**40,
        "producer_epoch": 2**15 - 1,
        "base_sequence": 2**31 - 1,
        "is_transactional": True,
        "partition_leader_epoch": 12,
        "timestamp_type": TimestampType.LOG_APPEND_TIME,
        "log_append_time_ms": NOW + 50,
    }
    assert from_arrow(batch, **settings) == write_batch(rows, **settings)


@with_and_without_compiled_code
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.requirement("R-13", "R-20", "R-21", "R-22", "R-24", "S31-01")
def test_inner_offsets_of_compressed_messages_depend_on_the_magic(magic: int) -> None:
    batch = table(key=[None] * 40, value=[b"v" * 20] * 40)
    data = from_arrow(batch, magic=magic, compression="gzip", base_offset=70, batch_size=800)
    wrappers = list(read_batches(data))
    assert len(wrappers) > 1
    assert [r.offset for w in wrappers for r in w.records()] == list(range(70, 110))
    inner = int.from_bytes(bytes(wrappers[1].inner_payload())[:8], "big")  # type: ignore[attr-defined]
    assert inner == (0 if magic else wrappers[1].base_offset)


TIMES = {
    "s": (pa.array([5, None], pa.timestamp("s")), [5000, -1]),
    "ms": (pa.array([5, -1], pa.timestamp("ms", "Europe/Berlin")), [5, -1]),
    "us": (pa.array([5999, -1000], pa.timestamp("us", "UTC")), [5, -1]),
    "ns": (pa.array([5_999_999, None], pa.timestamp("ns")), [5, -1]),
    "int64": (pa.array([2**63 - 1, -1]), [2**63 - 1, -1]),
    "null": (pa.nulls(2), [-1, -1]),
}


@with_and_without_compiled_code
@pytest.mark.parametrize(("column", "read"), TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("magic", [1, 2])
def test_timestamps_of_any_unit_are_accepted(column: pa.Array, read: list[int], magic: int) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([b"a", b"b"]), column], ["value", "timestamp"])
    assert timestamps(from_arrow(batch, magic=magic)) == read


VALUES = [b"a", None, b"", b"ccc"]
TEXTS = ["a", None, "", "ccc"]
COLUMNS = {
    "binary": pa.array(VALUES, pa.binary()),
    "large binary": pa.array(VALUES, pa.large_binary()),
    "string": pa.array(TEXTS, pa.string()),
    "large string": pa.array(TEXTS, pa.large_string()),
    "binary view": pa.array(VALUES, pa.binary_view()),
    "string view": pa.array(TEXTS, pa.string_view()),
    "dictionary": pa.array(VALUES, pa.binary()).dictionary_encode(),
    "slice": pa.array([b"x", *VALUES, b"y"], pa.binary()).slice(1, 4),
}


@with_and_without_compiled_code
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_values_of_any_binary_or_text_type_are_accepted(column: pa.Array) -> None:
    assert values(from_arrow(table(value=column))) == VALUES
    assert values(from_arrow(table(value=column), magic=0)) == VALUES


@with_and_without_compiled_code
def test_fixed_width_keys_and_empty_columns_are_accepted() -> None:
    batch = table(key=pa.array([b"abcd"], pa.binary(4)), value=pa.nulls(1), headers=pa.nulls(1))
    (row,) = next(read_batches(from_arrow(batch))).records()
    assert (row.key, row.value, row.headers, row.timestamp) == (b"abcd", None, [], -1)


def test_columns_round_trip_byte_for_byte() -> None:
    rows = [plain(i, b"k%d" % i, None if i % 5 == 0 else b"v", NOW + i, [("h", b"x")] * (i % 3)) for i in range(500)]
    data = b"".join(write_batches(rows, batch_size=2000))
    read = to_arrow(data)
    assert from_arrow(read, batch_size=2000) == data
    assert from_arrow(pa.Table.from_batches([read]), batch_size=2000) == data


@with_and_without_compiled_code
def test_offsets_of_a_column_keep_their_gaps() -> None:
    offsets = [3, 4, 9, 9 + 2**31, 2**62]
    batch = table(value=[b"v"] * 5, offset=pa.array(offsets))
    for magic in (0, 1, 2):
        for codec in ("none", "lz4"):
            if magic == 1 and codec == "lz4":
                continue
            writer = ColumnWriter(magic=magic, compression=codec, keep_offsets=True)
            data = b"".join(bytes(piece) for piece in writer.write(batch))
            assert [r.offset for b in read_batches(data) for r in b.records()] == offsets
            assert writer.next_offset == 2**62 + 1


@with_and_without_compiled_code
def test_a_writer_resumes_at_its_position() -> None:
    writer = ColumnWriter(base_offset=5, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    data = b"".join(bytes(piece) for _ in range(3) for piece in writer.write(table(value=[b"a", b"b"])))
    read = [(r.offset, r.sequence) for b in read_batches(data) for r in b.records()]
    assert read == [(5 + i, (2**31 - 2 + i) % 2**31) for i in range(6)]
    assert writer.next_offset == 11
    assert list(writer.write(table(value=[]))) == []


@with_and_without_compiled_code
@pytest.mark.parametrize("codec", list(Compression))
def test_rows_of_any_size_fit(codec: Compression) -> None:
    sizes = (0, 3 << 20, 10, 600_000, 70_000, 1)
    batch = table(value=[bytes([i]) * size for i, size in enumerate(sizes)])
    data = from_arrow(batch, compression=codec)
    assert [len(value or b"") for value in values(data)] == list(sizes)
    for one in read_batches(data):
        one.check()


def test_more_batches_than_the_table_has_rows_are_written() -> None:
    n = encoder.TABLE_ROWS + 10
    data = from_arrow(table(value=[b"v"] * n), batch_size=1)
    assert [b.base_offset for b in read_batches(data)] == list(range(n))


def test_checksums_are_right_without_the_crc32_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = table(value=[b"v" * 100] * 500)
    by_kernel = from_arrow(batch), from_arrow(batch, compression="lz4")
    monkeypatch.setattr(native, "HAS_CRC32C", False)
    assert (from_arrow(batch), from_arrow(batch, compression="lz4")) == by_kernel


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "early": ({"timestamp": pa.array([0, -2])}, "row 1: timestamp"),
    "year 1969": ({"timestamp": pa.array([datetime(1969, 1, 1, tzinfo=UTC)] * 2)}, "row 0: timestamp"),
    "seconds": ({"timestamp": pa.array([2**60, 0], pa.timestamp("s"))}, "timestamp"),
    "null header": ({"headers": pa.array([[None], []], HEADERS)}, "a null header"),
    "null header key": ({"headers": pa.array([[], [{"key": None, "value": b""}]], HEADERS)}, "row 1: header"),
}


@with_and_without_compiled_code
@pytest.mark.parametrize(("columns", "what"), REFUSED.values(), ids=REFUSED)
@pytest.mark.requirement("R-13", "R-33")
def test_unrepresentable_values_are_reported_with_their_row(columns: dict[str, pa.Array], what: str) -> None:
    with pytest.raises(EncodeError, match=what):
        from_arrow(table(value=[b"a", b"b"], **columns))


@with_and_without_compiled_code
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.requirement("R-12")
def test_old_formats_have_no_headers(magic: int) -> None:
    headers = pa.array([[], [{"key": "h", "value": b""}]], HEADERS)
    with pytest.raises(EncodeError, match=f"row 1: Magic v{magic} does not support record headers"):
        from_arrow(table(value=[b"a", b"b"], headers=headers), magic=magic)
    assert values(from_arrow(table(value=[b"a"], headers=headers.slice(0, 1)), magic=magic)) == [b"a"]


@with_and_without_compiled_code
@pytest.mark.parametrize("magic", [1, 2])
def test_offsets_out_of_order_or_range_are_rejected(magic: int) -> None:
    for offsets, row in (([5, 5], 1), ([5, 4], 1), ([-1, 0], 0)):
        with pytest.raises(EncodeError, match=f"row {row}: offset"):
            from_arrow(table(value=[b"a", b"b"], offset=pa.array(offsets)), keep_offsets=True, magic=magic)
    with pytest.raises(EncodeError, match="column 'offset' contains a null"):
        from_arrow(table(value=[b"a"], offset=pa.array([None], pa.int64())), keep_offsets=True, magic=magic)
    with pytest.raises(EncodeError, match="exceed the range of offsets"):
        from_arrow(table(value=[b"a", b"b"]), base_offset=2**63 - 1, magic=magic)
    assert len(values(from_arrow(table(value=[b"a"]), base_offset=2**63 - 1, magic=magic))) == 1


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no value": ({"key": [b"a"]}, {}, "column 'value' is missing"),
    "numbers": ({"value": pa.array([1])}, {}, "'value' is int64"),
    "text timestamps": ({"value": [b"a"], "timestamp": pa.array(["now"])}, {}, "'timestamp' is string"),
    "flat headers": ({"value": [b"a"], "headers": pa.array(["h"])}, {}, "'headers' is string"),
    "no offsets": ({"value": [b"a"]}, {"keep_offsets": True}, "'offset'"),
    "batch size": ({"value": [b"a"]}, {"batch_size": 0}, "batch_size 0"),
}


@pytest.mark.parametrize(("columns", "settings", "what"), WRONG.values(), ids=WRONG)
def test_columns_of_the_wrong_type_are_reported(columns: dict[str, Any], settings: dict[str, Any], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        from_arrow(table(**columns), **settings)


def lying(ends: list[int], data: bytes) -> pa.Array:
    """Return a binary column whose offsets point outside its data, as in a damaged Arrow file."""
    buffer = pa.py_buffer(b"".join(end.to_bytes(4, "little", signed=True) for end in ends))
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, buffer, pa.py_buffer(data)])


@with_and_without_compiled_code
@pytest.mark.parametrize("middle", [4, -5, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("magic", [1, 2])
def test_invalid_arrow_offsets_are_detected(middle: int, magic: int) -> None:
    bad = lying([0, middle, 3], b"abc")
    for columns in ({"value": bad}, {"value": [b"v", b"w"], "key": bad}):
        with pytest.raises(EncodeError, match="outside its Arrow buffer"):
            from_arrow(table(**columns), magic=magic)
    good = pa.array(["k", "l"])
    for pair in ([bad.view(pa.string()), good], [good, bad]):
        entries = pa.StructArray.from_arrays(pair, ["key", "value"])
        headers = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), entries)
        with pytest.raises(EncodeError, match="outside its Arrow buffer"):
            from_arrow(table(value=[b"v"], headers=headers), magic=magic)
    entries = pa.StructArray.from_arrays([good, good], ["key", "value"])
    ends = pa.py_buffer(b"".join(end.to_bytes(4, "little", signed=True) for end in (0, middle, 2)))
    lists = pa.Array.from_buffers(pa.list_(entries.type), 2, [None, ends], children=[entries])
    with pytest.raises(EncodeError, match="outside its Arrow buffer"):
        from_arrow(table(value=[b"v", b"w"], headers=lists), magic=magic)


@with_and_without_compiled_code
def test_columns_beyond_int32_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "LARGEST_COLUMN_BYTES", 100)  # of the 2**31 - 1 that Arrow counts
    column = pa.array([b"%03d" % i * 10 for i in range(20)], pa.large_binary())
    assert values(from_arrow(table(value=column))) == column.to_pylist()
    with pytest.raises(EncodeError, match="row 0: value of 120 bytes"):
        from_arrow(table(value=pa.array([b"x" * 120], pa.large_binary())))


@with_and_without_compiled_code
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("is_split", [False, True])
def test_rows_in_an_order_give_the_bytes_of_rows_taken_in_it(
    magic: int, is_split: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_split:
        monkeypatch.setattr(encoder, "LARGEST_COLUMN_BYTES", 1000)
    n = 300
    headers = [[{"key": f"h{i}", "value": b"%d" % i}] * (i % 3) for i in range(n)]
    batch = table(
        key=pa.array([None if i % 5 == 0 else b"key-%d" % i for i in range(n)], pa.binary()),
        value=pa.array([None if i % 7 == 0 else b"v" * i for i in range(n)], pa.large_binary()),
        timestamp=pa.array([1000 + i * 37 % 90 for i in range(n)], pa.int64()),
        offset=pa.array(range(10, 10 + 3 * n, 3), pa.int64()),
        **({"headers": pa.array(headers)} if magic == 2 else {}),
    ).slice(3)
    order = np.array(sorted(random.Random(magic).sample(range(n - 3), 100)), np.int64)
    for keep_offsets in (False, True):
        options: Any = {"magic": magic, "batch_size": 2000, "keep_offsets": keep_offsets}
        some = b"".join(bytes(each) for each in ColumnWriter(**options).write(batch, order))
        taken = b"".join(bytes(each) for each in ColumnWriter(**options).write(batch.take(pa.array(order))))
        assert some == taken
        assert not b"".join(ColumnWriter(**options).write(batch, order[:0]))


@pytest.mark.parametrize("order", [np.array([3]), np.array([-1]), np.array([0], np.int32), np.array([0, 1, 2, 0])[::2]])
def test_an_order_outside_of_the_rows_is_rejected(order: Any) -> None:
    with pytest.raises(OptionError, match="order: expected an array of int64 from 0 to 2"):
        list(ColumnWriter().write(table(value=pa.array([b"a", b"b", b"c"])), order))


@with_and_without_compiled_code
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_batches_end_at_the_given_rows(magic: int, codec: str) -> None:
    batch = table(value=pa.array([b"%d" % i for i in range(100)], pa.binary()))
    ends = [1, 40, 41, 100]
    writer = ColumnWriter(magic=magic, compression=codec)
    parts = [batch.slice(start, end - start) for start, end in zip([0, *ends], ends, strict=False)]
    alone = [b"".join(map(bytes, writer.write(part))) for part in parts]
    together = [bytes(each) for each in ColumnWriter(magic=magic, compression=codec).write(batch, ends=ends)]
    assert together == alone


@with_and_without_compiled_code
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_rows_are_written_up_to_the_largest_offset(rows: int) -> None:
    writer = ColumnWriter(base_offset=2**63 - 2)
    batch = table(value=[b"x"] * rows)
    if rows > 2:
        with pytest.raises(EncodeError, match="exceed the range of offsets"):
            list(writer.write(batch))
        return
    data = b"".join(bytes(each) for each in writer.write(batch))
    assert [record.offset for each in read_batches(data) for record in each.records()] == [2**63 - 2, 2**63 - 1][:rows]


@with_and_without_compiled_code
@pytest.mark.parametrize(("last", "batches"), [(2**31 - 2, 1), (2**31 - 1, 1), (2**31, 2)])
def test_a_batch_reaches_as_far_as_the_delta_of_its_last_offset(last: int, batches: int) -> None:
    rows = table(value=[b"x", b"y"]).append_column("offset", pa.array([5, 5 + last], pa.int64()))
    data = b"".join(bytes(each) for each in ColumnWriter(keep_offsets=True).write(rows))
    found = list(read_batches(data))
    assert len(found) == batches
    assert [record.offset for each in found for record in each.records()] == [5, 5 + last]
