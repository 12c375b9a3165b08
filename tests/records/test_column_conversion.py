"""Conversion by columns gives the bytes, counts and errors of conversion by objects."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import Any

import pytest
from tests import golden
from tests.records.building import message
from tests.records.test_builder import plain

from kwire import native
from kwire.errors import KwireError
from kwire.records import (
    ControlRecordType,
    TimestampType,
    down_convert,
    read_batches,
    up_convert,
    write_batch,
    write_transaction_marker,
)
from kwire.records.convert import column_conversion, conversion

NOW = 1_700_000_000_000
CODECS = ("none", "none", "none", "gzip", "snappy", "lz4")

pytestmark = pytest.mark.skipif(native.LEVEL is None, reason="columns need compiled kernels")


def outcome(convert: Any, data: bytes, magic: int, **options: Any) -> tuple[Any, ...]:
    """Return what a conversion results in."""
    try:
        found = convert(data, magic, **options)
    except KwireError as error:
        return type(error), str(error), getattr(error, "position", None)
    return bytes(found), found.records_converted, asdict(found.lost)


def compare(convert: Any, data: bytes, magic: int, patch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, ...]:
    """Convert by columns and by objects; return the result, which must be the same."""
    patch.setattr(column_conversion, "FEW_RECORDS", 1)
    patch.setattr(column_conversion, "FEW_COMPRESSED_BYTES", 1)
    patch.setattr(conversion, "FEW_BYTES", 0)
    columns = outcome(convert, data, magic, **options)
    patch.setattr(conversion, "FEW_BYTES", 1 << 60)
    assert columns == outcome(convert, data, magic, **options)
    return columns


def record_set(source: random.Random, magics: tuple[int, ...]) -> bytes:
    """Return batches of these magics: empty values, nulls, gaps, append times, producers, headers, codecs, markers."""
    out, offset = bytearray(), source.choice((0, 5, 2**31, 2**40))
    for _ in range(source.randrange(1, 8)):
        magic = source.choice(magics)
        records = []
        count = source.choice((1, 1, 3, 20, 70))
        for _ in range(count):
            offset += source.choice((1, 1, 1, 2, 9))
            field = [source.choice((None, b"", b"x" * source.randrange(1, 200))) for _ in range(2)]
            time = source.choice((-1, 0, NOW, NOW + source.randrange(100_000)))
            headers = [("h", source.choice((None, b"1")))] * source.choice((0, 0, 1)) if magic == 2 else []
            records.append(plain(offset, field[0], field[1], time, headers))
        append_time = magic > 0 and source.random() < 0.3
        options: dict[str, Any] = {"keep_offsets": True}
        if append_time:
            options |= {
                "timestamp_type": TimestampType.LOG_APPEND_TIME,
                "log_append_time_ms": NOW + source.choice((0, 1)),
            }
        if magic == 2 and source.random() < 0.3:
            options |= {"producer_id": 4, "producer_epoch": 1, "base_sequence": 9, "partition_leader_epoch": 3}
        out += write_batch(records, magic, source.choice(CODECS), records[0].offset, **options)
        if magic == 2 and source.random() < 0.2:
            out += write_transaction_marker(
                ControlRecordType.ABORT,
                producer_id=4,
                producer_epoch=1,
                coordinator_epoch=0,
                timestamp=NOW,
                base_offset=(offset := offset + 1),
            )
    return bytes(out)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(60))
def test_random_record_sets_are_converted_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(seed)
    magics = source.choice(((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)))
    data = record_set(source, magics)
    for magic in (0, 1, 2):
        compare(down_convert, data, magic, monkeypatch, first_offset=source.choice((0, 7, 2**31 + 30)))
        compare(up_convert, data, magic, monkeypatch, max_batch_bytes=source.choice((1, 200, 1000, 1_000_000)))
    for _ in range(40):
        damaged = bytearray(data)
        damaged[source.randrange(len(data))] ^= 1 << source.randrange(8)
        cut = bytes(damaged[: source.choice((len(data), source.randrange(len(data))))])
        compare(down_convert, cut, source.choice((0, 1)), monkeypatch)
        compare(up_convert, cut, source.choice((1, 2)), monkeypatch, max_batch_bytes=source.choice((200, 1_000_000)))


def test_record_sets_of_kafka_are_converted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for line in golden.cached("conversions.jsonl.gz"):
        if line["op"] == "down-convert":
            data = golden.unpack(line["from_b64"])
            assert data is not None
            compare(down_convert, data, line["to_magic"], monkeypatch, first_offset=line["first_offset"])
            compare(up_convert, data, 2, monkeypatch)


def test_runs_beyond_the_header_table_become_the_same_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_conversion, "TABLE_ROWS", 64)
    messages = b"".join(write_batch([plain(o, b"k" * (o % 90), b"v", NOW + o)], 1, base_offset=o) for o in range(500))
    data, records, _ = compare(up_convert, messages, 2, monkeypatch, max_batch_bytes=5000)
    assert records == 500
    assert compare(down_convert, data, 1, monkeypatch)[0] == messages


@pytest.mark.parametrize("target", [1, 2])
@pytest.mark.parametrize("magic", [0, 1])
def test_the_bit_of_append_times_has_no_meaning_in_magic_0(
    magic: int, target: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"".join(message(magic, offset=i, attributes=8) for i in range(3))
    found, _, _ = compare(up_convert, data, target, monkeypatch)
    records = [each for batch in read_batches(found) for each in batch.records()]
    kind = TimestampType.LOG_APPEND_TIME if magic else TimestampType.CREATE_TIME
    expected = [(kind, 1000)] * 3 if magic else [(kind, -1)] * 3
    assert [(each.timestamp_type, each.timestamp) for each in records] == expected


@pytest.mark.parametrize(("gap", "batches"), [(2**31 - 2, 1), (2**31 - 1, 1), (2**31, 2)])
def test_messages_are_collected_as_far_as_a_delta_of_offsets_reaches(
    gap: int, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = message(1, offset=5) + message(1, offset=5 + gap)
    found, _, _ = compare(up_convert, data, 2, monkeypatch)
    assert len(list(read_batches(found))) == batches


@pytest.mark.parametrize("times", [[2**62, 5], [5, 2**62], [2**53, 5]])
def test_timestamps_beyond_microseconds_are_converted_alike(times: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_batch([plain(i, b"k", b"v", time) for i, time in enumerate(times)])
    down, _, _ = compare(down_convert, data, 1, monkeypatch)
    compare(up_convert, down, 2, monkeypatch)
