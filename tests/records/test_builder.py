"""Batch builders: Kafka's bytes, limits, rejected values."""

from __future__ import annotations

import itertools
import mmap
from array import array
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import golden
from tests.records.building import batch
from tests.records.other_reader import aiokafka_rows

from kwire import native
from kwire.errors import EncodeError, OptionError
from kwire.records import (
    Batch,
    BatchBuilder,
    Compression,
    Record,
    TimestampType,
    read_batches,
    write_batch,
    write_batches,
)
from kwire.records.attributes import LOG_APPEND_TIME_FLAG
from kwire.records.format.batch_header import DEFAULT_HEADER
from kwire.records.format.default_writer import KNOWN_VARINTS, BatchFields, append_record, write_empty_batch

NOW = 1_700_000_000_000


def plain(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    timestamp: int = -1,
    headers: list[tuple[str, bytes | None]] | None = None,
) -> Record:
    return Record(
        offset=offset,
        timestamp=timestamp,
        timestamp_type=TimestampType.CREATE_TIME,
        key=key,
        value=value,
        headers=headers or [],
    )


WORKED = [  # docs/spec/records.md 2.2 and 3.3
    (0, [plain(0, b"k", b"v")], 0, "0000000000000000 00000010 1fecd70a 00 00 00000001 6b 00000001 76"),
    (
        1,
        [plain(0, b"k", b"v", 1)],
        0,
        "0000000000000000 00000018 cf056e6e 01 00 0000000000000001 00000001 6b 00000001 76",
    ),
    (
        1,
        [plain(5, None, b"v", 1000)],
        5,
        "0000000000000005 00000017 09b66caa 01 00 00000000000003e8 ffffffff 00000001 76",
    ),
    (
        2,
        [plain(0, b"k", b"v", 1000), plain(1, None, None, 1005, [("h", b"x"), ("n", None)])],
        0,
        "0000000000000000 00000048 ffffffff 02 b45370ad 0000 00000001 00000000000003e8 00000000000003ed "
        "ffffffffffffffff ffff ffffffff 00000002 1000000002 6b02 7600 1a000a0201010402680278026e01",
    ),
]


@pytest.mark.parametrize(("magic", "records", "base_offset", "encoded"), WORKED)
@pytest.mark.requirement("R-10", "R-13", "R-30", "R-33", "R-35")
def test_worked_examples_byte_for_byte(magic: int, records: list[Record], base_offset: int, encoded: str) -> None:
    assert write_batch(records, magic, "none", base_offset) == bytes.fromhex(encoded)


NOT_BY_KAFKA = {  # accepted by its reader all the same
    "v0-wrapper-inner-from-zero",
    "v2-record-attributes-set",
    "v2-unknown-high-attribute-bits",
    "v2-overlong-varints",
}


def own_records(source: Batch) -> list[Record]:
    """Return the records with their own timestamps, which an append time overrides in magic 2."""
    if source.magic < 2:
        return list(source.records())
    open_times = bytearray(source.buffer)
    open_times[22] &= ~LOG_APPEND_TIME_FLAG
    return list(next(read_batches(open_times)).records())


def rewritten(source: Batch) -> bytes:
    """Write a batch again from its decoded fields."""
    append_time = source.timestamp_type == TimestampType.LOG_APPEND_TIME
    common: dict[str, Any] = {
        "timestamp_type": source.timestamp_type,
        "log_append_time_ms": source.max_timestamp if append_time else -1,
    }
    records = own_records(source)
    if source.magic < 2:
        return write_batch(records, source.magic, source.compression, records[0].offset, keep_offsets=True, **common)
    producer: dict[str, Any] = {
        "producer_id": source.producer_id,
        "producer_epoch": source.producer_epoch,
        "base_sequence": source.base_sequence,
        "is_transactional": source.is_transactional,
        "is_control": source.is_control,
        "partition_leader_epoch": source.partition_leader_epoch,
    }
    if not records:
        fields = BatchFields(timestamp_type=source.timestamp_type, **producer)
        return write_empty_batch(
            fields, base_offset=source.base_offset, last_offset=source.last_offset, max_timestamp=source.max_timestamp
        )
    return write_batch(
        records,
        2,
        source.compression,
        source.base_offset,
        delete_horizon_ms=source.delete_horizon_ms,
        keep_offsets=True,
        last_offset=source.last_offset,
        **common,
        **producer,
    )


