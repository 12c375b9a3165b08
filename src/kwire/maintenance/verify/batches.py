"""Check every batch of one segment: runs of valid batches, and the damage between them.

    table     headers of the batches of a chunk, by kwire.records' scan
    check     checksums; the length of a batch with a wrong checksum is used only if the next batch confirms it
    order     offsets increase and stay in the segment; of two that overlap, the one that does not fit its neighbours
    records   decompressed and decoded by the columnar kernels; offsets and timestamps of all records are checked
    resync    after damage of unknown length: the next bytes that are a batch with a valid checksum

Memory is one chunk (8 MiB, or the largest batch) and its tables, whatever the segment's size.
Source: rules R-01 to R-04, D-05, D-07, G-08; Kafka's FileLogInputStream, LogSegment.recover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kwire.errors import CorruptBatch
from kwire.log.files.chunks import Chunks
from kwire.log.files.damage import Kind
from kwire.log.files.index_writer import LARGEST_RELATIVE
from kwire.log.files.offset_checks import offset_limit, outside_segment, overlapping
from kwire.log.files.segment import Segment
from kwire.maintenance.verify.resync import Range, next_valid_batch
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES, read_batches
from kwire.records.attributes import CODEC_MASK
from kwire.records.columns.reader import ColumnReader
from kwire.records.format import batch_table as t
from kwire.records.format.batch_checksums import mark_wrong_crcs
from kwire.records.format.batch_header import (
    BASE_SEQUENCE_POSITION,
    DEFAULT_HEADER_BYTES,
    LEADER_EPOCH_POSITION,
    PRODUCER_EPOCH_POSITION,
    parse_header,
)
from kwire.storage.header_walk import header_at, is_zero_tail
from kwire.storage.store import StoredFile

__all__ = ["DamagedRange", "ScanResult", "SegmentScan", "SuspectBatch", "ValidBatches"]

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

CHUNK_BYTES = 8 << 20
TABLE_ROWS = 4096
NO_RECORD = -(1 << 63)
EXTRA = np.dtype(
    {
        "names": ["leader_epoch", "producer_epoch", "base_sequence"],
        "formats": [">i4", ">i2", ">i4"],
        "offsets": [LEADER_EPOCH_POSITION, PRODUCER_EPOCH_POSITION, BASE_SEQUENCE_POSITION],
        "itemsize": DEFAULT_HEADER_BYTES,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedRange:
    """Bytes [position, position + size_bytes) of a segment that are not a valid batch.

    offsets: (first, last) lost with them, None if there are none or they are unknown. is_tail: no valid batch follows
    in this segment. restored_offset: the only value that fits between the neighbours if just the offset field of a
    batch is wrong; in magic 0 and 1 the last record's offset.
    """

    position: int
    size_bytes: int
    kind: Kind
    cause: str
    offsets: tuple[int, int] | None = None
    is_tail: bool = False
    restored_offset: int | None = None

    @property
    def end(self) -> int:
        """The position after it."""
        return self.position + self.size_bytes


class SuspectBatch(NamedTuple):
    """A readable batch that no broker would have written. It is part of ValidBatches as well.

    restored_epoch: the neighbours' leader epoch, if only this field is wrong and they agree.
    """

    position: int
    size_bytes: int
    kind: Kind
    cause: str
    offsets: tuple[int, int]
    restored_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidBatches:
    """A run of valid batches: int64 columns, one row per batch; -1 for fields that a format does not have.

    position: in the file. base: first offset (in magic 2; else as last). max_timestamp: in milliseconds, from the
    header; newest: the largest of the records, as a broker would write it. chunk, chunk_position: their bytes.
    """

    position: Int64s
    size: Int64s
    base: Int64s
    last: Int64s
    attributes: Int64s
    max_timestamp: Int64s
    newest: Int64s
    count: Int64s
    magic: Int64s
    producer_id: Int64s
    producer_epoch: Int64s
    base_sequence: Int64s
    leader_epoch: Int64s
    chunk: memoryview
    chunk_position: int

    def has_holes(self, before: int | None) -> bool:
        """Return whether offsets are missing between these batches, or between `before`, the previous end, and them.

        Compressed messages of magic 0 and 1 have their last offset only, so gaps before them are not visible.
        """
        if ((self.magic == 2) & (self.count != self.last - self.base + 1)).any():
            return True
        ends = np.concatenate(([self.base[0] if before is None else before], self.last[:-1] + 1))
        exact = (self.magic == 2) | (self.attributes & CODEC_MASK == 0)
        return bool((exact & (self.base != ends)).any())

    def bytes_of(self, row: int) -> memoryview:
        """Return the bytes of a batch."""
        at = int(self.position[row]) - self.chunk_position
        return self.chunk[at : at + int(self.size[row])]


ScanResult = ValidBatches | DamagedRange | SuspectBatch


class SegmentScan:
    """Scan of one segment: iterate over the results in file order. Not thread-safe.

    next_offset: after the last valid batch so far, initially the base offset. advance: called with bytes read.
    """

    def __init__(self, segment: Segment, *, advance: Callable[[int], None] | None = None) -> None:
        self.segment = segment
        self.next_offset = segment.base_offset
        self.position = 0
        self._ceiling = offset_limit(segment)
        if segment.is_active:  # a broker rolls the segment before an offset exceeds the range of its index
            self._ceiling = min(self._ceiling, segment.base_offset + LARGEST_RELATIVE + 1)
        self._advance = advance
        self._table = np.empty((TABLE_ROWS, t.COLUMN_COUNT), np.int64)
        self._errors: list[CorruptBatch] = []
        self._readers: dict[bool, ColumnReader] = {}
        self._is_exact = True  # whether BASE_OFFSET of all rows of the table is that of their first record
        self._resumes_at: int | None = None  # end of damage that is not the end of a row of the table

    def __iter__(self) -> Iterator[ScanResult]:
        with self.segment.open() as file:
            size = file.size()
            chunks = Chunks(
                file,
                0,
                size,
                chunk_bytes=CHUNK_BYTES,
                max_batch_bytes=DEFAULT_MAX_DECOMPRESSED_BYTES,
                buffer=bytearray(),
            )
            while (chunk := chunks.next_chunk()) is not None:
                before = chunks.position
                for result in self._chunk(file, chunk, before, size):
                    yield result
                    if isinstance(result, DamagedRange):
                        chunks.skip_to(result.end)
                used = self.position - before
                if chunks.position < self.position:
                    if not chunks.advance(self.position - chunks.position):
                        break
                elif used == 0 and not chunks.advance(0):
                    damaged = self._tail(file, chunks, size)
                    yield damaged
                    self.position = damaged.end
                    chunks.skip_to(damaged.end)
                if self._advance:
                    self._advance(self.position - before)

    # ---- one chunk

    def _chunk(self, file: StoredFile, chunk: memoryview, position: int, size: int) -> Iterator[ScanResult]:
        """Yield the batches of one chunk; self.position is then after the last of them."""
        self.position = position
        data = np.frombuffer(chunk, np.uint8)
        at, status = 0, t.FULL
        while status == t.FULL:
            rows, scanned, status = t.scan_batches(data, at, self._table)
            if not rows:
                break
            table = self._table[:rows]
            held = 0
            if position + scanned < size and rows > 1 and status != t.UNBELIEVABLE:
                held = 1  # the last row is checked with the rows after it; here it serves as a neighbour only
                scanned = int(table[-1, t.POSITION])
            mark_wrong_crcs(data, table)
            yield from self._rows(file, data, chunk, table, held, position, size)
            if self._resumes_at is not None:
                self.position, self._resumes_at = self._resumes_at, None
                return
            at = scanned
            self.position = position + at
            if held and status != t.FULL:
                return
        if status == t.UNBELIEVABLE:
            what = _header_text(chunk[at : at + DEFAULT_HEADER_BYTES], file.url)
            damaged = self._damaged_to_next_batch(file, position + at, size, Kind.HEADER, what)
            self.position = damaged.end
            yield damaged

    def _rows(
        self,
        file: StoredFile,
        data: npt.NDArray[np.uint8],
        chunk: memoryview,
        table: Int64s,
        held: int,
        position: int,
        size: int,
    ) -> Iterator[ScanResult]:
        """Yield the results of a table's rows except the last `held`, up to damage of unknown length."""
        bad_crc = table[:, t.FAULT] == t.BAD_CRC
        wrappers = ~bad_crc & (table[:, t.MAGIC] < 2) & (table[:, t.ATTRIBUTES] & CODEC_MASK != 0)
        self._is_exact = not wrappers.any()
        unlike = np.zeros(len(table), np.bool_)
        # records inside magic 0 have absolute offsets, so only the message itself reveals a wrong outer offset
        is_old = bool((wrappers & (table[:, t.MAGIC] == 0)).any())
        if not self._is_exact and (is_old or not self._rises(data, table)):
            unlike = self._look_inside(data, table, np.flatnonzero(wrappers))
        out = self._out_of_order(table, bad_crc | unlike) | unlike
        count = len(table) - held
        wrong = np.flatnonzero((bad_crc | out)[:count])
        first = 0
        for i in wrong.tolist():
            yield from self._decoded(file, data, chunk, table[first:i], position)
            if bad_crc[i]:
                damaged = self._wrong_checksum(file, table, i, position, size)
            else:
                damaged = self._wrong_offsets(table, i, out, position)
            yield damaged
            if damaged.end != position + int(table[i, t.POSITION] + table[i, t.SIZE]):
                self._resumes_at = damaged.end
                return
            if damaged.restored_offset is not None and damaged.offsets is not None:
                self.next_offset = damaged.offsets[1] + 1
            first = i + 1
        yield from self._decoded(file, data, chunk, table[first:count], position)

    # ---- compressed messages of magic 0 and 1, whose offset is the one of their last record

    def _rises(self, data: npt.NDArray[np.uint8], table: Int64s) -> bool:
        """Return whether all record offsets increase and each message has the offset of its last record."""
        start, end = int(table[0, t.POSITION]), int(table[-1, t.POSITION] + table[-1, t.SIZE])
        before = self.next_offset - 1
        lasts = table[:, t.LAST_OFFSET]
        if (np.diff(lasts) <= 0).any():
            return False
        seen = 0
        reader = ColumnReader(("offset",), check_crc=False, on_corrupt=lambda error: None, include_control=True)
        for rows in reader.read(data.data[start:end]):
            offsets = rows.column("offset").to_numpy(zero_copy_only=False)
            if len(offsets) and (offsets[0] <= before or (np.diff(offsets) <= 0).any()):
                return False
            seen += int(np.isin(lasts, offsets).sum())
            before = int(offsets[-1]) if len(offsets) else before
        return seen == len(lasts)

    def _look_inside(self, data: npt.NDArray[np.uint8], table: Int64s, wrappers: npt.NDArray[np.intp]) -> Mask:
        """Set BASE_OFFSET of compressed messages; return those whose offset is not that of their last record."""
        unlike = np.zeros(len(table), np.bool_)
        for i in wrappers.tolist():
            at = int(table[i, t.POSITION])
            try:
                batch = next(read_batches(data.data[at : at + int(table[i, t.SIZE])]))
                offsets = [record.offset for record in batch.records(check_crc=False)]
            except (CorruptBatch, StopIteration):
                continue  # reported when it is decoded again
            if offsets:
                table[i, t.BASE_OFFSET] = offsets[0]
                unlike[i] = offsets[-1] != table[i, t.LAST_OFFSET]
                if unlike[i]:
                    table[i, t.LAST_OFFSET] = offsets[-1]
        self._is_exact = True
        return unlike

    # ---- damage of one row

    def _wrong_checksum(self, file: StoredFile, table: Int64s, i: int, position: int, size: int) -> DamagedRange:
        """Handle a batch with a wrong checksum: its length is right if the next batch continues its offsets."""
        start, end = position + int(table[i, t.POSITION]), position + int(table[i, t.POSITION] + table[i, t.SIZE])
        first, last = int(table[i, t.BASE_OFFSET]), int(table[i, t.LAST_OFFSET])
        data = file.pread(start, end - start)
        what = "wrong checksum"
        for batch in read_batches(data, position=start, file=file.url):
            what = f"stored CRC {batch.crc}, computed {batch.computed_crc()}"
        if self.next_offset <= first <= last < self._ceiling:
            following = header_at(file, end)
            contiguous = following is not None and following.magic == 2 and following.stored_offset == last + 1
            if contiguous or (end == size and int(table[i, t.MAGIC]) < 2):
                return DamagedRange(
                    position=start,
                    size_bytes=end - start,
                    kind=Kind.CHECKSUM,
                    cause=what,
                    offsets=(first, last),
                    is_tail=end == size,
                )
        claimed = (first, last) if self.next_offset <= first <= last < self._ceiling else None
        return self._damaged_to_next_batch(file, start, size, Kind.CHECKSUM, what, claimed=claimed, claimed_end=end)

    def _damaged_to_next_batch(
        self,
        file: StoredFile,
        start: int,
        size: int,
        kind: Kind,
        what: str,
        *,
        claimed: tuple[int, int] | None = None,
        claimed_end: int | None = None,
    ) -> DamagedRange:
        """Return the damage from here to the next batch with a valid checksum, or the end of the file."""
        if kind is Kind.HEADER and is_zero_tail(file, start):
            return DamagedRange(
                position=start,
                size_bytes=size - start,
                kind=Kind.ZEROS,
                cause=f"{size - start} zero bytes to the end of the file",
                offsets=self._lost_to_next_segment(),
                is_tail=True,
            )
        next_batch = next_valid_batch(file, start + 1, size, Range(self.next_offset, self._ceiling))
        if next_batch is None:
            offsets = claimed if claimed_end == size else self._lost_to_next_segment() or claimed
            return DamagedRange(
                position=start, size_bytes=size - start, kind=kind, cause=what, offsets=offsets, is_tail=True
            )
        end = next_batch.stored_offset if next_batch.magic == 2 else None
        offsets = claimed if end is None else (self.next_offset, end - 1) if end > self.next_offset else None
        if claimed is not None and claimed_end == next_batch.position:
            offsets = claimed
        return DamagedRange(
            position=start, size_bytes=next_batch.position - start, kind=kind, cause=what, offsets=offsets
        )

    def _lost_to_next_segment(self) -> tuple[int, int] | None:
        """Return the offsets from here to the next segment, if known."""
        end = self.segment.next_base
        return (self.next_offset, end - 1) if end is not None and end > self.next_offset else None

    def _tail(self, file: StoredFile, chunks: Chunks, size: int) -> DamagedRange:
        """Return the damage at the end of the file: an incomplete or too large batch."""
        start = chunks.position
        if is_zero_tail(file, start):
            return self._damaged_to_next_batch(file, start, size, Kind.HEADER, "")
        next_batch = next_valid_batch(file, start + 1, size, Range(self.next_offset, self._ceiling))
        header = header_at(file, start)
        if next_batch is None and chunks.refused is None:
            claimed = None
            if header is not None and self.next_offset <= header.stored_offset <= header.last_offset < self._ceiling:
                claimed = (header.stored_offset, header.last_offset)
            left = size - start
            length = "" if header is None else f" of {header.size_bytes}"
            return DamagedRange(
                position=start,
                size_bytes=left,
                kind=Kind.CUT,
                cause=f"the file ends inside a batch: {left}{length} bytes remain",
                offsets=self._lost_to_next_segment() or claimed,
                is_tail=True,
            )
        what = chunks.refused.what if chunks.refused is not None else "its length extends past the end of the file"
        return self._damaged_to_next_batch(file, start, size, Kind.HEADER, what)

    def _out_of_order(self, table: Int64s, bad_crc: Mask) -> Mask:
        """Return which rows with a valid checksum have offsets that do not fit between their neighbours."""
        out = np.zeros(len(table), np.bool_)
        while True:
            rows = np.flatnonzero(~(out | bad_crc))
            if not len(rows):
                return out
            first, last = table[rows, t.BASE_OFFSET], table[rows, t.LAST_OFFSET]
            before = np.empty_like(last)
            before[0], before[1:] = self.next_offset - 1, last[:-1]
            wrong = (first <= before) | (last >= self._ceiling) | (last < first)
            if not wrong.any():
                return out
            i = int(wrong.argmax())
            if i and first[i] <= last[i] < self._ceiling and first[i] > before[i - 1]:
                fits_before = first[i - 1] == before[i - 1] + 1
                fits_behind = i + 1 < len(rows) and first[i + 1] == last[i] + 1
                if not fits_before or fits_behind:
                    i -= 1
            out[rows[i]] = True

    def _wrong_offsets(self, table: Int64s, i: int, out: Mask, position: int) -> DamagedRange:
        """Return the damage of a batch with a wrong offset, which neighbours may determine."""
        first, last = int(table[i, t.BASE_OFFSET]), int(table[i, t.LAST_OFFSET])
        next_base = int(table[i + 1, t.BASE_OFFSET]) if i + 1 < len(table) and not out[i + 1] else None
        span = last - first
        restored = None
        if self._is_exact and next_base is not None and next_base - self.next_offset == span + 1:
            restored = self.next_offset
        what = outside_segment(self.next_offset, self._ceiling)
        if self.next_offset <= first <= last < self._ceiling and next_base is not None:
            what = overlapping(next_base)
        if restored is not None:
            offsets: tuple[int, int] | None = (restored, restored + span)
        elif next_base is not None and next_base > self.next_offset:
            offsets = (self.next_offset, next_base - 1)
        else:
            offsets = None
        return DamagedRange(
            position=position + int(table[i, t.POSITION]),
            size_bytes=int(table[i, t.SIZE]),
            kind=Kind.OFFSETS,
            cause=f"offsets {first} to {last}: {what}",
            offsets=offsets,
            restored_offset=restored if restored is None or int(table[i, t.MAGIC]) == 2 else restored + span,
        )

    # ---- records

    def _decoded(
        self, file: StoredFile, data: npt.NDArray[np.uint8], chunk: memoryview, table: Int64s, position: int
    ) -> Iterator[ScanResult]:
        """Decode the records of rows with valid checksums and offsets; yield damage for those that do not."""
        if not len(table):
            return
        legacy = bool((table[:, t.MAGIC] < 2).any())
        start, end = int(table[0, t.POSITION]), int(table[-1, t.POSITION] + table[-1, t.SIZE])
        reader = self._reader(legacy)
        wrong: dict[int, str] = {}
        suspects: dict[int, tuple[Kind, str]] = {}
        ends = table[:, t.LAST_OFFSET]
        before = self.next_offset - 1
        newest = np.full(len(table), NO_RECORD, np.int64)
        unfit = np.zeros(len(table) + 1, bool)  # one more for an offset after the last, which is damage
        for rows in reader.read(chunk[start:end], position=position + start, file=file.url):
            offsets = rows.column("offset").to_numpy(zero_copy_only=False)
            column = rows.column("timestamp")
            if column.null_count:  # beyond the microseconds of the column
                unfit[np.searchsorted(ends, offsets[column.is_null().to_numpy(zero_copy_only=False)])] = True
            times = column.cast("int64").fill_null(-1000).to_numpy(zero_copy_only=False) // 1000
            before = _check_records(offsets, times, before, table, suspects, newest)
        for i in np.flatnonzero(unfit[:-1]).tolist():
            newest[i] = _newest(chunk, table[i])
        largest = table[:, t.MAX_TIMESTAMP]
        newest = np.where(newest == NO_RECORD, largest, newest)
        for i in np.flatnonzero(newest != largest).tolist():
            what = f"its largest record timestamp is {newest[i]}, its header has {largest[i]}"
            suspects.setdefault(i, (Kind.TIMESTAMPS, what))
        for error in self._errors:
            row = int(np.searchsorted(table[:, t.POSITION], error.position - position))
            wrong[row] = error.what
        self._errors.clear()
        for i, (kind, what) in sorted(suspects.items()):
            if i not in wrong:
                yield SuspectBatch(
                    position + int(table[i, t.POSITION]), int(table[i, t.SIZE]), kind, what, _claimed(table, i)
                )
        first = 0
        for i in sorted(wrong):
            if i > first:
                yield self._valid_batches(data, chunk, table[first:i], position, newest[first:i])
            yield DamagedRange(
                position=position + int(table[i, t.POSITION]),
                size_bytes=int(table[i, t.SIZE]),
                kind=Kind.RECORDS,
                cause=wrong[i],
                offsets=_claimed(table, i),
            )
            first = i + 1
        if first < len(table):
            yield self._valid_batches(data, chunk, table[first:], position, newest[first:])
        self.next_offset = int(ends[-1]) + 1

    def _reader(self, check_crc: bool) -> ColumnReader:
        """Return a cached reader. check_crc: verify inner messages of magic 0 and 1; outer checksums are verified."""
        if check_crc not in self._readers:
            self._readers[check_crc] = ColumnReader(
                ("offset", "timestamp"), check_crc=check_crc, on_corrupt=self._errors.append, include_control=True
            )
        return self._readers[check_crc]

    def _valid_batches(
        self, data: npt.NDArray[np.uint8], chunk: memoryview, table: Int64s, position: int, newest: Int64s
    ) -> ValidBatches:
        at = table[:, t.POSITION]
        extra = np.zeros(len(table), EXTRA)
        magic = table[:, t.MAGIC]
        default = magic == 2
        places = at[default][:, None] + np.arange(DEFAULT_HEADER_BYTES)
        extra[default] = np.ascontiguousarray(data[places]).view(EXTRA)[:, 0]
        self.next_offset = int(table[-1, t.LAST_OFFSET]) + 1

        def field(name: str) -> Int64s:
            return np.where(default, extra[name].astype(np.int64), -1)

        return ValidBatches(
            position=at + position,
            size=table[:, t.SIZE].copy(),
            base=table[:, t.BASE_OFFSET].copy(),
            last=table[:, t.LAST_OFFSET].copy(),
            attributes=table[:, t.ATTRIBUTES].copy(),
            max_timestamp=table[:, t.MAX_TIMESTAMP].copy(),
            newest=newest,
            count=table[:, t.COUNT].copy(),
            magic=magic.copy(),
            producer_id=table[:, t.PRODUCER_ID].copy(),
            producer_epoch=field("producer_epoch"),
            base_sequence=field("base_sequence"),
            leader_epoch=field("leader_epoch"),
            chunk=chunk,
            chunk_position=position,
        )


