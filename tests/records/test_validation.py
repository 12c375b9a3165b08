"""The broker's append path, compared with Kafka's LogValidator on the same bytes (tests/data/README.md)."""

from __future__ import annotations

import contextlib
import gzip
import pickle
import random
from typing import Any

import pytest
from tests import golden
from tests.fuzz import record_writing
from tests.records.building import batch, message, record
from tests.records.test_builder import plain

from kwire.errors import BrokerError, OptionError
from kwire.records import (
    AppendErrorCode,
    AppendOrigin,
    Batch,
    Compression,
    RejectedRecords,
    TimestampType,
    ValidatedRecords,
    read_batches,
    up_convert,
    validate_and_assign_offsets,
    write_batch,
)
from kwire.records.format.batch_header import DEFAULT_HEADER
from kwire.records.format.legacy_batch import LegacyBatch

NOW = 1_700_000_000_000
BATCH_FIELDS = (
    "base_offset", "last_offset", "magic", "compression", "timestamp_type", "max_timestamp", "base_timestamp",
    "producer_id", "producer_epoch", "base_sequence", "last_sequence", "is_transactional", "is_control",
    "partition_leader_epoch", "count", "attributes", "delete_horizon_ms",
)  # fmt: skip


def lines() -> list[golden.Line]:
    """Return every run of Kafka's validator in the golden files."""
    files = ("conversions.jsonl.gz", "invalid.jsonl.gz")
    return [line for name in files for line in golden.cached(name) if line["op"] == "validate"]


def run(line: golden.Line, **changes: Any) -> ValidatedRecords:
    """Run the same validation with kwire."""
    buf = golden.unpack(line["from_b64"])
    assert buf is not None
    settings: dict[str, Any] = {
        "now_ms": line["now_ms"],
        "to_magic": line["to_magic"],
        "compression_type": line["target_codec"],
        "message_timestamp_type": line["timestamp_type"],
        "message_timestamp_before_max_ms": line["before_max_ms"],
        "message_timestamp_after_max_ms": line["after_max_ms"],
        "compacted": line["compacted"],
        "leader_epoch": line["leader_epoch"],
        "origin": AppendOrigin(line["origin"]),
        "topic_partition": "t-0",
        "zstd_allowed": "inter-broker-protocol-2.0" not in line["case"],
        # Kafka's validator leaves the checksum of a wrapper to the step before it; both lines have it wrong
        "check_crc": "wrapper-outer-bad-crc" not in line["case"],
    }
    return validate_and_assign_offsets(buf, line["first_offset"], **(settings | changes))


def inner_bytes(batch: Batch) -> bytes:
    """Return the decompressed records."""
    if isinstance(batch, LegacyBatch):
        return bytes(batch.inner_payload())
    return bytes(batch.decompress(batch.buffer[DEFAULT_HEADER.size :]))


@pytest.mark.parametrize("line", [x for x in lines() if not x.get("exception")], ids=golden.case_name)
@pytest.mark.requirement(
    "A-13", "A-14", "A-16", "A-17", "A-20", "A-21", "A-22", "A-23", "A-24", "A-25", "A-26", "R-20", "R-21", "R-22",
    "R-24", "R-35", "R-36", "R-37", "U-20", "U-21",
    "S31-03", "S31-04", "S31-08", "S31-09", "S31-19", "S31-26", "S31-27",
)  # fmt: skip
def test_appended_records_equal_kafkas(line: golden.Line) -> None:
    result = run(line)
    assert result.next_offset == line["next_offset"]
    assert result.max_timestamp_ms == line["max_timestamp_ms"]
    assert result.log_append_time_ms == line["log_append_time_ms"]
    assert result.in_place == line["in_place"]
    assert result.in_place != line["size_maybe_changed"]
    assert result.records_converted == line["num_converted"]
    theirs = golden.unpack(line["to_b64"])
    assert theirs is not None
    if line["in_place"] or line["target_codec"] in ("none", "lz4"):
        assert result.data == theirs
        return
    for ours, his in zip(read_batches(result.data), read_batches(theirs), strict=True):
        ours.check()
        for field in BATCH_FIELDS:
            assert getattr(ours, field) == getattr(his, field), field
        assert list(ours.records()) == list(his.records())
        assert inner_bytes(ours) == inner_bytes(his)  # compressed bytes differ, what was compressed does not


