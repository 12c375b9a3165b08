"""Fetch responses in an older format, with a size announced before the conversion."""

from __future__ import annotations

import pytest
from tests.records.test_builder import plain

from kwire.errors import OptionError
from kwire.records import (
    ControlRecordType,
    RejectedRecords,
    down_convert,
    read_batches,
    write_batch,
    write_batches,
    write_transaction_marker,
)
from kwire.records.convert.fetch_conversion import CHUNK_BYTES, FetchConversion, overflow_entry


def values(data: bytes) -> list[bytes | None]:
    return [r.value for b in read_batches(data) for r in b.records()]


def response(data: bytes, to_magic: int = 1, first_offset: int = 0) -> tuple[FetchConversion, bytes]:
    conversion = FetchConversion(data, to_magic, first_offset)
    chunks = list(conversion.chunks())
    whole = b"".join(chunks)
    assert len(whole) == conversion.size_bytes
    return conversion, whole


MARKER = write_transaction_marker(
    ControlRecordType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=7
)
LARGE = b"".join(write_batches([plain(i, None, b"v" * 200 + b"%d" % i, 5) for i in range(3000)]))


@pytest.mark.requirement("U-15", "S31-21", "S31-36")
def test_a_response_has_the_announced_size() -> None:
    conversion, whole = response(LARGE)
    assert conversion.size_bytes == len(LARGE)  # converted it would be longer
    expected = down_convert(LARGE, 1)
    assert len(expected) > len(whole)
    assert expected.startswith(whole)
    read = values(whole)
    assert read == values(LARGE)[: len(read)]
    assert 2500 < len(read) < 3000


@pytest.mark.requirement("U-15")
def test_the_first_batch_is_always_sent_whole() -> None:
    one = write_batch([plain(i, None, b"v", 5) for i in range(100)])
    conversion, whole = response(one)
    assert conversion.size_bytes > len(one)  # a message of magic 1 is longer than a record of magic 2
    assert len(values(whole)) == 100


@pytest.mark.requirement("U-15", "R-02")
def test_the_rest_is_padded_with_an_entry_that_clients_drop() -> None:
    data = write_batch([plain(0, b"k", b"v", 5)], 2, "none", 0) + MARKER * 5
    _, whole = response(data)
    assert values(whole) == [b"v"]
    converted = down_convert(data, 1)
    assert whole.startswith(converted + b"\xff" * 8)
    announced = int.from_bytes(whole[len(converted) + 8 : len(converted) + 12], "big")
    assert announced > len(whole) - len(converted)


@pytest.mark.requirement("U-15")
def test_an_empty_conversion_is_padded_with_twelve_bytes() -> None:
    conversion, whole = response(MARKER)
    assert conversion.size_bytes == 12
    assert whole == b"\xff" * 8 + (61).to_bytes(4, "big")
    assert values(whole) == []


@pytest.mark.requirement("U-16")
def test_a_later_zstd_batch_ends_the_response_and_fails_the_next_fetch() -> None:
    zstd = write_batch([plain(1, b"k", b"z", 5)], 2, "zstd", 1)
    _, whole = response(write_batch([plain(0, b"k", b"v", 5)]) + zstd)
    assert values(whole) == [b"v"]
    with pytest.raises(RejectedRecords) as raised:
        FetchConversion(zstd, 1, 1)
    assert raised.value.code == 76


@pytest.mark.parametrize(("over", "is_sent"), [(0, False), (1, True)])
@pytest.mark.requirement("U-15")
def test_batches_are_converted_in_chunks_of_up_to_128_kib(over: int, is_sent: bool) -> None:
    """A batch that cannot be converted takes those with it that are in its chunk, as in LazyDownConversionRecords."""
    first, zstd = write_batch([plain(0, b"k", b"v", 5)]), write_batch([plain(2, b"k", b"z", 5)], 2, "zstd", 2)
    empty = write_batch([plain(1, None, b"", 5)], 2, "none", 1)
    value = bytes(CHUNK_BYTES - len(empty) - len(zstd) - 4 + over)  # whose two lengths take two bytes more each
    middle = write_batch([plain(1, None, value, 5)], 2, "none", 1)
    assert len(middle) + len(zstd) == CHUNK_BYTES + over
    _, whole = response(first + middle + zstd)
    assert values(whole) == [b"v", value][: 1 + is_sent]


def test_an_unknown_magic_is_rejected() -> None:
    with pytest.raises(OptionError, match="to_magic"):
        FetchConversion(b"", 5, 0)


@pytest.mark.parametrize("left", [13, 59, 60, 61, 62, 100, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1])
def test_the_entry_that_clients_drop_is_longer_than_the_rest(left: int) -> None:
    """Source: LazyDownConversionRecordsSend.buildOverflowBatch: the remaining bytes and 1, at least a header."""
    entry = overflow_entry(left)
    assert entry[:8] == (-1).to_bytes(8, "big", signed=True)
    assert int.from_bytes(entry[8:12], "big") == max(left + 1, 61)
    assert len(entry) == min(left + 1, CHUNK_BYTES)
