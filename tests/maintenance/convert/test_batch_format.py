"""Every golden log, converted to every magic and codec."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from kwire.errors import CorruptBatch, OptionError
from kwire.log import LogDirectory, PartitionLog
from kwire.log.reading.runs import AbortedBatches
from kwire.maintenance.convert.batch_format import BatchConverter, Loss, TargetFormat, recompress
from kwire.records import (
    Batch,
    Compression,
    ControlRecordType,
    Record,
    TimestampType,
    read_batches,
    to_arrow,
    write_batch,
    write_transaction_marker,
)
from tests.log.writing import batch as written

ARCHIVES = ("modern", "modern44", "legacy")
TARGETS = [
    (magic, codec)
    for magic in (None, 0, 1, 2)
    for codec in (None, *Compression)
    if (magic, codec) != (None, None) and not (magic in (0, 1) and codec == Compression.ZSTD)
    if magic != 0 or codec in (None, Compression.NONE, Compression.LZ4)
]
KEPT = (
    "base_offset", "last_offset", "partition_leader_epoch", "base_timestamp", "max_timestamp", "producer_id",
    "producer_epoch", "base_sequence", "last_sequence", "count", "delete_horizon_ms", "timestamp_type",
)  # fmt: skip
COLUMNS = ["offset", "key", "value", "timestamp", "timestampType", "headers"]


# Of each kind of log one: all of them in every format take a minute.
CHOSEN = {
    ("txn", 0), ("compacted", 1), ("compacted-txn", 0), ("logappend", 0), ("trimmed", 0),
    ("__consumer_offsets", 1), ("txn44", 0), ("compacted44", 0),
    ("v0", 4), ("v1", 4), ("v2", 5), ("append-v1", 0), ("mixed-format", 1), ("compacted-v0", 1), ("compacted-v1", 2),
}  # fmt: skip


def logs(folder: Path) -> Iterator[PartitionLog]:
    for key, log in LogDirectory(folder / "data").items():
        if key[0] != "__cluster_metadata" and log.size_bytes and key in CHOSEN:
            yield log


@cache
def aborted_of(folder: Path, topic: str, partition: int) -> AbortedBatches:
    log = LogDirectory(folder / "data")[topic, partition]
    return AbortedBatches(log.aborted_transactions(log.log_start_offset, log.log_end_offset))


@cache
def stored(folder: Path, topic: str, partition: int) -> list[Batch]:
    """Return all batches of a log, including those below the log start."""
    data = io.BytesIO()
    for _, batch in LogDirectory(folder / "data")[topic, partition].batches():
        data.write(batch.buffer)
    return list(read_batches(data.getvalue()))


@cache
def columns_of(folder: Path, topic: str, partition: int, *, with_aborted: bool) -> pa.RecordBatch:
    aborted = aborted_of(folder, topic, partition)
    kept = (b for b in stored(folder, topic, partition) if with_aborted or not aborted.has(b))
    return to_arrow(b"".join(batch.buffer for batch in kept), COLUMNS)


@pytest.mark.sampled(7)
@pytest.mark.requirement("U-10", "U-14", "U-20", "R-25", "A-23")
@pytest.mark.parametrize(("magic", "codec"), TARGETS)
@pytest.mark.parametrize("archive", ARCHIVES)
def test_conversion_keeps_every_field_the_format_supports(
    archive: str, magic: int | None, codec: Compression | None, kafka_logs: dict[str, Path]
) -> None:
    folder = kafka_logs[archive]
    total, refused = Loss(), 0
    for log in logs(folder):
        key = log.topic, log.partition
        source, aborted = stored(folder, *key), aborted_of(folder, *key)
        converter = BatchConverter(TargetFormat(magic=magic, codec=codec), aborted.has)
        has_zstd = any(batch.compression == Compression.ZSTD and not aborted.has(batch) for batch in source)
        old = any(batch.magic < 2 for batch in source)
        if (magic in (0, 1) and codec is None and has_zstd) or (magic is None and codec == Compression.ZSTD and old):
            with pytest.raises(OptionError, match=r"not supported by magic [01]"):
                list(converter.convert(source))
            refused += 1
            continue
        out = b"".join(converter.convert(source))
        for batch in read_batches(out):
            batch.check()
            assert magic is None or batch.magic == magic
            assert codec is None or batch.compression == codec or batch.is_control or batch.count == 0
        lossy = magic in (0, 1)
        expected, got = columns_of(folder, *key, with_aborted=not lossy), to_arrow(out, COLUMNS)
        same = ["offset", "key", "value"]
        if magic != 0:
            same.append("timestamp")
        if not lossy:
            same.append("headers")
        for name in same:
            assert got.column(name).equals(expected.column(name)), (key, name)
        if magic is None:
            assert got.column("timestampType").equals(expected.column("timestampType"))
        assert converter.records >= got.num_rows
        total.add(converter.loss)
    assert bool(total) == (magic in (0, 1))
    assert bool(refused) == ((codec is None and magic in (0, 1)) or (archive, magic, codec) == ("legacy", None, 4))


@pytest.mark.requirement("R-36", "R-37")
@pytest.mark.parametrize("codec", list(Compression))
def test_another_codec_keeps_the_rest_of_the_header(codec: Compression, kafka_logs: dict[str, Path]) -> None:
    seen = 0
    for log in logs(kafka_logs["modern"]):
        for _, old in log.batches():
            (new,) = read_batches(recompress(old, codec))
            new.check()
            if old.is_control or not old.count:
                assert new.buffer == old.buffer
                continue
            seen += 1
            assert new.compression == codec
            assert new.attributes & ~7 == old.attributes & ~7
            for name in KEPT:
                assert getattr(new, name) == getattr(old, name), name
    assert seen > 500


def test_lost_fields_are_counted(kafka_logs: dict[str, Path]) -> None:
    folder = kafka_logs["modern"]
    batches, aborted = stored(folder, "txn", 0), aborted_of(folder, "txn", 0)
    data = [batch for batch in batches if not batch.is_control]
    converter = BatchConverter(TargetFormat(magic=1, codec=Compression.LZ4), aborted.has)
    list(converter.convert(batches))
    gone = sum(batch.count or 0 for batch in data if aborted.has(batch))
    kept = [batch for batch in data if not aborted.has(batch)]
    assert gone > 50
    assert converter.loss == Loss(
        control_batches=len(batches) - len(data),
        records_of_aborted_transactions=gone,
        records_of_open_transactions=5,
        records_with_headers=sum(1 for batch in kept for record in batch.records() if record.headers),
        batches_with_producer=sum(batch.producer_id >= 0 for batch in kept),
        batches_with_leader_epoch=sum(batch.partition_leader_epoch >= 0 for batch in kept),
    )
    assert converter.loss.described().startswith(f"{converter.loss.records_with_headers} records with headers, ")
    assert not Loss()
    assert Loss().described() == "nothing"


def test_a_codec_is_reused_between_calls(kafka_logs: dict[str, Path]) -> None:
    """A transaction whose marker is in a later call is not open."""
    folder = kafka_logs["modern"]
    batches, aborted = stored(folder, "txn", 1), aborted_of(folder, "txn", 1)
    whole = BatchConverter(TargetFormat(magic=1, codec=Compression.NONE), aborted.has)
    parts = BatchConverter(TargetFormat(magic=1, codec=Compression.NONE), aborted.has)
    out = b"".join(whole.convert(batches))
    assert b"".join(data for batch in batches for data in parts.convert([batch])) == out
    assert parts.loss == whole.loss


def test_a_corrupt_batch_does_not_get_a_new_checksum(kafka_logs: dict[str, Path]) -> None:
    data = bytearray(stored(kafka_logs["modern"], "orders", 0)[3].buffer)
    data[-1] ^= 1
    converter = BatchConverter(TargetFormat(codec=Compression.ZSTD), lambda batch: False)
    with pytest.raises(CorruptBatch, match="CRC"):
        list(converter.convert(read_batches(data)))


def test_unknown_formats_are_rejected() -> None:
    with pytest.raises(OptionError, match="magic 3"):
        TargetFormat(magic=3)
    with pytest.raises(OptionError, match="not supported by magic 1"):
        TargetFormat(magic=1, codec=Compression.ZSTD)


def test_timestamps_out_of_the_calendar_are_converted() -> None:
    """Columns have microseconds, which such a timestamp does not fit."""
    times = [5, 2**62, -1]
    records = [
        Record(offset=3 * i, timestamp=time, timestamp_type=TimestampType.CREATE_TIME, key=None, value=b"v", headers=[])
        for i, time in enumerate(times)
    ]
    data = write_batch(records, keep_offsets=True)
    converter = BatchConverter(TargetFormat(magic=1, codec=Compression.GZIP), lambda batch: False)
    (new,) = read_batches(b"".join(converter.convert(read_batches(data))))
    assert [(record.offset, record.timestamp) for record in new.records()] == [(0, 5), (3, 2**62), (6, -1)]
    assert (converter.records, converter.loss) == (3, Loss())


@pytest.mark.parametrize(("magic", "offsets"), [(1, [0]), (2, [0, 1])])
def test_formats_from_2_on_keep_markers(magic: int, offsets: list[int]) -> None:
    marker = write_transaction_marker(
        ControlRecordType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=5, base_offset=1
    )
    given = read_batches(written(b"value") + marker)
    converter = BatchConverter(TargetFormat(magic=magic, codec=Compression.GZIP), lambda batch: False)
    found = list(read_batches(b"".join(converter.convert(given))))
    assert [batch.base_offset for batch in found] == offsets
    assert [batch.compression for batch in found] == [Compression.GZIP, Compression.NONE][: len(offsets)]
