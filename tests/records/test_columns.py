"""ColumnReader and to_arrow: schema, projection, ranges, grouping, corrupt batches, imports."""

from __future__ import annotations

import gzip
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from tests import golden
from tests.records.both_paths import through_columns
from tests.records.building import batch, message, record
from tests.records.test_builder import plain

from kwire import native
from kwire.errors import CorruptBatch, OptionError
from kwire.records import ColumnReader, Compression, arrow_schema, read_batches, to_arrow, write_batch
from kwire.records.columns.reader import COLUMNS

TRANSACTIONAL, CONTROL = 16, 32


def offsets(reader: ColumnReader, buf: bytes, **arguments: Any) -> list[int]:
    return [n for found in reader.read(buf, **arguments) for n in found.column("offset").to_pylist()]


def numbered(count: int, base_offset: int = 0, codec: int = 0, **fields: Any) -> bytes:
    payload = b"".join(record(i, i, b"k%d" % i, b"v%d" % i) for i in range(count))
    if codec:
        payload = gzip.compress(payload)
    return batch(
        payload, count=count, base_offset=base_offset, attributes=fields.pop("attributes", 0) | codec, **fields
    )


def test_the_schema_equals_that_of_sparks_kafka_source() -> None:
    assert COLUMNS == ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
    schema = arrow_schema()
    assert {name: str(schema.field(name).type) for name in COLUMNS} == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int32",
        "offset": "int64",
        "timestamp": "timestamp[us, tz=UTC]",
        "timestampType": "int32",
        "headers": "list<element: struct<key: string, value: binary>>",
    }
    assert all(field.nullable for field in schema)


def test_to_arrow_returns_all_columns() -> None:
    data = batch(record(0, 5, b"a", None, [(b"h", b"x"), (b"n", None)]) + record(1, 6), count=2, base_offset=7)
    found = to_arrow(data, topic="orders", partition=3)
    assert found.schema == arrow_schema()
    assert found.to_pylist()[0] | {"timestamp": None} == {
        "key": b"a",
        "value": None,
        "topic": "orders",
        "partition": 3,
        "offset": 7,
        "timestamp": None,
        "timestampType": 0,
        "headers": [{"key": "h", "value": b"x"}, {"key": "n", "value": None}],
    }
    assert found.column("timestamp").cast("int64").to_pylist() == [1005000, 1006000]
    assert found.column("headers").to_pylist()[1] is None  # as in Spark: null when there are none
    without = to_arrow(data)
    assert without.column("topic").null_count == without.column("partition").null_count == 2


def test_to_arrow_concatenates_batches_and_returns_an_empty_one_for_none() -> None:
    many = b"".join(numbered(7, 7 * i) for i in range(9000))
    assert to_arrow(many, ["offset"]).column(0).to_pylist() == list(range(63000))
    nothing = to_arrow(b"")
    assert (nothing.num_rows, nothing.schema) == (0, arrow_schema())


@pytest.mark.sampled
@pytest.mark.parametrize("name", COLUMNS)
def test_a_single_column_equals_that_of_all_columns(name: str) -> None:
    for line in golden.record_sets():
        buf = golden.unpack(line["b64"]) or b""
        every = to_arrow(buf, topic="t", partition=1)
        assert to_arrow(buf, [name], topic="t", partition=1).column(0).equals(every.column(name))


def test_columns_are_in_the_requested_order() -> None:
    order = ["timestampType", "value", "partition"]
    assert to_arrow(numbered(2), order).schema.names == order


@pytest.mark.parametrize("columns", [["Key"], ["offset", "offset"], [], ["headers", "leader"]])
def test_unknown_columns_are_rejected(columns: list[str]) -> None:
    for call in (arrow_schema, ColumnReader, lambda names: to_arrow(b"", names)):
        with pytest.raises(OptionError, match="columns"):
            call(columns)


@pytest.mark.parametrize("settings", [{"max_rows": 0}, {"max_bytes": 0}, {"max_decompressed_bytes": 1 << 31}])
def test_settings_out_of_range_are_rejected(settings: dict[str, int]) -> None:
    with pytest.raises(OptionError, match=next(iter(settings))):
        ColumnReader(["key"], **settings)


@pytest.mark.requirement("D-01")
@pytest.mark.parametrize("codec", [0, 1])
def test_records_outside_the_range_are_dropped(codec: int) -> None:
    data = b"".join(numbered(10, 10 * i, codec) for i in range(5))
    reader = ColumnReader(["offset"])
    for start, end in [(0, None), (0, 50), (13, None), (0, 27), (13, 27), (20, 30), (49, 50), (50, None), (30, 30)]:
        expected = list(range(start, 50 if end is None else end))
        assert offsets(reader, data, start_offset=start, end_offset=end) == expected
        assert reader.consumed == len(data)


