"""Decoding in threads gives the rows and errors of decoding in one, in the same order."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from tests.records.both_paths import COLUMNS, rows_of
from tests.records.test_builder import plain
from tests.records.test_column_conversion import record_set

from kwire.errors import CorruptBatch, OptionError
from kwire.records import ColumnReader, write_batch
from kwire.records.columns import parallel_decoder

NOW = 1_700_000_000_000


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_decoder, "PIECE_BYTES", 500)


def outcome(data: bytes, threads: int, **options: Any) -> tuple[Any, ...]:
    """Return rows and errors in order, what was consumed, and what stopped the reader."""
    found: list[Any] = []
    reader = ColumnReader(COLUMNS, threads=threads, on_corrupt=lambda error: found.append(str(error)))
    for batch in reader.read(data, position=100, file="x.log", **options):
        found += rows_of(batch)
    return found, reader.consumed, str(reader.stopped)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_rows_and_errors_are_those_of_one_thread(seed: int, threads: int) -> None:
    source = random.Random(seed)
    data = bytearray(b"".join(record_set(source, (0, 1, 2)) for _ in range(3)))
    for damage in range(8):
        for _ in range(damage // 2):
            data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        cut = bytes(data[: source.choice((len(data), source.randrange(len(data))))])
        options = source.choice(({}, {"start_offset": 30, "end_offset": 90}, {"aborted": [(4, 0, 2**62)]}))
        assert outcome(cut, threads, **options) == outcome(cut, 1, **options)


def test_an_error_is_raised_after_the_rows_before_it() -> None:
    data = bytearray(b"".join(write_batch([plain(o, b"k", b"v" * 100, NOW)], 2, "zstd", o) for o in range(200)))
    size = len(data) // 200
    data[150 * size + 70] ^= 1

    def read(threads: int) -> tuple[list[int], str]:
        offsets: list[int] = []
        try:
            for batch in ColumnReader(("offset",), threads=threads).read(bytes(data)):
                offsets += batch.column(0).to_pylist()
        except CorruptBatch as error:
            assert threading.active_count() == before
            return offsets, str(error)
        raise AssertionError("the damaged batch was read")

    before = threading.active_count()
    assert read(4) == read(1)
    assert read(4)[0] == list(range(150))


def test_threads_end_when_a_reader_stops_early() -> None:
    data = b"".join(write_batch([plain(o, b"k", b"v" * 400, NOW)], 2, "lz4", o) for o in range(500))
    before = threading.active_count()
    reader = ColumnReader(("offset",), threads=3)
    batches = reader.read(data)
    assert next(batches).num_rows
    batches.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert sum(batch.num_rows for batch in reader.read(data)) == 500


def test_batches_larger_than_a_piece_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(write_batch([plain(o, b"k", b"v" * 2000, NOW)], 2, "gzip", o) for o in range(50))
    monkeypatch.setattr(parallel_decoder, "PIECE_BYTES", 10)
    reader = ColumnReader(("value",), threads=4, max_rows=1)
    assert sum(batch.num_rows for batch in reader.read(data)) == 50


@pytest.mark.parametrize("threads", [0, -1, 257])
def test_a_number_of_threads_out_of_range_is_rejected(threads: int) -> None:
    with pytest.raises(OptionError, match="out of range: 1 to 256"):
        ColumnReader(threads=threads)
