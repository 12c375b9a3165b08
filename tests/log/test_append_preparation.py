"""Cost estimates of validation, and records that are moved to other offsets before the append."""

from __future__ import annotations

import gzip

import pytest

from kwire import native, records
from kwire.log.writing.append_preparation import QUICK_REBUILT_BYTES, is_quick, quick_bytes
from kwire.records.append.validation import validate_and_assign_offsets
from kwire.records.append.whole_batch import WholeBatchConfig, take_whole_batch
from kwire.records.attributes import Compression, TimestampType
from kwire.records.format.default_writer import BatchFields, join_batch
from tests.records.building import record

TIME = 1_760_000_000_000
CODECS = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4]


def batch(compression: Compression = Compression.NONE, magic: int = 2, *, count: int = 3, size: int = 20) -> bytes:
    builder = records.BatchBuilder(compression=compression, magic=magic)
    for n in range(count):
        builder.append(b"%d" % n, bytes(size), timestamp=TIME + n if magic else -1)
    return builder.build()


def empty_records(count: int) -> bytes:
    """A gzip batch of records without key, value and headers."""
    section = b"".join(record(n, key=None, value=None) for n in range(count))
    return join_batch(
        BatchFields(compression=Compression.GZIP),
        gzip.compress(section),
        base_offset=0,
        last_offset=count - 1,
        base_timestamp=TIME,
        max_timestamp=TIME,
        count=count,
    )


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without compiled code."""
    monkeypatch.setattr(native, "LEVEL", None)


@pytest.mark.parametrize("append_time", [False, True])
@pytest.mark.parametrize("to_magic", [0, 1, 2])
@pytest.mark.parametrize("codec", ["producer", "none", "gzip"])
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("compression", CODECS)
def test_records_moved_to_other_offsets_equal_records_written_there(
    compression: Compression, magic: int, codec: str, to_magic: int, append_time: bool
) -> None:
    data = batch(compression, magic)
    settings = {
        "now_ms": TIME,
        "to_magic": to_magic,
        "compression_type": codec,
        "leader_epoch": 4,
        "message_timestamp_type": TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME,
    }
    early = validate_and_assign_offsets(data, 100, **settings)
    late = validate_and_assign_offsets(data, 1107, **settings)
    moved = early.moved(1007)
    (stored, *_) = records.read_batches(late.data)
    if to_magic == 0 and stored.attributes & 7:
        assert moved is None  # its offsets are compressed
        return
    assert moved is not None
    assert moved.data == late.data
    for name in ("next_offset", "max_timestamp_ms", "offset_of_max_timestamp", "log_append_time_ms", "in_place"):
        assert getattr(moved, name) == getattr(late, name), name


def test_records_cannot_be_moved_beyond_the_highest_offset() -> None:
    checked = validate_and_assign_offsets(batch(), 0, now_ms=TIME)
    assert checked.moved(2**63 - 3) is not None
    assert checked.moved(2**63 - 2) is None
    whole = take_whole_batch(batch(), 0, now_ms=TIME, leader_epoch=0, topic=WholeBatchConfig(max_message_bytes=1 << 20))
    assert whole is not None
    assert whole.moved(2**63 - 3) is not None
    assert whole.moved(2**63 - 2) is None


@pytest.mark.parametrize("compression", CODECS)
def test_a_batch_is_moved_by_changing_its_header(compression: Compression) -> None:
    topic = WholeBatchConfig(max_message_bytes=1 << 20)
    early, late = (
        take_whole_batch(batch(compression), offset, now_ms=TIME, leader_epoch=4, topic=topic) for offset in (5, 12)
    )
    assert early is not None
    assert early.moved(7) == late
    assert early.moved(0) == early
    assert early.head is not early.moved(0).head  # type: ignore[union-attr]  # others may hold the first one


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("data", "magic", "codec", "quick"),
    [
        (batch(), 2, None, True),
        (batch(count=1, size=1_000_000), 2, None, True),  # one record: its checksum, no walk
        (batch(count=2, size=1_000_000), 2, None, False),
        (batch(count=2000), 2, None, False),
        (batch(Compression.GZIP), 2, None, True),
        (batch(Compression.GZIP, size=1_000_000), 2, None, True),  # till it is opened
        (empty_records(20_000), 2, None, False),
        (batch(), 2, Compression.GZIP, True),
        (batch(size=2000), 2, Compression.GZIP, False),
        (batch(Compression.GZIP), 2, Compression.GZIP, True),
        (batch(magic=1), 1, None, True),
        (batch(magic=1, size=2000), 1, None, False),
        (batch(size=2000), 1, None, False),
        (b"", 2, None, True),
        (b"too short for a header", 2, None, True),
    ],
)
def test_cheap_batches_are_recognized_by_their_header(
    data: bytes, magic: int, codec: Compression | None, quick: bool
) -> None:
    assert is_quick(data, magic=magic, codec=codec) is quick


def test_expensive_decompression_is_detected() -> None:
    data = batch(Compression.ZSTD, count=1, size=8 << 20)
    assert len(data) < 4096
    assert is_quick(data, magic=2, codec=None)
    with pytest.raises(records.RejectedRecords) as caught:
        validate_and_assign_offsets(data, 0, now_ms=TIME, max_decompressed_bytes=quick_bytes())
    assert type(caught.value).__name__ == "TooMuchWork"


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize(("magic", "codec"), [(1, None), (2, Compression.GZIP)])
def test_records_that_are_rebuilt_are_cheap_up_to_a_size(magic: int, codec: Compression | None, more: int) -> None:
    fixed = len(batch(magic=magic, count=1, size=1000)) - 1000
    data = batch(magic=magic, count=1, size=QUICK_REBUILT_BYTES + more - fixed)
    assert len(data) == QUICK_REBUILT_BYTES + more
    assert is_quick(data, magic=magic, codec=codec) is (more <= 0)