def test_a_start_of_zero_is_no_limit() -> None:
    """Offsets of a batch are not negative; those of damaged records can be, and objects return them too."""
    data = batch(record(-3) + record(-1) + record(0), count=3)
    assert [each.offset for found in read_batches(data) for each in found.records()] == [-3, -1, 0]
    assert offsets(ColumnReader(["offset"]), data, start_offset=0) == [-3, -1, 0]
    assert offsets(ColumnReader(["offset"]), data, start_offset=1) == []


@pytest.mark.requirement("D-01", "R-23")
def test_records_outside_the_range_are_dropped_in_a_compressed_message() -> None:
    inner = b"".join(message(1, offset=i) for i in range(10))
    data = message(1, offset=109, attributes=1, key=None, value=gzip.compress(inner)) + message(1, offset=110)
    assert offsets(ColumnReader(["offset"]), data, start_offset=103, end_offset=105) == [103, 104]
    assert offsets(ColumnReader(["offset"]), data, start_offset=109) == [109, 110]


@pytest.mark.requirement("D-03", "D-04")
def test_aborted_transactions_are_skipped() -> None:
    def of(producer: int, base: int, flags: int = TRANSACTIONAL) -> bytes:
        return numbered(2, base, producer_id=producer, producer_epoch=0, attributes=flags)

    data = of(1, 0) + of(2, 2) + of(1, 4, 0) + of(1, 6, TRANSACTIONAL | CONTROL) + of(1, 8) + numbered(1, 10)
    aborted = [(1, 0, 6), (3, 0, 99)]
    assert offsets(ColumnReader(["offset"]), data) == [0, 1, 2, 3, 4, 5, 8, 9, 10]
    assert offsets(ColumnReader(["offset"]), data, aborted=aborted) == [2, 3, 4, 5, 8, 9, 10]
    assert offsets(ColumnReader(["offset"], include_control=True), data, aborted=aborted) == [
        2, 3, 4, 5, 6, 7, 8, 9, 10,
    ]  # fmt: skip
    assert offsets(ColumnReader(["offset"]), data, aborted=[(2, 2, 3), (2, 0, 1), (1, 8, 8)]) == [0, 1, 4, 5, 10]


@pytest.mark.parametrize("codec", [0, 1])
def test_arrow_batches_stay_within_their_bounds(codec: int) -> None:
    data = b"".join(numbered(10, 10 * i, codec) for i in range(50)) + numbered(90, 500, codec)
    by_rows = [found.num_rows for found in ColumnReader(["key"], max_rows=35).read(data)]
    assert by_rows == [30] * 16 + [20] + [35, 35, 20]  # a large Kafka batch is cut
    section = len(numbered(10)) - 61
    by_bytes = [found.num_rows for found in ColumnReader(["key"], max_bytes=3 * section).read(data)]
    assert sum(by_bytes) == 590
    assert max(by_bytes[:-1]) <= 30


def test_arrow_batches_do_not_depend_on_the_buffer() -> None:
    data = b"".join(numbered(10, 10 * i, codec) for i, codec in enumerate([0, 1, 0]))
    memory = bytearray(data)
    expected = to_arrow(data)
    reader = ColumnReader(max_rows=10)
    kept = list(reader.read(memory))
    memory[:] = bytes(len(memory))
    list(reader.read(b"".join(numbered(10, 100 + 10 * i, 1) for i in range(3))))
    assert pa.Table.from_batches(kept).equals(pa.Table.from_batches([expected]))


def test_mixed_magics_and_codecs_share_arrow_batches() -> None:
    inner = b"".join(message(1, offset=i) for i in range(3))
    data = numbered(2) + message(0, offset=2) + numbered(2, 3, 1) + message(1, offset=5) + numbered(1, 6)
    data += message(1, offset=9, attributes=1, value=gzip.compress(inner)) + numbered(1, 10)
    (found,) = ColumnReader(["offset"]).read(data)
    assert found.column(0).to_pylist() == list(range(11))


@pytest.mark.requirement("D-05", "D-07")
def test_a_corrupt_batch_is_raised_after_the_preceding_rows() -> None:
    data = numbered(2) + numbered(2, 2, crc=0) + numbered(2, 4)
    batches = ColumnReader(["offset"]).read(data, position=40, file="x.log")
    assert next(batches).column(0).to_pylist() == [0, 1]
    with pytest.raises(CorruptBatch) as caught:
        next(batches)
    assert (caught.value.position, caught.value.file, caught.value.offsets) == (40 + len(numbered(2)), "x.log", (2, 3))
    with pytest.raises(CorruptBatch):
        to_arrow(data)


