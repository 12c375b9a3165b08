"""One pass over a log: read the dirty range into an offset map, then filter all segments up to the map's end.

Reads files and writes none: the output is the bytes of new segments, chunk by chunk, and the entries of their
transaction indexes. Memory: the map and a few chunks.
Source: rules X-10 to X-12, X-34, X-36; kafka.log.Cleaner.doClean, buildOffsetMap, cleanSegments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kwire.errors import CorruptBatch
from kwire.log.cleaner.cleaner_stats import CleanerStats
from kwire.log.cleaner.cleaning_plan import CleaningPlan, group_segments
from kwire.log.cleaner.log_state import LogState, SourceSegment
from kwire.log.cleaner.offset_map import OffsetMap
from kwire.log.cleaner.record_filter import RecordFilter
from kwire.log.cleaner.retention import CleanedTransactions
from kwire.log.cleaner.sections import Sections
from kwire.log.files.chunks import Chunks
from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.records.attributes import CODEC_MASK, CONTROL_FLAG, TRANSACTIONAL_FLAG
from kwire.records.format import batch_table as t

__all__ = ["CHUNK_BYTES", "CleaningPass"]

CHUNK_BYTES = 1 << 20


@dataclass(slots=True)
class Piece:
    """Bytes of a segment that begin with a batch. used: bytes consumed as whole batches."""

    data: memoryview
    position: int
    file: str
    used: int = 0


class CleaningPass:
    """A pass over one log: build_map(), then clean(group) for each of groups(), in order.

    offset_map: empty. stats: counts so far. end_offset: after build_map, the first offset that is not clean, which is
    the new cleaner checkpoint (X-36).
    """

    def __init__(
        self, log: LogState, plan: CleaningPlan, offset_map: OffsetMap, *, now_ms: int, max_decompressed_bytes: int
    ) -> None:
        self.log, self.plan, self.stats = log, plan, CleanerStats(passes=1)
        self.end_offset = plan.first_dirty_offset
        self._map, self._now_ms, self._max_decompressed_bytes = offset_map, now_ms, max_decompressed_bytes
        self._buffer = bytearray(CHUNK_BYTES)
        self._filter: RecordFilter | None = None
        self._transactions = CleanedTransactions()
        clean = log.segments_from(0, plan.first_dirty_offset)
        # segments modified until then lose tombstones of magic 0 and 1. The pass replaces this segment.
        self._old_horizon_ms = clean[-1].modified_ms - log.config.delete_retention_ms if clean else 0

    @property
    def read_bytes(self) -> int:
        """Bytes of the log read so far: the dirty range for the map, then everything up to its end."""
        return self.stats.map_bytes_read + self.stats.bytes_read

    # ---- the map

    def build_map(self) -> Iterator[None]:
        """Read the keys from the first dirty offset to the end of the plan, or until the map is full (X-10 to X-12).

        Yields after each chunk; end_offset is valid at the end. Raises CorruptBatch, LogError.
        """
        plan, transactions = self.plan, CleanedTransactions()
        dirty = self.log.segments_from(plan.first_dirty_offset, plan.end_offset)
        transactions.add(entry for each in dirty for entry in each.aborted)
        transactions.add(entry for each in self._behind(plan.end_offset) for entry in each.aborted)
        sections = Sections(self._max_decompressed_bytes)
        is_full = False
        for i, segment in enumerate(dirty):
            for piece in self._pieces(segment, segment.position_of(plan.first_dirty_offset)):
                piece.used = sections.load(piece.data, piece.position, piece.file)
                is_full = self._map_table(sections, transactions)
                self.stats.map_bytes_read += piece.used
                yield
                if is_full:
                    break
            if is_full:
                break
            self._map.advance((dirty[i + 1].base_offset if i + 1 < len(dirty) else plan.end_offset) - 1)
        self.stats.map_utilization = self._map.utilization
        if self._map.latest_offset >= 0:
            self.end_offset = self._map.latest_offset + 1

    def _behind(self, offset: int) -> Sequence[SourceSegment]:
        """Return the segments from offset on, whose indexes have the aborted transactions that began before it."""
        return [each for each in self.log.segments if each.base_offset >= offset]

    def _map_table(self, sections: Sections, transactions: CleanedTransactions) -> bool:
        """Put the keys of a chunk into the map; return True if the map is full."""
        table = sections.table
        attributes, is_default = table[:, t.ATTRIBUTES], table[:, t.MAGIC] == 2
        alone = (attributes & CODEC_MASK != 0) | (is_default & (attributes & (CONTROL_FLAG | TRANSACTIONAL_FLAG) != 0))
        borders = np.flatnonzero(alone).tolist()
        done = 0
        for row in [*borders, len(table)]:
            if done < row and not self._map.put_batches(sections, done, row, self.plan.first_dirty_offset):
                return True
            done = row + 1
            if row == len(table):
                return False
            if not self._map_one(sections, row, transactions):
                return True
        return False

    def _map_one(self, sections: Sections, row: int, transactions: CleanedTransactions) -> bool:
        """Put the keys of one compressed or transactional batch into the map; return False if the map is full."""
        entry = sections.table[row]
        attributes, last_offset = int(entry[t.ATTRIBUTES]), int(entry[t.LAST_OFFSET])
        is_default = entry[t.MAGIC] == 2
        if is_default and attributes & CONTROL_FLAG:
            transactions.on_control(sections.batch(row))
        elif (
            is_default
            and attributes & TRANSACTIONAL_FLAG
            and transactions.on_data(int(entry[t.PRODUCER_ID]), last_offset)
        ):
            pass  # aborted: its keys do not count
        else:
            if attributes & CODEC_MASK and entry[t.COUNT]:
                sections.expand(row)
            return self._map.put_batches(sections, row, row + 1, self.plan.first_dirty_offset)
        if last_offset >= self.plan.first_dirty_offset:
            self._map.advance(last_offset)
        return True

    # ---- the segments

    def groups(self) -> list[list[SourceSegment]]:
        """Return the segments to clean, grouped into the new segments; empty if nothing was dirty."""
        config = self.log.config
        return group_segments(
            self.log.segments_from(0, self._map.latest_offset + 1),
            max_bytes=config.max_segment_bytes,
            max_index_bytes=config.segment_index_bytes,
            end_offset=self.plan.end_offset,
        )

    def clean(self, group: Sequence[SourceSegment]) -> Iterator[memoryview]:
        """Yield the retained bytes of a group by chunk, possibly empty; each is valid until the next one.

        Raises CorruptBatch, LogError.
        """
        if self._filter is None:
            self._transactions.add(entry for each in self.log.segments for entry in each.aborted)
            self._filter = RecordFilter(
                self._map,
                self._transactions,
                self.log.last_records,
                self.stats,
                end_offset=self.plan.end_offset,
                now_ms=self._now_ms,
                delete_retention_ms=self.log.config.delete_retention_ms,
                max_decompressed_bytes=self._max_decompressed_bytes,
            )
        for segment in group:
            keeps = segment.modified_ms > self._old_horizon_ms
            for piece in self._pieces(segment, 0):
                piece.used, retained = self._filter.clean(
                    piece.data, piece.position, piece.file, keeps_old_tombstones=keeps
                )
                yield retained
            self.stats.segments_read += 1
        self.stats.segments_written += 1

    def take_aborted(self) -> list[TransactionIndexEntry]:
        """Return the transaction index entries of the output of clean() since the last call."""
        return self._transactions.take_kept()

    # ---- reading

    def _pieces(self, segment: SourceSegment, position: int) -> Iterator[Piece]:
        """Yield the pieces of a segment from position on; the caller sets `used` of each.

        Raises CorruptBatch if the file ends inside a batch: the rest of a closed segment was lost.
        """
        stop = segment.size_bytes
        with segment.opened() as file:
            chunks = Chunks(
                file,
                position,
                stop,
                chunk_bytes=CHUNK_BYTES,
                max_batch_bytes=self._max_decompressed_bytes,
                buffer=self._buffer,
            )
            while (chunk := chunks.next_chunk()) is not None:
                piece = Piece(chunk, chunks.position, file.url)
                yield piece
                if not chunks.advance(piece.used):
                    break
            self._buffer = chunks.buffer
            if chunks.refused is not None:
                raise chunks.refused
            if chunks.position < stop:
                what = f"the segment ends inside this batch: {stop - chunks.position} bytes remain"
                raise CorruptBatch(what, chunks.position, (), file.url)