def batches_by_kafka() -> list[tuple[str, Batch]]:
    """Return every batch that Kafka's builder wrote to the golden files."""
    found = []
    for line in golden.record_sets():
        if line["case"].startswith(("foreign", "flushed")) or line["case"] in NOT_BY_KAFKA:
            continue
        buf = golden.unpack(line["b64"])
        assert buf is not None
        found += [(f"{line['case']}-{i}", b) for i, b in enumerate(read_batches(buf))]
    return found


@pytest.mark.sampled(120)
@pytest.mark.parametrize(("name", "source"), [pytest.param(n, b, id=n) for n, b in batches_by_kafka()])
@pytest.mark.requirement(
    "R-12", "R-13", "R-20", "R-21", "R-22", "R-30", "R-31", "R-33", "R-35", "R-37", "R-38", "X-27", "S31-01",
    "S31-10", "S31-11",
)  # fmt: skip
def test_kafkas_batches_round_trip_byte_for_byte(name: str, source: Batch) -> None:
    data = rewritten(source)
    if source.compression == Compression.NONE:
        assert data == source.buffer
        return
    (ours,) = read_batches(data)
    ours.check()
    assert list(ours.records()) == list(source.records())
    same = ("base_offset", "last_offset", "max_timestamp", "timestamp_type", "attributes", "producer_id", "count")
    for field in same:
        assert getattr(ours, field) == getattr(source, field), field


def test_no_records_give_no_bytes() -> None:
    assert write_batch([]) == b""
    assert list(write_batches([])) == []


@pytest.mark.requirement("R-34")
@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"is_transactional": True}, "producer_id"),
        ({"producer_id": 1, "base_sequence": 0}, "producer_epoch"),
        ({"producer_id": 1, "producer_epoch": 0}, "base_sequence"),
        ({"producer_id": -2}, "producer_id"),
        ({"producer_id": 2**63}, "producer_id"),
        ({"producer_epoch": 2**15}, "producer_epoch"),
        ({"base_sequence": 2**31}, "base_sequence"),
        ({"partition_leader_epoch": 2**31}, "partition_leader_epoch"),
        ({"base_offset": -1}, "base_offset"),
        ({"base_offset": 2**63}, "base_offset"),
        ({"timestamp_type": TimestampType.NO_TIMESTAMP_TYPE}, "timestamp_type is missing"),
        ({"magic": 1, "is_transactional": True}, "transactional"),
        ({"magic": 0, "is_control": True}, "control"),
        ({"magic": 1, "compression": "zstd"}, "zstd"),
        ({"magic": 1, "delete_horizon_ms": 5}, "horizon"),
        ({"delete_horizon_ms": 2**63}, "delete_horizon_ms"),
    ],
)
def test_invalid_batch_settings_are_rejected(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(EncodeError, match=what):
        BatchBuilder(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"magic": 3},
        {"compression": "brotli"},
        {"compression": "lz4", "level": 18},
        {"compression": "gzip", "level": 0},
        {"compression": "zstd", "level": 23},
        {"compression": "snappy", "level": 1},
    ],
)
@pytest.mark.requirement("C-01", "C-06", "C-07")
def test_unknown_formats_codecs_and_levels_are_reported(settings: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=f"{next(iter(settings))}|level"):
        BatchBuilder(**settings)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("timestamp", [-2, -(2**63), 2**63])
@pytest.mark.requirement("R-13", "R-33")
def test_timestamps_out_of_range_are_rejected(magic: int, timestamp: int) -> None:
    with pytest.raises(EncodeError, match="timestamp"):
        BatchBuilder(magic=magic).append(b"k", b"v", timestamp=timestamp)


