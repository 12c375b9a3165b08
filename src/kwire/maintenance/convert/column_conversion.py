"""Conversion of batches to another magic by columns, at the speed of the kernels.

For batches with CreateTime or no timestamps; records of neighboring batches are merged. Batches that columns cannot
represent exactly are left to the object path: the caller gets None.
"""

from __future__ import annotations

from dataclasses import dataclass

from kwire.errors import CorruptBatch, EncodeError
from kwire.records import Batch, ColumnReader, ColumnWriter, Compression, TimestampType
from kwire.records.attributes import NO_LEADER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from kwire.records.convert.conversion import Lost

__all__ = ["ColumnConversion", "supports_columns"]

BATCH_BYTES = 128 << 10  # of a new batch before compression


def supports_columns(batch: Batch, magic: int) -> bool:
    """Return whether a batch can be converted to a magic by columns."""
    if batch.magic == magic or batch.is_control or batch.count == 0:
        return False
    return batch.timestamp_type != TimestampType.LOG_APPEND_TIME


@dataclass(frozen=True, slots=True)
class Columns:
    """The result: new batches, their record count and their loss."""

    data: bytes
    records: int
    lost: Lost


class ColumnConversion:
    """Converter of runs of batches. Reuses its buffers."""

    def __init__(self, magic: int, level: int | None) -> None:
        self._magic, self._level = magic, level
        self._names = ["offset", "key", "value", "timestamp", *(["headers"] if magic < 2 else [])]
        self._reader = ColumnReader(self._names, topic="", partition=0, check_crc=False)

    def convert(self, run: list[Batch], data: bytes, codec: Compression) -> Columns | None:
        """Convert a run of batches for which supports_columns is true, joined in data; None if objects are required."""
        lost, out, records = Lost(), bytearray(), 0
        writer = ColumnWriter(
            magic=self._magic,
            compression=codec,
            level=self._level,
            batch_size=BATCH_BYTES,
            keep_offsets=True,
        )
        try:
            for batch in self._reader.read(data, position=0):
                times = batch.column("timestamp")
                if times.null_count:
                    return None  # too large for microseconds
                if self._magic < 2:
                    lost.records_with_headers += batch.num_rows - batch.column("headers").null_count
                    batch = batch.drop_columns(["headers"])
                if self._magic == 0:
                    ms = times.cast("int64").to_numpy()
                    lost.records_with_timestamp += int((ms != NO_TIMESTAMP * 1000).sum())
                records += batch.num_rows
                for piece in writer.write(batch):
                    out += piece
        except (CorruptBatch, EncodeError):
            return None  # the object path converts it or reports the error
        if self._reader.stopped is not None or self._reader.consumed != len(data):
            return None
        for each in run if self._magic < 2 else ():
            lost.batches_with_producer += each.producer_id != NO_PRODUCER_ID
            lost.batches_with_leader_epoch += each.partition_leader_epoch != NO_LEADER_EPOCH
        return Columns(bytes(out), records, lost)