def _check_records(
    offsets: Int64s, times: Int64s, before: int, table: Int64s, suspects: dict[int, tuple[Kind, str]], newest: Int64s
) -> int:
    """Find batches whose records' offsets do not increase; store the largest timestamp of each in newest.

    before: offset of the record before these. Returns the last offset.
    """
    if not len(offsets):
        return before
    ends = table[:, t.LAST_OFFSET]
    previous = np.empty_like(offsets)
    previous[0], previous[1:] = before, offsets[:-1]
    owners = np.minimum(np.searchsorted(ends, offsets), len(ends) - 1)
    falling = (offsets <= previous) | (offsets > ends[-1])
    for row in np.unique(owners[falling]).tolist():
        suspects.setdefault(row, (Kind.OFFSETS, "the offsets of its records do not increase"))
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    rows = owners[starts]
    np.maximum.at(newest, rows, np.maximum.reduceat(times, starts))
    return int(offsets[-1])


def _newest(chunk: memoryview, row: Int64s) -> int:
    """Return the largest timestamp of the records of a batch, as plain Python reads it; NO_RECORD for damage."""
    at = int(row[t.POSITION])
    try:
        (batch,) = read_batches(chunk[at : at + int(row[t.SIZE])])
        return max(record.timestamp for record in batch.records())
    except CorruptBatch:
        return NO_RECORD  # reported where it is decoded


def _claimed(table: Int64s, i: int) -> tuple[int, int]:
    return int(table[i, t.BASE_OFFSET]), int(table[i, t.LAST_OFFSET])


def _header_text(data: memoryview, file: str) -> str:
    try:
        parse_header(bytes(data), 0, 0, file)
    except CorruptBatch as error:
        return f"not a batch: {error.what}"
    return "no batch starts here"