@pytest.mark.requirement("R-33")
def test_offsets_must_increase_and_fit_their_fields() -> None:
    builder = BatchBuilder(base_offset=2**63 - 2)
    assert builder.append(None, b"a")
    assert builder.append(None, b"b")
    with pytest.raises(EncodeError, match="above"):
        builder.append(None, b"c")
    far = BatchBuilder(base_offset=10)
    far.append(None, b"a", offset=12)
    for offset, what in ((12, "is not above"), (9, "is not above"), (10 + 2**31, "offset delta")):
        with pytest.raises(EncodeError, match=what):
            far.append(None, b"b", offset=offset)
    assert far.append(None, b"b", offset=10 + 2**31 - 1)
    (built,) = read_batches(far.build())
    assert [r.offset for r in built.records()] == [12, 10 + 2**31 - 1]  # the refused ones left no trace


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_key_above_two_gib_is_rejected_before_any_copy(magic: int) -> None:
    with mmap.mmap(-1, 2**31 + 10) as huge:  # pages that nobody touches cost nothing
        key = memoryview(huge)
        try:
            with pytest.raises(EncodeError, match="exceeds the maximum of"):
                BatchBuilder(magic=magic).append(key, b"v")
            if magic == 2:
                with pytest.raises(EncodeError, match="header"):
                    BatchBuilder().append(b"k", b"v", headers=[("h", key)])  # type: ignore[list-item]
        finally:
            key.release()


@pytest.mark.requirement("R-33")
def test_header_keys_must_be_text() -> None:
    for key in (None, b"bytes", "\ud800"):
        with pytest.raises(EncodeError, match="header key"):
            BatchBuilder().append(b"k", b"v", headers=[(key, b"x")])  # type: ignore[list-item]


@pytest.mark.requirement("R-12", "U-10")
@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_have_no_headers(magic: int) -> None:
    with pytest.raises(EncodeError, match=f"Magic v{magic} does not support record headers"):
        write_batch([plain(0, b"k", b"v", 1, [("h", b"x")])], magic)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("batch_size", [1, 100, 400, 16384])
def test_a_stream_is_split_at_the_batch_size(magic: int, batch_size: int) -> None:
    records = [plain(0, b"k%d" % i, b"v" * (i % 300), NOW) for i in range(200)]
    batches = list(write_batches(records, batch_size=batch_size, magic=magic, base_offset=1000))
    for piece in batches:
        assert len(piece) <= batch_size or len(list(next(iter(read_batches(piece))).records())) == 1
    read = [r for piece in batches for b in read_batches(piece) for r in b.records()]
    assert [(r.offset, r.key, r.value) for r in read] == [(1000 + i, r.key, r.value) for i, r in enumerate(records)]
    for one, two in itertools.pairwise(batches):
        assert len(one) + len(two) > batch_size  # no batch is shorter than it has to be


def test_sequence_numbers_continue_through_a_stream_and_wrap() -> None:
    records = [plain(0, None, b"v" * 50) for _ in range(40)]
    data = b"".join(write_batches(records, batch_size=500, producer_id=1, producer_epoch=0, base_sequence=2**31 - 10))
    sequences = [r.sequence for b in read_batches(data) for r in b.records()]
    assert sequences == [(2**31 - 10 + i) % 2**31 for i in range(40)]


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd", "snappy"])
def test_compressed_batches_approach_the_batch_size(codec: str) -> None:
    records = [plain(0, None, b"the same words again and again " * 5, NOW) for _ in range(20_000)]
    sizes = [len(piece) for piece in write_batches(records, batch_size=4096, compression=codec)]
    assert sizes[0] < 2048  # nothing is known yet
    assert max(sizes) > 1.5 * sizes[0]
    assert max(sizes) < 2 * 4096


