"""Batches to another magic by way of columns: what most of a log is, at the speed of the kernels.

Takes batches with CreateTime (or none); records of neighbouring batches share new ones. What columns cannot say exactly
is left to the object path: the caller gets None and does it there.
"""

from __future__ import annotations

from dataclasses import dataclass

from kwire.errors import CorruptBatch, EncodeError
from kwire.records import Batch, ColumnReader, ColumnWriter, Compression, TimestampType
from kwire.records.attributes import NO_LEADER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from kwire.records.conversion import Lost

__all__ = ["ColumnConversion", "columns_can"]

BATCH_BYTES = 128 << 10  # of a new batch before compression


def columns_can(batch: Batch, magic: int) -> bool:
    """Whether a batch may go to a magic by way of columns."""
    if batch.magic == magic or batch.is_control or batch.count == 0:
        return False
    return batch.timestamp_type != TimestampType.LOG_APPEND_TIME


@dataclass(frozen=True, slots=True)
class Columns:
    """What came out: new batches, their records, what they have lost."""

    data: bytes
    records: int
    lost: Lost


class ColumnConversion:
    """Converts runs of batches. Keeps its buffers from run to run."""

    def __init__(self, magic: int, level: int | None) -> None:
        self._magic, self._level = magic, level
        self._names = ["offset", "key", "value", "timestamp", *(["headers"] if magic < 2 else [])]
        self._reader = ColumnReader(self._names, topic="", partition=0, check_crc=False)

    def convert(self, run: list[Batch], data: bytes, codec: Compression) -> Columns | None:
        """A run of batches that columns_can take, joined in data; None where it has to go by way of objects."""
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
            return None  # the object path says what is wrong, or copes
        if self._reader.stopped is not None or self._reader.consumed != len(data):
            return None
        for each in run if self._magic < 2 else ():
            lost.batches_with_producer += each.producer_id != NO_PRODUCER_ID
            lost.batches_with_leader_epoch += each.partition_leader_epoch != NO_LEADER_EPOCH
        return Columns(bytes(out), records, lost)