@pytest.mark.parametrize("line", [x for x in lines() if x.get("exception")], ids=golden.case_name)
@pytest.mark.requirement(
    "A-04", "A-06", "A-10", "A-11", "A-12", "A-13", "A-14", "A-15", "A-16", "A-17", "A-18", "R-25", "R-33", "R-34",
    "U-03", "S31-03",
)  # fmt: skip
def test_rejected_records_have_kafkas_error_code_and_record_errors(line: golden.Line) -> None:
    with pytest.raises(RejectedRecords) as raised:
        run(line)
    assert raised.value.code == line["error_code"]
    assert raised.value.record_errors == [(e["batch_index"], e["message"]) for e in line.get("record_errors", ())]
    if "record_errors" in line:
        assert raised.value.what == line["invalid_message"]


@pytest.mark.parametrize(
    "line", [x for x in lines() if x.get("metrics") and "record_errors" not in x], ids=golden.case_name
)
@pytest.mark.requirement("A-10", "A-11", "A-12")
def test_batch_errors_have_kafkas_messages(line: golden.Line) -> None:
    with pytest.raises(RejectedRecords) as raised:
        run(line)
    assert raised.value.what == line["message"]


@pytest.mark.requirement("A-04")
def test_an_unverified_wrapper_checksum_is_verified() -> None:
    line = next(x for x in lines() if x["case"] == "v1-wrapper-outer-bad-crc")
    with pytest.raises(RejectedRecords) as raised:
        run(line, check_crc=True)
    assert raised.value.code == AppendErrorCode.CORRUPT_MESSAGE


def many(n: int = 50, **settings: Any) -> bytes:
    return write_batch([plain(i, b"k", b"value %d" % i, NOW + i) for i in range(n)], **settings)


def shares_memory(part: bytes | memoryview, whole: bytes) -> bool:
    """Return whether part is a view of whole."""
    return isinstance(part, memoryview) and part.obj is whole


@pytest.mark.parametrize("time", [TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME])
@pytest.mark.parametrize(("magic", "codec"), [(m, c) for m in (0, 1, 2) for c in Compression if m == 2 or c != 4])
@pytest.mark.requirement("A-20", "A-22", "A-24", "S31-09", "S31-20", "S31-27")
def test_in_place_validation_copies_no_payload(magic: int, codec: Compression, time: TimestampType) -> None:
    buf = many(magic=magic, compression=codec)
    result = validate_and_assign_offsets(buf, 1000, now_ms=NOW, to_magic=magic, message_timestamp_type=time)
    if codec and magic == 0:  # absolute inner offsets: the one case that has to be rebuilt
        assert not result.in_place
        assert result.payload_bytes_written == result.size_bytes
        return
    assert result.in_place
    assert result.payload_bytes_written == 0
    heads = [part for part in result.parts if not shares_memory(part, buf)]
    viewed = sum(len(part) for part in result.parts if shares_memory(part, buf))
    batches = list(read_batches(buf))
    head_bytes = {0: 18, 1: 26, 2: 61}[magic]
    assert [len(head) for head in heads] == [head_bytes] * len(batches)
    assert viewed == len(buf) - head_bytes * len(batches)
    assert result.data != buf


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.requirement("A-20", "A-22")
def test_an_unchanged_batch_is_returned_as_the_same_memory(codec: Compression) -> None:
    buf = many(compression=codec)
    result = validate_and_assign_offsets(buf, 0, now_ms=NOW)
    assert len(result.parts) == 1
    assert shares_memory(result.parts[0], buf)
    assert result.data == buf


def test_the_input_is_never_modified() -> None:
    for magic in (0, 1, 2):
        buf = bytearray(many(magic=magic))
        before = bytes(buf)
        result = validate_and_assign_offsets(
            buf, 9, now_ms=NOW, to_magic=magic, message_timestamp_type=TimestampType.LOG_APPEND_TIME
        )
        assert buf == before
        assert result.data != before


@pytest.mark.requirement("R-36")
def test_the_checksum_is_recomputed_only_if_timestamps_change() -> None:
    buf = many()
    (source,) = read_batches(buf)
    (moved,) = read_batches(validate_and_assign_offsets(buf, 7, now_ms=NOW, leader_epoch=3).data)
    assert (moved.crc, moved.base_offset, moved.partition_leader_epoch) == (source.crc, 7, 3)
    append_time = {"message_timestamp_type": "LogAppendTime"}
    (timed,) = read_batches(validate_and_assign_offsets(buf, 7, now_ms=NOW + 99, **append_time).data)
    assert timed.crc != source.crc
    assert timed.is_valid
    assert timed.max_timestamp == NOW + 99
    again = validate_and_assign_offsets(timed.buffer, 7, now_ms=NOW + 99, origin=AppendOrigin.REPLICATION)
    assert next(read_batches(again.data)).timestamp_type == TimestampType.CREATE_TIME


