"""The record filter: compared with Kafka's algorithm on record objects, and byte for byte where bytes are
known."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.errors import CorruptBatch
from kwire.log.cleaner.cleaner_stats import CleanerStats
from kwire.log.cleaner.offset_map import OffsetMap
from kwire.log.cleaner.record_filter import RecordFilter
from kwire.log.cleaner.retention import CleanedTransactions, LastRecord
from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.records import Compression, Record, TimestampType, read_batches, write_batch
from tests.log.cleaner.compared import batch_content, with_true_crc
from tests.log.cleaner.generated_logs import NOW_MS, generated_log
from tests.log.cleaner.oracle import filter_batches, newest_offsets
from tests.log.cleaner.transactions import aborted_entries
from tests.records.both_paths import without_compiled_code
from tests.waiting import HANG_S

pytestmark = pytest.mark.usefixtures("path")
SECRET = bytes(range(16))
HORIZON_TIME_MS = 5000


def record(offset: int, key: bytes | None, value: bytes | None, timestamp: int, **more: Any) -> Record:
    return Record(
        offset=offset,
        timestamp=timestamp,
        timestamp_type=TimestampType.CREATE_TIME,
        key=key,
        value=value,
        headers=more.get("headers", []),
    )


THREE = [record(100, b"a", b"1", 10), record(101, b"b", b"2", 30), record(102, b"a", b"3", 20)]


def clean(
    data: bytes,
    newest: dict[bytes, int],
    *,
    latest_offset: int = 1 << 40,
    last_records: dict[int, LastRecord] | None = None,
    aborted: list[TransactionIndexEntry] | None = None,
    end_offset: int = 1 << 50,
    now_ms: int = HORIZON_TIME_MS,
    delete_retention_ms: int = 100,
    keeps_old_tombstones: bool = True,
    stats: CleanerStats | None = None,
    chunk_bytes: int = 1 << 30,
) -> bytes:
    """Run RecordFilter over data in chunks."""
    offset_map = OffsetMap(1 << 16, secret=SECRET)
    for key, offset in newest.items():
        assert offset_map.put(key, offset)
    offset_map.advance(latest_offset)
    transactions = CleanedTransactions()
    transactions.add(aborted or ())
    record_filter = RecordFilter(
        offset_map,
        transactions,
        last_records or {},
        stats or CleanerStats(),
        end_offset=end_offset,
        now_ms=now_ms,
        delete_retention_ms=delete_retention_ms,
        max_decompressed_bytes=1 << 20,
    )
    out, at, size = b"", 0, chunk_bytes
    while at < len(data):
        used, left = record_filter.clean(
            memoryview(data)[at : at + size], at, "00000000000000000000.log", keeps_old_tombstones=keeps_old_tombstones
        )
        out += left
        at += used
        size = chunk_bytes if used else 2 * size
    return out


@pytest.mark.requirement("X-10", "X-20", "X-21", "X-22", "X-23", "X-24", "X-26", "X-30", "X-31", "X-33")
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    magics=st.sampled_from([(2,), (2,), (0, 1, 2), (0,), (1,)]),
    dirty=st.floats(0, 1),
    covered=st.sampled_from([1.0, 1.0, 0.6]),
    delay_ms=st.sampled_from([0, 60_000]),
    keeps_old_tombstones=st.booleans(),
    chunk_bytes=st.sampled_from([700, 1 << 30]),
)
def test_random_logs_are_filtered_as_by_the_record_objects(
    seed: int,
    magics: tuple[int, ...],
    dirty: float,
    covered: float,
    delay_ms: int,
    keeps_old_tombstones: bool,
    chunk_bytes: int,
) -> None:
    log = generated_log(seed, batches=30, magics=magics)
    data = b"".join(bytes(segment) for _, segment in log.segments)
    aborted = aborted_entries(data)
    known = CleanedTransactions()
    known.add(aborted)
    newest = newest_offsets(data, known, int(dirty * log.next_offset))
    last_records = {each.producer_id: LastRecord(None, each.producer_epoch) for each in log.producers.values()}
    for batch in read_batches(data):
        if batch.producer_id in last_records and not batch.is_control and batch.producer_id % 2:
            last_records[batch.producer_id] = LastRecord(batch.last_offset, batch.producer_epoch)
    settings_: dict[str, Any] = {
        "end_offset": log.segments[-1][0],
        "now_ms": NOW_MS,
        "delete_retention_ms": delay_ms,
        "keeps_old_tombstones": keeps_old_tombstones,
    }
    latest_offset = int(covered * log.next_offset)
    transactions = CleanedTransactions()
    transactions.add(aborted)
    expected = b"".join(filter_batches(data, newest, latest_offset, transactions, last_records, **settings_))
    found = clean(
        data,
        newest,
        latest_offset=latest_offset,
        aborted=aborted,
        last_records=last_records,
        chunk_bytes=chunk_bytes,
        **settings_,
    )
    assert [batch_content(each) for each in read_batches(found)] == [
        batch_content(each) for each in read_batches(expected)
    ]
    if delay_ms:  # nothing falls due meanwhile: once markers have noticed that their data are gone, nothing changes
        passes = [found]
        for _ in range(3):
            passes.append(
                clean(
                    passes[-1],
                    newest,
                    latest_offset=latest_offset,
                    aborted=aborted_entries(passes[-1]),
                    last_records=last_records,
                    **settings_,
                )
            )
        assert passes[3] == passes[2]


@pytest.mark.requirement("X-31", "X-33")
def test_a_magic_2_batch_keeps_its_offsets_without_its_first_record() -> None:
    left = next(read_batches(clean(write_batch(THREE, base_offset=100), {b"a": 102, b"b": 101})))
    assert (left.base_offset, left.last_offset, left.count, left.max_timestamp) == (100, 102, 2, 30)
    assert [(each.offset, each.timestamp, each.value) for each in left.records()] == [(101, 30, b"2"), (102, 20, b"3")]


@pytest.mark.requirement("X-31", "R-27")
@pytest.mark.parametrize("magic", [0, 1])
def test_a_compressed_message_is_rebased_to_its_first_inner_message(magic: int) -> None:
    left = next(read_batches(clean(write_batch(THREE, magic, "gzip", 100), {b"a": 102, b"b": 101})))
    assert (left.base_offset, left.last_offset) == (101, 102)
    assert [each.offset for each in left.records()] == [101, 102]


@pytest.mark.requirement("X-26", "X-27")
def test_an_emptied_batch_has_kafkas_bytes() -> None:
    expected = (
        "0000000000000064 00000031 ffffffff 02 689032a8 0000 00000002 ffffffffffffffff 000000000000001e"
        "ffffffffffffffff ffff ffffffff 00000000"
    )
    data = write_batch(THREE, base_offset=100)
    newest = {b"a": 200, b"b": 201}
    assert clean(data, newest, end_offset=103) == bytes.fromhex(expected)
    assert clean(data, newest) == b""
    assert clean(bytes.fromhex(expected), newest) == b""


@pytest.mark.requirement("X-23", "X-32")
def test_a_tombstone_gets_a_delete_horizon_with_kafkas_bytes() -> None:
    data = write_batch([record(100, b"a", b"1", 10), record(101, b"b", None, 20)], base_offset=100)
    newest = {b"a": 100, b"b": 101}
    with_horizon = bytes.fromhex(
        "0000000000000064 00000044 ffffffff 02 937d56ca 0040 00000001 00000000000013ec 0000000000000014"
        "ffffffffffffffff ffff ffffffff 00000002 1200c34f00026102 3100 1000af4f0202620100"
    )
    assert clean(data, newest) == with_horizon
    assert clean(with_horizon, newest, now_ms=5099, delete_retention_ms=10**6) == with_horizon
    left = next(read_batches(clean(with_horizon, newest, now_ms=5100)))
    assert [(each.key, each.timestamp) for each in left.records()] == [(b"a", 10)]
    assert left.delete_horizon_ms == 5100
    assert [each.timestamp for each in next(read_batches(with_horizon)).records()] == [10, 20]


@pytest.mark.requirement("X-23")
@pytest.mark.parametrize("magic", [0, 1])
def test_magic_0_and_1_tombstones_expire_with_their_segments_age(magic: int) -> None:
    data = write_batch([record(5, b"b", None, 20)], magic, base_offset=5)
    assert clean(data, {b"b": 5}, keeps_old_tombstones=True) == data
    assert clean(data, {b"b": 5}, keeps_old_tombstones=False) == b""


@pytest.mark.requirement("X-20", "X-21", "X-30")
def test_records_after_the_maps_end_are_kept() -> None:
    data = write_batch([record(100, None, b"1", 10), record(101, b"a", b"2", 20)], base_offset=100)
    stats = CleanerStats()
    assert clean(data, {b"a": 500}, latest_offset=99, stats=stats) == data
    assert (stats.records_read, stats.records_written, stats.keyless_records) == (2, 2, 0)
    stats = CleanerStats()
    assert clean(data, {b"a": 101}, latest_offset=101, stats=stats) != data
    assert (stats.records_read, stats.records_written, stats.keyless_records) == (2, 1, 1)


@pytest.mark.requirement("X-31", "X-33")
def test_the_append_time_is_kept_when_records_are_dropped() -> None:
    for magic, codec in ((1, "lz4"), (2, "none"), (2, "zstd")):
        data = write_batch(
            THREE,
            magic,
            codec,
            100,
            timestamp_type=TimestampType.LOG_APPEND_TIME,
            log_append_time_ms=777,
        )
        left = next(read_batches(clean(data, {b"a": 102, b"b": 500})))
        assert left.timestamp_type == TimestampType.LOG_APPEND_TIME
        assert [(each.offset, each.timestamp) for each in left.records()] == [(102, 777)]


def test_over_long_varints_are_rewritten_in_their_shortest_form() -> None:
    plain = write_batch(THREE, base_offset=100)
    long_form = bytearray(plain[:61])
    for each in range(3):
        body = plain[61 + each * 9 + 1 : 61 + each * 9 + 9]
        long_form += bytes([(len(body) + 1) << 1]) + body[:1] + bytes([body[1] | 0x80, 0]) + body[2:]
    long_form[8:12] = (len(long_form) - 12).to_bytes(4, "big")
    data, newest = with_true_crc(bytes(long_form)), {b"a": 102, b"b": 101}
    assert clean(data, {b"a": 100, b"b": 101}) == data  # unchanged: byte for byte
    assert clean(data, newest) == clean(plain, newest)


@pytest.mark.parametrize("codec", list(Compression))
def test_a_damaged_batch_ends_the_pass_and_is_reported(codec: Compression) -> None:
    good = write_batch(THREE, 2, codec, 100)
    bad = bytearray(
        write_batch([record(each.offset + 3, each.key, each.value, each.timestamp) for each in THREE], 2, codec, 103)
    )
    bad[-2] ^= 1
    with pytest.raises(CorruptBatch, match="stored CRC") as raised:
        clean(good + bytes(bad), {})
    assert (raised.value.position, raised.value.offsets) == (len(good), (103, 105))
    with pytest.raises(CorruptBatch, match="size 3"):
        clean(good + bytes(8) + b"\0\0\0\3" + bytes(60), {})


def outcome(data: bytes, newest: dict[bytes, int]) -> bytes | str:
    """Return what clean() returns, or its error."""
    try:
        return clean(data, newest)
    except CorruptBatch as corrupt:
        return str(corrupt)


@pytest.mark.parametrize(("magic", "codec"), [(0, "none"), (1, "none"), (1, "gzip"), (2, "none"), (2, "zstd")])
def test_any_changed_byte_gives_batches_or_an_error(magic: int, codec: str) -> None:
    """Checksums are corrected, so that the fields are parsed."""
    data = write_batch(THREE, magic, codec, 100)
    for at in range(12, len(data)):
        for flip in (1, 0x80, 0xFF):
            changed = bytearray(data)
            changed[at] ^= flip
            valid = with_true_crc(bytes(changed))
            found = outcome(valid, {b"a": 102, b"b": 101})
            with without_compiled_code():
                assert outcome(valid, {b"a": 102, b"b": 101}) == found


@pytest.mark.sampled
def test_mutated_logs_give_the_same_with_and_without_compiled_code() -> None:
    """In a separate process, since an access past the end of the log kills it."""
    command = [sys.executable, "-m", "tests.fuzz.cleaning", "guarded", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert (done.returncode, done.stdout) == (0, "1000\n"), done.stderr[-3000:]


@pytest.mark.parametrize("codec", list(Compression))
def test_the_smallest_records_are_no_damage(codec: Compression) -> None:
    """Seven bytes each; without a key, they are dropped."""
    smallest = [record(100 + at, None, None, 10) for at in range(5)]
    data = write_batch(smallest, 2, codec, 100)
    assert codec or len(data) == 61 + 5 * 7
    assert clean(data, {}) == b""
    lying = bytearray(data)
    lying[57:61] = (6).to_bytes(4, "big")
    with pytest.raises(CorruptBatch):
        clean(with_true_crc(bytes(lying)), {})


@pytest.mark.parametrize("number", [0, 1, 2])
def test_damage_names_the_record(number: int) -> None:
    data = bytearray(write_batch(THREE, 2, "none", 100))
    data[61 + 9 * number + 4] = 0x7E  # the length of its key
    with pytest.raises(CorruptBatch, match=f"record {number}: "):
        clean(with_true_crc(bytes(data)), {})
    message = bytearray(write_batch(THREE[:1], 1, "none", 100))
    message[26:30] = (99).to_bytes(4, "big")
    with pytest.raises(CorruptBatch) as raised:
        clean(with_true_crc(bytes(message)), {})
    assert "record 0" not in str(raised.value)  # an uncompressed message is its own record