@pytest.mark.requirement("D-05")
def test_corrupt_batches_are_reported_in_order_and_skipped() -> None:
    events: list[Any] = []
    malformed = batch(record()[:-1], count=1, base_offset=6)
    parts = [numbered(2), numbered(2, 2, crc=0), numbered(2, 4), malformed, numbered(1, 7), batch(b"x", attributes=3)]
    data = b"".join(parts) + numbered(1, 8, 1)
    reader = ColumnReader(["offset"], on_corrupt=lambda error: events.append(error.position))
    for found in reader.read(data):
        events.append(found.column(0).to_pylist())  # noqa: PERF401  # on_corrupt appends in between
    places = [sum(map(len, parts[:i])) for i in range(len(parts))]
    assert events == [[0, 1], places[1], [4, 5], places[3], [7], places[5], [8]]
    assert (reader.consumed, reader.stopped) == (len(data), None)


@pytest.mark.requirement("D-05")
def test_checksums_are_ignored_when_disabled() -> None:
    inner = message(1, offset=0, crc=7)
    data = numbered(2, crc=0) + message(1, offset=2, crc=3)
    data += message(1, offset=3, attributes=1, value=gzip.compress(inner), crc=5)
    assert offsets(ColumnReader(["offset"], check_crc=False), data) == [0, 1, 2, 3]
    assert len(through_columns(data).errors) == 3


@pytest.mark.requirement("D-05")
def test_a_corrupt_batch_outside_the_range_is_reported() -> None:
    data = numbered(2, crc=0) + numbered(2, 2)
    with pytest.raises(CorruptBatch):
        offsets(ColumnReader(["offset"]), data, start_offset=2)


def test_a_large_batch_grows_the_scratch_buffer() -> None:
    big = batch(gzip.compress(record(value=bytes(5 << 20))), attributes=1)
    reader = ColumnReader(["value"], max_bytes=1 << 16)
    data = numbered(3, 0, 1) + big + numbered(3, 5, 1)
    assert sum(found.num_rows for found in reader.read(data)) == 7
    assert len(reader.decoder.scratch) <= 2 << 16


@pytest.mark.parametrize("on", [True, False])
def test_checksums_are_verified_without_the_crc32_instruction(on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if on and not native.HAS_CRC32C:
        pytest.skip("this processor has no CRC-32C instruction")
    monkeypatch.setattr(native, "HAS_CRC32C", on)
    data = numbered(2) + numbered(2, 2, crc=0) + message(1, offset=4) + message(0, offset=5, crc=1) + numbered(2, 6)
    rows, errors = through_columns(data)
    assert [row[0] for row in rows] == [0, 1, 4, 6, 7]
    assert len(errors) == 2


@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.text)
def test_a_reader_can_be_reused_and_abandoned(codec: Compression) -> None:
    line = next(x for x in golden.record_sets() if (x["case"], x["magic"], x["codec"]) == ("many", 2, codec.text))
    buf = golden.unpack(line["b64"]) or b""
    reader = ColumnReader(["offset"], max_rows=3)
    expected = [r["offset"] for r in line["records"]]
    for _ in range(3):
        next(reader.read(buf))
        assert offsets(reader, buf) == expected


def test_importing_records_loads_no_heavy_library() -> None:
    code = (
        "import sys, kwire.records, kwire.records.columns.reader as c; c.COLUMNS;"
        "heavy = {'pyarrow', 'numpy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_object_path_does_not_import_pyarrow() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = sys.modules['numpy'] = None\n"
        "from kwire.records import read_batches\n"
        "from tests import golden\n"
        "for line in golden.record_sets():\n"
        "    n = 0\n"
        "    for batch in read_batches(golden.unpack(line['b64'])):\n"
        "        batch.check(); n += len(list(batch.records()))\n"
        "    assert n == len(line['records'])\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kernel_and_object_path_find_the_same_batches() -> None:
    for line in golden.record_sets():
        buf = golden.unpack(line["b64"]) or b""
        reader = ColumnReader(["offset"])
        list(reader.read(buf))
        assert reader.consumed == sum(found.size_bytes for found in read_batches(buf))


@pytest.mark.parametrize("codec", list(Compression)[1:])
def test_a_batch_may_decompress_to_the_limit(codec: Compression) -> None:
    records = [plain(offset, b"k", b"v" * 50, 1) for offset in range(20)]
    data, size = write_batch(records, compression=codec), len(write_batch(records)) - 61
    for limit, is_read in ((size - 1, False), (size, True), (size + 1, True)):
        reader = ColumnReader(["offset"], max_decompressed_bytes=limit)
        if is_read:
            assert offsets(reader, data) == list(range(20))
        else:
            with pytest.raises(CorruptBatch, match=f"{size - 1}"):
                offsets(reader, data)


@pytest.mark.parametrize("threads", [1, 2, 256])
def test_the_largest_number_of_threads_is_accepted(threads: int) -> None:
    assert offsets(ColumnReader(["offset"], threads=threads), numbered(3)) == [0, 1, 2]