@pytest.mark.requirement("A-22", "S31-04", "S31-07", "R-27")
def test_gaps_in_a_magic_1_set_are_closed_by_rebuilding() -> None:
    kept = [plain(offset, b"k", b"v%d" % offset, NOW) for offset in (10, 12, 17)]
    buf = write_batch(kept, 1, "lz4", 10, keep_offsets=True)
    result = validate_and_assign_offsets(buf, 500, now_ms=NOW, to_magic=1)
    assert not result.in_place
    (wrapper,) = read_batches(result.data)
    assert wrapper.last_offset == 502
    assert [(r.offset, r.value) for r in wrapper.records()] == [(500, b"v10"), (501, b"v12"), (502, b"v17")]


@pytest.mark.requirement("S31-02", "S31-08", "S31-27")
def test_the_broker_sets_the_outer_offset_to_that_of_the_last_record() -> None:
    blank = bytearray(many(5, magic=1, compression="gzip"))
    blank[:8] = bytes(8)
    result = validate_and_assign_offsets(bytes(blank), 70, now_ms=NOW, to_magic=1)
    assert result.in_place
    (wrapper,) = read_batches(result.data)
    assert wrapper.last_offset == 74
    assert [r.offset for r in wrapper.records()] == [70, 71, 72, 73, 74]


@pytest.mark.parametrize("source", [0, 1, 2])
@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.requirement("U-04", "S31-13", "S31-15", "S31-18", "S31-19", "S31-25", "S31-32")
def test_producers_can_send_either_format_and_the_log_stores_one(source: int, target: int) -> None:
    result = validate_and_assign_offsets(many(4, magic=source), 30, now_ms=NOW, to_magic=target)
    stored = list(read_batches(result.data))
    assert {b.magic for b in stored} == {target}
    assert [r.offset for b in stored for r in b.records()] == [30, 31, 32, 33]
    assert [r.value for b in stored for r in b.records()] == [b"value %d" % i for i in range(4)]


@pytest.mark.parametrize("target", list(Compression))
def test_recompression_keeps_the_record_bytes(target: Compression) -> None:
    buf = many(compression="gzip", producer_id=5, producer_epoch=1, base_sequence=9, is_transactional=True)
    (source,) = read_batches(buf)
    (stored,) = read_batches(validate_and_assign_offsets(buf, 44, now_ms=NOW, compression_type=target.text).data)
    stored.check()
    assert inner_bytes(stored) == inner_bytes(source)
    assert (stored.compression, stored.base_offset, stored.last_offset, stored.producer_id) == (target, 44, 93, 5)
    assert stored.is_transactional


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize(
    ("times", "first"), [((5, 9, 9, 3), 1), ((9, 9, 9), 0), ((1, 2, 3), 2), ((-1, -1), None), ((-1, 0), 1)]
)
@pytest.mark.requirement("A-26")
def test_the_largest_timestamp_has_the_offset_of_its_first_record(
    magic: int, times: tuple[int, ...], first: int | None
) -> None:
    """In a batch of magic 2, that of the last record of the batch."""
    records = [plain(i, b"k", b"v", time) for i, time in enumerate(times)]
    limits = {"message_timestamp_before_max_ms": 2**63 - 1, "now_ms": NOW}
    result = validate_and_assign_offsets(write_batch(records, magic=magic), 100, to_magic=magic, **limits)
    assert result.in_place
    assert result.max_timestamp_ms == max(times)
    if first is None:
        assert result.offset_of_max_timestamp == -1
    else:
        assert result.offset_of_max_timestamp == 100 + (first if magic == 1 else len(times) - 1)


def test_recompression_rewrites_non_canonical_records() -> None:
    odd = bytes.fromhex("12 00 00 00 8200 6b 02 76 00".replace(" ", ""))  # the key's length in two bytes
    buf = batch(odd)
    (stored,) = read_batches(validate_and_assign_offsets(buf, 0, now_ms=NOW, compression_type="lz4").data)
    assert inner_bytes(stored) == record()


@pytest.mark.requirement("A-16")
def test_timestamps_are_accepted_up_to_the_limits() -> None:
    limits = {"message_timestamp_before_max_ms": 10, "message_timestamp_after_max_ms": 20, "now_ms": NOW}
    near = write_batch([plain(0, b"k", b"v", t) for t in (NOW - 10, NOW + 20, -1)])
    assert validate_and_assign_offsets(near, 0, **limits).in_place
    for timestamp in (NOW - 11, NOW + 21, 0, 2**63 - 1):
        far = write_batch([plain(0, b"k", b"v", NOW), plain(1, b"k", b"v", timestamp)])
        with pytest.raises(RejectedRecords) as raised:
            validate_and_assign_offsets(far, 0, **limits)
        assert raised.value.code == AppendErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in raised.value.record_errors] == [1]


