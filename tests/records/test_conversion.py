"""Down-conversion equals Kafka's (tests/data/README.md), up-conversion loses nothing."""

from __future__ import annotations

import pickle
import zlib
from dataclasses import asdict
from typing import Any

import pytest
from tests import golden
from tests.records.building import batch, record
from tests.records.other_reader import aiokafka_rows
from tests.records.test_builder import plain

from kwire.errors import CorruptBatch, OptionError
from kwire.records import (
    AppendErrorCode,
    Compression,
    ControlRecordType,
    RejectedRecords,
    TimestampType,
    down_convert,
    read_batches,
    up_convert,
    write_batch,
    write_transaction_marker,
)
from kwire.records.convert.conversion import rewrite

NOW = 1_700_000_000_000
SAME_BYTES = {Compression.NONE, Compression.LZ4}
"""Codecs whose library writes the same bytes as that of Kafka's Java."""
if not hasattr(zlib, "ZLIBNG_VERSION") and "zlib-ng" not in zlib.ZLIB_RUNTIME_VERSION:  # some builds of Python have it
    SAME_BYTES.add(Compression.GZIP)
BATCH_FIELDS = (
    "base_offset", "last_offset", "magic", "compression", "timestamp_type", "max_timestamp", "base_timestamp",
    "producer_id", "is_transactional", "partition_leader_epoch", "count", "attributes",
)  # fmt: skip


def lines() -> list[golden.Line]:
    return [line for line in golden.cached("conversions.jsonl.gz") if line["op"] == "down-convert"]


@pytest.mark.parametrize("line", [x for x in lines() if not x.get("exception")], ids=golden.case_name)
@pytest.mark.requirement(
    "U-02", "U-10", "U-11", "U-12", "U-13", "U-14", "U-17", "R-12", "R-21", "R-22", "S31-01", "S31-16", "S31-17",
    "S31-20", "S31-21", "S31-24", "S31-28", "S31-29", "S31-35",
)  # fmt: skip
def test_down_conversion_equals_kafkas(line: golden.Line) -> None:
    source, theirs = golden.unpack(line["from_b64"]), golden.unpack(line["to_b64"])
    assert source is not None
    assert theirs is not None
    converted = down_convert(source, line["to_magic"], line["first_offset"])
    assert converted.records_converted == line["num_converted"]
    for ours, his in zip(read_batches(converted), read_batches(theirs), strict=True):
        ours.check()
        if his.compression in SAME_BYTES:
            assert ours.buffer == his.buffer
            continue
        for field in BATCH_FIELDS:
            assert getattr(ours, field) == getattr(his, field), field
        assert list(ours.records()) == list(his.records())


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy"])
def test_few_and_many_records_are_compressed_alike(codec: str, magic: int) -> None:
    """Many are converted by columns. Kafka's level makes as many records fit into the announced size as in Kafka."""
    records = [plain(i, b"k%d" % i, b"value %d " % i * 9, NOW + i) for i in range(2000)]
    data = write_batch(records, 2, codec)
    (source,) = read_batches(data)
    assert down_convert(data, magic) == rewrite(source, records, magic)
    if codec == "gzip":
        (converted,) = read_batches(down_convert(data, magic))
        again = write_batch(records, magic, codec, level=6)
        assert converted.buffer == again


@pytest.mark.parametrize("line", [x for x in lines() if x.get("exception")], ids=golden.case_name)
@pytest.mark.requirement("U-10", "U-16")
def test_down_conversion_rejects_what_kafka_rejects(line: golden.Line) -> None:
    source = golden.unpack(line["from_b64"])
    assert source is not None
    with pytest.raises(RejectedRecords) as raised:
        down_convert(source, line["to_magic"], line["first_offset"])
    assert (raised.value.code, raised.value.what) == (line["error_code"], line["message"])