def test_a_builder_can_be_reused_after_building() -> None:
    builder = BatchBuilder()
    builder.append(b"a", b"1")
    first = builder.build()
    builder.append(b"b", b"2")
    assert [len(list(next(read_batches(data)).records())) for data in (first, builder.build())] == [1, 2]


def test_a_full_builder_rejects_a_record_and_is_unchanged() -> None:
    builder = BatchBuilder(max_bytes=200)
    assert builder.append(None, bytes(1000))  # one record is always taken
    assert not builder.append(None, b"x")
    assert builder.count == 1
    assert builder.next_offset == 1
    assert builder.estimated_bytes == len(builder.build())


@pytest.mark.requirement("A-26")
def test_the_largest_timestamp_and_its_offset_are_returned() -> None:
    def of(times: list[int], **settings: Any) -> tuple[int, int]:
        builder = BatchBuilder(base_offset=100, **settings)
        for time in times:
            builder.append(None, b"v", timestamp=time)
        return builder.largest_timestamp

    append_time = {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time_ms": 77}
    assert of([5, 9, 9, 1]) == (9, 103)
    assert of([5, 9, 9, 1], magic=1) == (9, 101)
    assert of([5, 9, 9, 1], magic=1, compression="lz4") == (9, 103)
    assert of([5, 9], magic=0) == (-1, -1)
    assert of([-1, -1]) == (-1, -1)
    assert of([5, 9], **append_time) == (77, 101)
    assert of([5, 9], magic=1, **append_time) == (77, 100)


fields = st.one_of(st.none(), st.binary(max_size=200))
times = st.one_of(st.just(-1), st.integers(0, 2**63 - 1))
header_lists = st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), fields), max_size=4)


@given(
    rows=st.lists(st.tuples(fields, fields, times, header_lists, st.integers(1, 2**20)), min_size=1, max_size=20),
    codec=st.sampled_from(list(Compression)),
    base_offset=st.integers(0, 2**63 - 2**26),
)
@settings(max_examples=80, deadline=None)
def test_written_records_are_read_back(rows: list[Any], codec: Compression, base_offset: int) -> None:
    records, offset = [], base_offset
    for key, value, time, headers, gap in rows:
        records.append(plain(offset, key, value, time, headers))
        offset += gap
    data = write_batch(records, 2, codec, base_offset, keep_offsets=True)
    assert aiokafka_rows(data) == [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records]
    (built,) = read_batches(data)
    built.check()
    assert list(built.records()) == records


@pytest.mark.requirement("R-30")
def test_the_delta_of_timestamps_wraps_at_64_bits_as_javas_does() -> None:
    """The second record's delta is 2^63, which a Java long holds as -2^63: ten bytes, of which all bits are set."""
    records = [plain(0, None, None, -1), plain(1, None, None, 2**63 - 1)]
    data = write_batch(records)
    first, second = "0c 00 00 00 01 01 00", "1e 00 ffffffffffffffffff01 02 01 01 00"
    assert data[DEFAULT_HEADER.size :].hex() == (first + second).replace(" ", "")
    assert data[27:43].hex() == "ffffffffffffffff7fffffffffffffff"  # base and largest timestamp
    assert [row[1] for row in aiokafka_rows(data)] == [-1, 2**63 - 1]
    (built,) = read_batches(data)
    assert list(built.records()) == records


@pytest.mark.requirement("R-33")
def test_null_headers_are_rejected() -> None:
    with pytest.raises(EncodeError, match="headers is None"):
        BatchBuilder().append(None, b"v", headers=None)  # type: ignore[arg-type]


def test_a_hand_written_batch_equals_the_builders() -> None:
    assert write_batch([plain(0, b"k", b"v", 1000)]) == batch()


@pytest.mark.requirement("R-39")
def test_the_overhead_of_a_record_is_at_most_21_bytes() -> None:
    builder = BatchBuilder(base_offset=0, delete_horizon_ms=0)
    builder.append(b"", b"", timestamp=2**63 - 1, offset=2**31 - 1)
    section = builder.build()[DEFAULT_HEADER.size :]
    lengths = 3  # of key, value and headers, a byte each here
    assert len(section) - lengths == 1 + 1 + 10 + 5  # length (5 in a record of 128 MiB), attributes, two deltas