@pytest.mark.requirement("A-17")
def test_a_producer_cannot_set_log_append_time() -> None:
    buf = many(2, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=NOW)
    with pytest.raises(RejectedRecords) as raised:
        validate_and_assign_offsets(buf, 0, now_ms=NOW, message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    assert raised.value.code == AppendErrorCode.INVALID_TIMESTAMP
    shown = f"DefaultRecord(offset=1, timestamp={NOW}, key=1 bytes, value=7 bytes)"
    reason = f"Invalid timestamp type in message {shown}. Producer should not set timestamp type to LogAppendTime."
    assert raised.value.record_errors[1] == (1, reason)


@pytest.mark.requirement("A-03")
def test_the_size_is_checked_again_after_rewriting() -> None:
    buf = many(compression="gzip")
    limit = len(buf) + 10
    assert validate_and_assign_offsets(buf, 0, now_ms=NOW, max_message_bytes=limit).in_place
    with pytest.raises(RejectedRecords) as raised:
        validate_and_assign_offsets(buf, 0, now_ms=NOW, compression_type="none", max_message_bytes=limit)
    assert raised.value.code == AppendErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("size", [0, 13, 14])
@pytest.mark.parametrize("left", [11, 12, 13])
@pytest.mark.requirement("R-26")
def test_a_cut_inner_message_is_ignored_unless_its_size_is_too_small(left: int, size: int) -> None:
    """Source: DataLogInputStream of RecordIterators: a size is read if 12 bytes are left, and is at least 14."""
    cut = (bytes(8) + size.to_bytes(4, "big") + b"\0")[:left]
    buf = message(1, attributes=int(Compression.GZIP), key=None, value=gzip.compress(message(1) + cut))
    if left < 12 or size >= 14:
        assert validate_and_assign_offsets(buf, 5, now_ms=1000, to_magic=1).next_offset == 6
        return
    with pytest.raises(RejectedRecords, match=f"Found record size {size} smaller") as raised:
        validate_and_assign_offsets(buf, 5, now_ms=1000, to_magic=1)
    assert raised.value.code == AppendErrorCode.CORRUPT_MESSAGE


def test_a_decompression_bomb_is_rejected_at_the_limit() -> None:
    bomb = write_batch([plain(0, None, bytes(3_000_000), NOW)], 2, "zstd")
    with pytest.raises(RejectedRecords, match="max_decompressed_bytes=1000000"):
        validate_and_assign_offsets(bomb, 0, now_ms=NOW, max_decompressed_bytes=1_000_000)


def test_offsets_beyond_int64_are_rejected() -> None:
    buf = many(2)
    assert validate_and_assign_offsets(buf, 2**63 - 2, now_ms=NOW).next_offset == 2**63
    with pytest.raises(RejectedRecords, match="overflow"):
        validate_and_assign_offsets(buf, 2**63 - 1, now_ms=NOW)
    for first in (-1, 2**63):
        with pytest.raises(OptionError, match="first_offset"):
            validate_and_assign_offsets(buf, first, now_ms=NOW)


@pytest.mark.parametrize(
    "wrong",
    [{"to_magic": 3}, {"compression_type": "brotli"}, {"message_timestamp_type": "Yesterday"}, {"leader_epoch": 2**31}],
)
def test_an_invalid_config_is_reported(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong)).split("_")[0]):
        validate_and_assign_offsets(many(1), 0, **({"now_ms": NOW} | wrong))


def test_a_rejection_pickles_with_its_details() -> None:
    error = RejectedRecords("no", AppendErrorCode.INVALID_RECORD, [(3, "bad")])
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, BrokerError)
    assert (copy.what, copy.code, copy.record_errors) == ("no", 87, [(3, "bad")])


@pytest.mark.requirement("S31-26", "U-20")
def test_appending_an_old_format_equals_up_conversion() -> None:
    for magic in (0, 1):
        for codec in ("none", "gzip"):
            buf = many(6, magic=magic, compression=codec)
            appended = validate_and_assign_offsets(buf, 0, now_ms=NOW, to_magic=2).data
            (ours,), (converted,) = read_batches(appended), read_batches(up_convert(buf, 2))
            assert list(ours.records()) == list(converted.records())


@pytest.mark.parametrize("seed", range(3))
def test_hostile_bytes_raise_only_kwire_errors(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(250):
        with contextlib.suppress(RejectedRecords):
            record_writing.append_hostile(source)