@pytest.mark.requirement("U-10")
def test_lost_fields_are_counted() -> None:
    producer: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    data = (
        write_batch([plain(0, b"k", b"v", 5, [("h", b"x")]), plain(1, b"k", b"v", 6)], 2, "none", 0, **producer)
        + write_batch([plain(2, b"k", b"v", -1)], 2, "none", 2, partition_leader_epoch=4)
        + write_transaction_marker(
            ControlRecordType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=7, base_offset=3
        )
        + batch(b"", count=0, base_offset=4, last_offset_delta=0)
    )
    lost = asdict(down_convert(data, 0, 1).lost)
    assert lost == {
        "records_with_headers": 0,  # the one that had them lies below the offset asked for
        "control_batches": 1,
        "batches_with_producer": 1,
        "batches_with_leader_epoch": 1,
        "empty_batches": 1,
        "records_below_first_offset": 1,
        "records_with_timestamp": 1,
    }
    assert down_convert(data, 1).lost.records_with_headers == 1
    assert down_convert(data, 1).lost.records_with_timestamp == 0
    assert not any(asdict(down_convert(data, 2).lost).values())
    assert down_convert(data, 2) == data


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize(("source", "target"), [(0, 1), (0, 2), (1, 2)])
@pytest.mark.requirement("U-20", "S31-15")
def test_up_conversion_keeps_records_offsets_and_codec(codec: str, source: int, target: int) -> None:
    records = [
        plain(offset, b"k%d" % offset, None if offset % 3 else b"v" * offset, NOW + offset) for offset in (7, 8, 20, 31)
    ]
    old = write_batch(records, source, codec, 7, keep_offsets=True)
    converted = up_convert(old, target)
    assert converted.records_converted == 4
    batches = list(read_batches(converted))
    for one in batches:
        one.check()
        assert one.magic == target
        assert one.compression.text == codec
        assert one.timestamp_type == TimestampType.CREATE_TIME
        assert (one.producer_id, one.base_sequence, one.partition_leader_epoch) == (-1, -1, -1)
    read = [(r.offset, r.timestamp, r.key, r.value, r.headers) for one in batches for r in one.records()]
    assert read == [(r.offset, r.timestamp if source else -1, r.key, r.value, []) for r in records]
    assert aiokafka_rows(converted) == read
    assert len(batches) == (1 if codec != "none" or target == 2 else 4)


@pytest.mark.requirement("U-11")
def test_batches_already_in_range_are_not_converted() -> None:
    for magic in (0, 1, 2):
        data = write_batch([plain(0, b"k", b"v", 5)], magic, "lz4")
        for target in range(magic + 1):
            assert up_convert(data, target) == data
        for target in range(magic, 3):
            assert down_convert(data, target) == data


def up_conversions() -> list[golden.Line]:
    """Batches of an older magic that Kafka's validator converted, with the result, in the same codec."""
    return [
        line
        for line in golden.cached("conversions.jsonl.gz")
        if line["op"] == "validate"
        and line.get("to_b64")
        and line["timestamp_type"] == "CreateTime"
        and line["source_codec"] == line["target_codec"]
        and max((batch["magic"] for batch in line.get("from_batches", ())), default=2) < line["to_magic"]
    ]


@pytest.mark.parametrize("line", up_conversions(), ids=golden.case_name)
@pytest.mark.requirement("U-20")
def test_up_conversion_gives_the_records_of_kafkas_validator(line: golden.Line) -> None:
    source, theirs = golden.unpack(line["from_b64"]), golden.unpack(line["to_b64"])
    assert source is not None
    assert theirs is not None
    converted = up_convert(source, line["to_magic"])
    assert converted.records_converted == line["num_converted"]

    def rows(data: bytes) -> list[tuple[Any, ...]]:
        """A validator numbers the records anew, from 0 here; conversion keeps the offsets."""
        found = [(one, record) for one in read_batches(data) for record in one.records()]
        return [
            (n, one.magic, one.compression, r.timestamp, r.timestamp_type, r.key, r.value, r.headers)
            for n, (one, r) in enumerate(found)
        ]

    assert rows(converted) == rows(theirs)
    assert [r.offset for one in read_batches(converted) for r in one.records()] == [
        r["offset"] for r in line["from_records"]
    ]