ODD: list[dict[str, Any]] = [
    {"value": bytearray(b"abc")},
    {"key": memoryview(b"abc")},
    {"headers": (("a", b"1"), ("ä", None))},
    {"headers": [("a", bytearray(b"1"))]},
    {"headers": [["a", b"1"]]},
    {"headers": {}},
    {"headers": [(str(i), b"") for i in range(40)]},
    {"timestamp": 2**63 - 1},
    {"value": b"x" * 70_000},
    {"headers": [("\ud800", b"1")]},
    {"headers": [(b"a", b"1")]},
    {"headers": [("a",)]},
    {"headers": None},
    {"headers": [("a", "text")]},
    {"value": "text"},
    {"timestamp": -2},
    {"timestamp": 2**63},
    {"timestamp": "now"},
    {"offset": 3},
    {"offset": 2**40},
    {"offset": 2**63 - 1},
    {"offset": 2**63},
]


def appended(fields: dict[str, Any], *, compiled: bool, **settings: Any) -> tuple[list[Any], bytes, Any]:
    """Return what appending records with unusual fields between usual ones gives: results or errors, bytes, largest."""
    builder = BatchBuilder(**settings)
    builder._is_compiled = compiled
    results: list[Any] = []
    for given_fields in ({}, fields, {}, fields):
        each: dict[str, Any] = {"key": b"k", "value": b"v", "timestamp": NOW, "headers": [("h", b"1")]} | given_fields
        try:
            results.append(builder.append(each.pop("key"), each.pop("value"), **each))
        except Exception as error:
            results.append((type(error), str(error)))
    largest = builder.largest_timestamp, builder.next_offset, builder.count, builder.estimated_bytes
    return results, builder.build(), largest


@pytest.mark.parametrize("max_bytes", [None, 90, 150])
@pytest.mark.parametrize("base_offset", [0, 2**62, 2**63 - 3])
@pytest.mark.parametrize("fields", ODD, ids=[f"{i}-{name}" for i, each in enumerate(ODD) for name in each])
def test_compiled_code_appends_as_python_does(fields: dict[str, Any], base_offset: int, max_bytes: int | None) -> None:
    settings: dict[str, Any] = {"base_offset": base_offset, "max_bytes": max_bytes, "compression": "gzip"}
    for each in (settings, settings | {"compression": "none", "delete_horizon_ms": 5}):
        assert appended(fields, compiled=True, **each) == appended(fields, compiled=False, **each)


class Appending:
    """A number that appends to a batch when it is converted."""

    def __init__(self, builder: BatchBuilder, number: int) -> None:
        self.builder, self.number = builder, number

    def __index__(self) -> int:
        self.builder.append(b"from", b"__index__", timestamp=NOW)
        return self.number

    def __bool__(self) -> bool:
        return bool(self.__index__())


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_value_that_appends_to_its_own_batch_does_not_damage_it(compiled: bool, magic: int) -> None:
    """The second record once overwrote the first, and the batch could not be read."""
    builder = BatchBuilder(magic=magic)
    builder._is_compiled = compiled and magic == 2
    number, offset, no = (Appending(builder, value) for value in (NOW + 1, 500, 0))
    assert builder.append(b"k", b"v", timestamp=number)  # type: ignore[arg-type]
    assert builder.append(b"k", b"w", timestamp=number, offset=offset)  # type: ignore[arg-type]
    assert builder.extend([plain(0, b"k", b"x", number)] * 2, keep_offsets=no) == 2  # type: ignore[arg-type]

    records = [record for each in read_batches(builder.build()) for record in each.records()]
    assert len(records) == builder.count
    assert [record.value for record in records if record.key == b"k"] == [b"v", b"w", b"x", b"x"]
    assert [record.offset for record in records] == sorted({record.offset for record in records})


