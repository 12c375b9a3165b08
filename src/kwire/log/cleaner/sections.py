"""Header table of the verified batches of one chunk; decompresses the records of one batch at a time.

Source: rules R-01 to R-04, R-20 to R-26.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from kwire.errors import CorruptBatch, Malformed
from kwire.records import Batch, Record, read_batches
from kwire.records.attributes import CODEC_MASK, Compression
from kwire.records.compression.codecs import RoomExhausted, expand_into, largest_room
from kwire.records.format import batch_table as t
from kwire.records.format.batch import too_large
from kwire.records.format.batch_checksums import mark_wrong_crcs
from kwire.records.format.batch_header import DEFAULT_HEADER
from kwire.records.format.default_batch import SMALLEST_RECORD_BYTES
from kwire.records.format.faults import Fault
from kwire.records.format.legacy_batch import LegacyBatch

__all__ = ["Sections", "Table", "records_of"]

Table = npt.NDArray[np.int64]

TABLE_ROWS = 32768
FIRST_ROOM_BYTES = 1 << 20


def records_of(batch: Batch) -> Iterable[Record]:
    """Return the records. Of an empty batch nothing is read, as in Kafka (DefaultRecordBatch.iterator)."""
    return () if batch.count == 0 else batch.records(check_crc=False)


class Sections:
    """The batches of the loaded chunk. table: header table. address: of the first byte of the chunk."""

    def __init__(self, max_decompressed_bytes: int) -> None:
        self._max_decompressed_bytes = max_decompressed_bytes
        self._rows: Table = np.empty((TABLE_ROWS, t.COLUMN_COUNT), np.int64)
        self.table: Table = self._rows[:0]
        self.address = 0
        self._chunk = memoryview(b"")
        self._position, self._file = 0, ""
        self._expanded: npt.NDArray[np.uint8] = np.empty(0, np.uint8)

    def load(self, chunk: memoryview, position: int, file: str) -> int:
        """Load a chunk; return the size of its whole batches, or of those that fit the table.

        position, file: origin of chunk, for errors. chunk is referenced until the next call.
        Raises CorruptBatch for an invalid size, magic, checksum or record count.
        """
        data = np.frombuffer(chunk, np.uint8)
        self.address, self._chunk, self._position, self._file = data.ctypes.data, chunk, position, file
        count, used, status = t.scan_batches(data, 0, self._rows)
        self.table = self._rows[:count]
        if status == t.UNBELIEVABLE and not count:
            for _ in read_batches(chunk, position=position, file=file):
                raise AssertionError("kernel and parser disagree on a batch header")
        self._check(data)
        return int(used)

    def _check(self, data: npt.NDArray[np.uint8]) -> None:
        table = self.table
        is_default = table[:, t.MAGIC] == 2
        mark_wrong_crcs(data, table)
        is_unknown = table[:, t.ATTRIBUTES] & CODEC_MASK > int(Compression.ZSTD)
        for i in np.flatnonzero((table[:, t.FAULT] != 0) | is_unknown).tolist():
            self.batch(i).check()
        counts = table[:, t.COUNT]
        is_plain = is_default & (table[:, t.ATTRIBUTES] & CODEC_MASK == 0)
        too_many = is_plain & (counts * SMALLEST_RECORD_BYTES > table[:, t.END] - table[:, t.START])
        for i in np.flatnonzero(too_many | (counts < 0)).tolist():
            raise self.fault(i, int(Fault.RECORD_COUNT))

    def bytes_of(self, row: int) -> memoryview:
        """Return the bytes of the batch of a row."""
        at = int(self.table[row, t.POSITION])
        return self._chunk[at : at + int(self.table[row, t.SIZE])]

    def batch(self, row: int) -> Batch:
        """Return the batch of a row."""
        return next(
            read_batches(
                self.bytes_of(row),
                position=self._position + int(self.table[row, t.POSITION]),
                file=self._file,
                max_decompressed_bytes=self._max_decompressed_bytes,
            )
        )

    def expand(self, row: int) -> None:
        """Decompress the records of a row; START, END, COUNT and SHIFT then refer to them until the next call.

        Raises CorruptBatch.
        """
        entry = self.table[row]
        if entry[t.MAGIC] == 2:
            n_bytes = self._decompress(row, int(entry[t.ATTRIBUTES]) & CODEC_MASK)
            if entry[t.COUNT] * SMALLEST_RECORD_BYTES > n_bytes:
                raise self.fault(row, int(Fault.RECORD_COUNT))
        else:
            batch = self.batch(row)
            assert isinstance(batch, LegacyBatch)
            payload = batch.inner_payload()
            entry[t.SHIFT], entry[t.COUNT] = batch.inner_base(payload)
            self._expanded, n_bytes = np.frombuffer(payload, np.uint8), len(payload)
        entry[t.START] = self._expanded.ctypes.data
        entry[t.END] = entry[t.START] + n_bytes

    def _decompress(self, row: int, codec: int) -> int:
        """Decompress the records of a batch of magic 2 into _expanded; return their size."""
        limit = self._max_decompressed_bytes
        most = largest_room(limit)
        source = self.bytes_of(row)[DEFAULT_HEADER.size :]
        while True:
            if not self._expanded.flags.writeable or not len(self._expanded):
                self._expanded = np.empty(min(FIRST_ROOM_BYTES, most), np.uint8)
            try:
                written = expand_into(codec, 2, source, self._expanded.data)
                if written <= limit:
                    return written
            except RoomExhausted as short:
                if len(self._expanded) < most:
                    self._expanded = np.empty(min(max(4 * len(self._expanded), short.needed), most), np.uint8)
                    continue
            except Malformed as error:
                raise self.batch(row).corrupt(error.what) from None
            raise self.batch(row).corrupt(too_large(Compression(codec), limit))

    def fault(self, row: int, number: int, record: int = -1) -> CorruptBatch:
        """Return the error for a fault found by a kernel in a row. record: its index, -1 if unknown."""
        batch = self.batch(row)
        is_alone = batch.magic < 2 and not batch.compression
        return batch.corrupt(Fault(number).text, None if record < 0 or is_alone else record)