def test_up_and_down_conversion_round_trips() -> None:
    """Of the messages that Kafka wrote, so that the bytes are its own."""
    seen = 0
    for line in golden.record_sets():
        messages = golden.unpack(line["b64"])
        assert messages is not None
        if (
            line["magic"] == 1
            and line["codec"] == "none"
            and {b["timestampType"] for b in line["batches"]} == {"CreateTime"}
        ):
            assert down_convert(up_convert(messages, 2), 1) == messages, line["case"]
            seen += 1
    assert seen > 3


@pytest.mark.requirement("U-20", "R-24", "R-35")
def test_messages_are_merged_only_into_a_batch_that_can_represent_them() -> None:
    def message(offset: int, time: int, append_time: bool = False, codec: str = "none", magic: int = 1) -> bytes:
        kind = TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME
        return write_batch(
            [plain(offset, b"k", b"v", time)],
            magic,
            codec,
            offset,
            timestamp_type=kind,
            log_append_time_ms=time if append_time else -1,
            keep_offsets=True,
        )

    def ranges(*messages: bytes, **limits: int) -> list[tuple[int, int]]:
        return [(b.base_offset, b.last_offset) for b in read_batches(up_convert(b"".join(messages), 2, **limits))]

    assert ranges(message(0, 5), message(1, 9)) == [(0, 1)]
    assert ranges(message(0, 5), message(1, 5, append_time=True)) == [(0, 0), (1, 1)]
    assert ranges(message(0, 5, True), message(1, 5, True), message(2, 6, True)) == [(0, 1), (2, 2)]
    assert ranges(message(0, 5), message(1, 5, codec="gzip"), message(2, 5)) == [(0, 0), (1, 1), (2, 2)]
    assert ranges(message(0, 5), message(1, 5, magic=0), message(2, 5)) == [(0, 0), (1, 1), (2, 2)]
    assert ranges(message(0, 5), message(2**31, 5), message(2**31 + 1, 5)) == [(0, 0), (2**31, 2**31 + 1)]
    assert ranges(message(9, 5), message(3, 5)) == [(9, 9), (3, 3)]
    assert ranges(*[message(i, 5) for i in range(10)], max_batch_bytes=140) == [(0, 4), (5, 9)]
    up = up_convert(message(0, 5, True) + message(1, 5, True), 2)
    assert [r.timestamp for b in read_batches(up) for r in b.records()] == [5, 5]


def test_an_invalid_batch_is_corrupt_not_an_encode_error() -> None:
    backwards = batch(record(1) + record(0), count=2, last_offset_delta=1)
    with pytest.raises(CorruptBatch, match="is not above the previous one"):
        down_convert(backwards, 1)
    early = batch(record(0, -2000), count=1)
    with pytest.raises(CorruptBatch, match="timestamp -1000"):
        down_convert(early, 1)


def test_an_unknown_magic_is_rejected() -> None:
    for convert in (up_convert, down_convert):
        with pytest.raises(OptionError, match="to_magic 3"):
            convert(b"", 3)


@pytest.mark.requirement("R-02")
def test_a_truncated_last_batch_is_dropped() -> None:
    data = write_batch([plain(0, b"k", b"v", 5)])
    for cut in (1, 20, 60, len(data) - 1):
        assert down_convert(data + data[:cut], 1).records_converted == 1
        assert up_convert(data + data[:cut], 2) == data


def test_the_error_code_gives_the_reason() -> None:
    assert AppendErrorCode.UNSUPPORTED_COMPRESSION_TYPE == 76


def test_counts_of_lost_fields_pickle() -> None:
    """Spark sends results between processes."""
    converted = down_convert(write_batch([plain(0, None, b"v", 5, [("h", b"")])]), 0)
    again = pickle.loads(pickle.dumps(converted))
    assert again == converted
    assert again.lost == converted.lost
    assert (again.lost.records_with_headers, again.records_converted) == (1, 1)