@pytest.mark.parametrize("compiled", [True, False])
def test_headers_that_append_to_their_own_batch_are_refused(compiled: bool) -> None:
    builder = BatchBuilder()
    builder._is_compiled = compiled

    def headers() -> Iterator[tuple[str, bytes]]:
        yield "h", b""
        builder.append(b"from", b"headers")

    with pytest.raises(EncodeError, match="the batch was appended to while a record was converted"):
        builder.append(b"k", b"v", headers=headers())  # type: ignore[arg-type]
    assert builder.append(b"k", b"last")
    records = [record for each in read_batches(builder.build()) for record in each.records()]
    assert [(record.offset, record.value) for record in records] == [(0, b"headers"), (1, b"last")]


@pytest.mark.parametrize("ratio", [0.0, 1e-300, 1e18, 1e300, -1.0])
def test_any_compression_ratio_estimates_as_python_does(ratio: float) -> None:
    def full(compiled: bool) -> list[bool]:
        builder = BatchBuilder(compression="gzip", compression_ratio=ratio, max_bytes=2**63 - 1)
        builder._is_compiled = compiled
        return [builder.append(b"k" * 50, b"v") for _ in range(4)]

    assert full(compiled=True) == full(compiled=False)


def test_headers_may_be_an_iterator() -> None:
    builder = BatchBuilder()
    assert builder.append(b"k", b"v", headers=iter([("a", b"1")]))
    assert [r.headers for each in read_batches(builder.build()) for r in each.records()] == [[("a", b"1")]]


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("batch_size", [1, 100, 300, 16384])
def test_a_list_and_a_stream_of_records_give_the_same_batches(codec: str, batch_size: int) -> None:
    records: list[Any] = [
        plain(i, b"k" if i % 3 else None, b"v" * (i * 7 % 90), NOW + i * 5 % 11, [("h", b"1")] * (i % 4))
        for i in range(200)
    ]
    records[50] = plain(50, b"k", bytearray(b"odd"), NOW)  # type: ignore[arg-type]
    settings: dict[str, Any] = {"compression": codec, "batch_size": batch_size, "base_offset": 7, "base_sequence": 3}
    settings |= {"producer_id": 1, "producer_epoch": 0}
    whole = list(write_batches(records, **settings))
    assert whole == list(write_batches(iter(records), **settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "LEVEL", None)
        assert whole == list(write_batches(records, **settings))
    assert [r.offset for data in whole for each in read_batches(data) for r in each.records()] == [*range(7, 207)]


def test_a_stream_is_not_read_ahead() -> None:
    """A batch is returned as soon as the first record that does not fit is there."""
    taken = itertools.count()

    def endless() -> Any:
        while True:
            yield plain(next(taken), b"k", b"v" * 50)

    assert next(write_batches(endless(), batch_size=200))
    assert next(taken) < 5


def test_a_record_at_odds_with_its_place_is_named() -> None:
    records = [plain(5, b"k", b"v"), plain(4, b"k", b"v")]
    with pytest.raises(EncodeError, match="offset 4 is not above the previous one, 5"):
        write_batch(records, keep_offsets=True)
    with pytest.raises(EncodeError, match="offset -1 is negative"):
        write_batch([plain(-1, b"k", b"v")], keep_offsets=True)


@pytest.mark.parametrize("number", [KNOWN_VARINTS - 1, KNOWN_VARINTS, KNOWN_VARINTS + 1])
def test_numbers_after_the_known_ones_are_encoded(number: int) -> None:
    """The tables of varints end there."""
    out = bytearray()
    append_record(out, number, number, bytes(number), bytes(number))
    data = bytearray(batch(bytes(out), base_timestamp=0, max_timestamp=number, last_offset_delta=number))
    (record,) = next(read_batches(bytes(data))).records()
    assert (record.offset, record.timestamp, record.key, record.value) == (number, number, bytes(number), bytes(number))


@pytest.mark.parametrize("delta", [-1, 0, 2**31 - 1, 2**31])
def test_offset_deltas_are_from_0_to_the_largest_int32(delta: int) -> None:
    out = bytearray()
    if 0 <= delta < 2**31:
        append_record(out, delta, 0, None, None)
        assert next(read_batches(batch(bytes(out), last_offset_delta=delta))).last_offset == delta
    else:
        with pytest.raises(EncodeError, match="offset delta"):
            append_record(out, delta, 0, None, None)
        assert not out


@pytest.mark.parametrize(("name", "largest"), [("producer_epoch", 2**15 - 1), ("base_sequence", 2**31 - 1)])
def test_fields_of_producers_include_their_bounds(name: str, largest: int) -> None:
    fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    for value in (largest, 0):
        (written,) = read_batches(write_batch([plain(0, b"k", b"v", 1)], **fields | {name: value}))
        assert getattr(written, name) == value
    with pytest.raises(EncodeError, match=name):
        write_batch([plain(0, b"k", b"v", 1)], **fields | {name: largest + 1})


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"key": "text"}, "key: expected bytes or None, got str"),
    ({"value": [1]}, "value: expected bytes or None, got list"),
    ({"value": array("I", [1, 2])}, "value: expected bytes or None, got array"),
    ({"timestamp": 1.5}, "timestamp: expected an integer, got 1.5"),
    ({"timestamp": None}, "timestamp: expected an integer, got None"),
    ({"offset": "1"}, "offset: expected an integer, got '1'"),
    ({"offset": -1}, "offset -1 is negative"),
    ({"headers": 5}, "headers: expected pairs of key and value, got 5"),
    ({"headers": "ab"}, "headers: expected pairs of key and value, got 'ab'"),
    ({"headers": {"a": b"b"}}, r"headers\[0\]: expected a pair of key and value, got 'a'"),
    ({"headers": ["ab"]}, r"headers\[0\]: expected a pair of key and value, got 'ab'"),
    ({"headers": [("a", b"b"), ("a", b"b", 1)]}, r"headers\[1\]: expected a pair of key and value"),
    ({"headers": [("a", "b")]}, r"headers\[0\]\.value: expected bytes or None, got str"),
    ({"headers": [(b"a", b"b")]}, "header key b'a' is not a str"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_a_value_of_another_type_is_an_error_with_its_field(
    wrong: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TypeError and ValueError came from inside, and arrays of integers made batches that cannot be read."""
    fields: dict[str, Any] = {"key": b"k", "value": b"v", "timestamp": 1, "headers": [], "offset": 0, **wrong}
    one = Record(timestamp_type=TimestampType.CREATE_TIME, **fields)
    keeps = "offset" in wrong
    for compiled in (True, False):
        builder = BatchBuilder()
        builder._is_compiled = builder._is_compiled and compiled
        with pytest.raises(EncodeError, match=message):
            builder.append(fields.pop("key"), fields.pop("value"), **fields)
        fields |= {"key": one.key, "value": one.value}
        assert builder.count == 0
    with pytest.raises(EncodeError, match=message):
        write_batch([one], keep_offsets=keeps)
    if not keeps:
        with pytest.raises(EncodeError, match=message):
            list(write_batches([one]))
    if "headers" not in wrong:
        with pytest.raises(EncodeError, match=message):
            write_batch([one], magic=1, keep_offsets=keeps)


def test_views_of_other_items_than_bytes_are_written_as_their_bytes() -> None:
    """Their length is not their size: the batch could not be read."""
    numbers, every_second = memoryview(array("I", [1, 2])), memoryview(b"abcdef")[::2]
    builder = BatchBuilder()
    builder.append(numbers, every_second, headers=[("h", numbers)])
    (batch,) = read_batches(builder.build())
    (found,) = batch.records()
    assert (found.key, found.value, found.headers) == (bytes(numbers), b"ace", [("h", bytes(numbers))])
