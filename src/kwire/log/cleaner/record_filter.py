"""Filter one chunk of a segment: bytes in, the retained bytes out, no files.

One kernel call filters and writes many plain batches. The others are processed one by one: compressed batches, and
those that depend on more than their records: control batches, aborted ones, and the last ones of a producer or of the
range. A batch that retains all records is copied byte for byte (X-30).
Source: rules X-20 to X-33; org.apache.kafka.common.record.MemoryRecords.filterTo, kafka.log.Cleaner.cleanInto.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress, pairwise

import numpy as np
import numpy.typing as npt

from kwire import native
from kwire.log.cleaner import plain_cleaning
from kwire.log.cleaner.cleaner_stats import CleanerStats
from kwire.log.cleaner.layout import KNOWN_FLAGS, LONGEST_NUMBERS, Outcome, Verdict, Weights
from kwire.log.cleaner.offset_map import OffsetMap
from kwire.log.cleaner.retention import CleanedTransactions, LastRecord, Retention, choose_batch
from kwire.log.cleaner.rewriting import empty_batch, rebuild_batch
from kwire.log.cleaner.sections import Sections, Table
from kwire.native.arrays import WIDE
from kwire.records import Batch
from kwire.records.attributes import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    Compression,
)
from kwire.records.columns.encoder_layout import NewBatch
from kwire.records.compression.compressor import compress_into, largest_compressed
from kwire.records.format import batch_table as t
from kwire.records.format.batch_checksums import write_crcs
from kwire.records.format.batch_header import DEFAULT_HEADER, write_crc

__all__ = ["RecordFilter"]

SPARE_BYTES = 1 << 16
PLAIN, COMPRESSED, SPECIAL = range(3)


class RecordFilter:
    """Filters the chunks of a log in their order.

    end_offset: of the cleaned range. now_ms, delete_retention_ms: for the delete horizons of tombstones and markers.
    """

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: CleanedTransactions,
        last_records: Mapping[int, LastRecord],
        stats: CleanerStats,
        *,
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
        max_decompressed_bytes: int,
    ) -> None:
        self._map, self._transactions, self._last_records = offset_map, transactions, last_records
        self._stats = stats
        self._end_offset, self._now_ms, self._new_horizon_ms = end_offset, now_ms, now_ms + delete_retention_ms
        self._sections = Sections(max_decompressed_bytes)
        self._last_data_offsets = np.array(
            [each.last_data_offset for each in last_records.values() if each.last_data_offset is not None], np.int64
        )
        self._keeps: npt.NDArray[np.uint8] = np.empty(SPARE_BYTES, np.uint8)
        self._weights: npt.NDArray[np.int64] = np.empty((0, len(Weights)), np.int64)
        self._outcome: npt.NDArray[np.int64] = np.zeros(len(Outcome), np.int64)
        self._room: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._payload: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._used = 0
        self._keeps_old_tombstones = False

    def clean(
        self, chunk: memoryview, position: int, file: str, *, keeps_old_tombstones: bool
    ) -> tuple[int, memoryview]:
        """Filter a chunk; return (bytes consumed as whole batches, retained bytes, valid until the next call).

        position, file: origin of chunk, for errors. keeps_old_tombstones: whether to retain tombstones of magic 0, 1.
        Raises CorruptBatch and LogError; the chunk is then not counted.
        """
        used = self._sections.load(chunk, position, file)
        table = self._sections.table
        self._keeps_old_tombstones, self._used = keeps_old_tombstones, 0
        self._make_room(used + SPARE_BYTES)
        if len(self._weights) < len(table):
            self._weights = np.empty((len(table), len(Weights)), np.int64)
        is_removable = self._follow_transactions(table)
        kinds = self._kinds(table, is_removable)
        borders = [0, *(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist(), len(table)] if len(table) else []
        for first, last in pairwise(borders):
            if kinds[first] == PLAIN and native.LEVEL is not None:
                self._clean_together(first, last)
            elif kinds[first] != SPECIAL:
                for row in range(first, last):
                    self._clean_records(row, Retention.DELETE)
            else:
                for row in range(first, last):
                    self._clean_one(row, self._sections.batch(row), bool(is_removable[row]))
        self._stats.bytes_read += used
        self._stats.bytes_written += self._used
        return used, self._room.data[: self._used]

    # ---- batches

    def _follow_transactions(self, table: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return for each batch, in log order, whether its transaction permits removal."""
        attributes = table[:, t.ATTRIBUTES]
        is_default = table[:, t.MAGIC] == 2
        is_removable = np.zeros(len(table), np.bool_)
        rows = np.flatnonzero(is_default & (attributes & (TRANSACTIONAL_FLAG | CONTROL_FLAG) != 0))
        control = (attributes[rows] & CONTROL_FLAG != 0).tolist()
        producers, last_offsets = table[rows, t.PRODUCER_ID].tolist(), table[rows, t.LAST_OFFSET].tolist()
        for i, row in enumerate(rows.tolist()):
            if control[i]:
                is_removable[row] = self._transactions.on_control(self._sections.batch(row))
            else:
                is_removable[row] = self._transactions.on_data(producers[i], last_offsets[i])
        return is_removable

    def _kinds(self, table: Table, is_removable: npt.NDArray[np.bool_]) -> npt.NDArray[np.int8]:
        """Return PLAIN, COMPRESSED or SPECIAL for each batch."""
        attributes, is_default = table[:, t.ATTRIBUTES], table[:, t.MAGIC] == 2
        last_offset = table[:, t.LAST_OFFSET]
        special = is_removable | (is_default & (attributes & CONTROL_FLAG != 0))
        special |= is_default & (last_offset + 1 == self._end_offset)
        special |= (table[:, t.PRODUCER_ID] >= 0) & np.isin(last_offset, self._last_data_offsets)
        compressed = (attributes & CODEC_MASK != 0) & (table[:, t.COUNT] != 0)
        return np.where(special, SPECIAL, np.where(compressed, COMPRESSED, PLAIN)).astype(np.int8)

    def _clean_together(self, first: int, last: int) -> None:
        """Filter plain batches, whose records alone decide."""
        self._weigh(first, last)
        rows, weights = self._sections.table[first:last], self._weights[first:last]
        counts, kept, tombstones = rows[:, t.COUNT], weights[:, Weights.KEPT], weights[:, Weights.TOMBSTONES]
        has_horizon = (rows[:, t.MAGIC] < 2) | (rows[:, t.ATTRIBUTES] & DELETE_HORIZON_FLAG != 0)
        is_copy = (kept == counts) & ((tombstones == 0) | has_horizon)
        anew = np.where(weights[:, Weights.IS_CANONICAL] != 0, Verdict.REBUILD, Verdict.LOOK)
        verdicts = np.where(kept == 0, Verdict.DROP, np.where(is_copy, Verdict.COPY, anew))
        self._count(int(counts.sum()), weights.sum(axis=0))
        starts = np.concatenate(([0], np.cumsum(counts)))
        places: Table = np.empty((len(rows), len(NewBatch)), np.int64)
        row = 0
        while True:
            stays = verdicts[row:] != Verdict.DROP
            growth = LONGEST_NUMBERS * counts[row:][verdicts[row:] == Verdict.REBUILD].sum()
            self._make_room(int(rows[row:, t.SIZE][stays].sum() + growth) + WIDE)
            room = self._room.ctypes.data + self._used
            row, written, count = native.write_batches(
                self._sections.address,
                rows,
                verdicts,
                row,
                len(rows),
                starts,
                self._keeps,
                weights,
                self._new_horizon_ms,
                room,
                places,
            )
            write_crcs(self._room[self._used :], places[:count])
            self._used += written
            if row == len(rows):
                return
            keeps = self._keeps[starts[row] : starts[row + 1]]
            self._rebuild(first + row, keeps, has_new_horizon=not has_horizon[row] and tombstones[row] > 0)
            row += 1

    def _clean_one(self, row: int, batch: Batch, is_removable: bool) -> None:
        """Filter a batch that depends on more than its records."""
        choice = choose_batch(
            batch, is_removable, last_records=self._last_records, end_offset=self._end_offset, now_ms=self._now_ms
        )
        if choice.drops_records or batch.count == 0:
            self._count_dropped(batch)
            self._end(batch, choice.when_empty)
            return
        if batch.is_control:
            assert batch.count is not None
            self._stats.records_read += batch.count
            self._stats.records_written += batch.count
            if choice.needs_horizon and batch.delete_horizon_ms is None:
                self._emit(rebuild_batch(batch, batch.records(), self._new_horizon_ms))
            else:
                self._emit(batch.buffer)
            return
        self._clean_records(row, choice.when_empty)

    def _clean_records(self, row: int, when_empty: Retention) -> None:
        """Filter a data batch by its records."""
        entry = self._sections.table[row]
        if entry[t.ATTRIBUTES] & CODEC_MASK and entry[t.COUNT]:
            self._sections.expand(row)
        self._weigh(row, row + 1)
        count, weights = int(entry[t.COUNT]), self._weights[row]
        self._count(count, weights)
        is_old = entry[t.MAGIC] < 2
        has_horizon = is_old or entry[t.ATTRIBUTES] & DELETE_HORIZON_FLAG != 0
        has_new_horizon = bool(weights[Weights.TOMBSTONES] > 0 and not has_horizon)
        if not weights[Weights.KEPT]:
            if when_empty is Retention.RETAIN_EMPTY:
                self._end(self._sections.batch(row), when_empty)
        elif weights[Weights.KEPT] == count and not has_new_horizon and (not is_old or weights[Weights.IS_CANONICAL]):
            self._emit(self._sections.bytes_of(row))
        else:
            self._rebuild(row, self._keeps[:count], has_new_horizon=has_new_horizon)

    def _end(self, batch: Batch, when_empty: Retention) -> None:
        """Drop or empty a batch without retained records."""
        if when_empty is Retention.RETAIN_EMPTY:
            self._stats.batches_emptied += batch.count != 0
            self._emit(empty_batch(batch))

    def _weigh(self, first: int, last: int) -> None:
        """Set _keeps and _weights for the records of batches [first, last)."""
        table, offset_map = self._sections.table, self._map
        records = int(table[first:last, t.COUNT].sum())
        if len(self._keeps) < records:
            self._keeps = np.empty(2 * records, np.uint8)
        if native.LEVEL is None:
            plain_cleaning.weigh_records(  # the caller weighs one batch at a time
                self._sections,
                first,
                offset_map,
                now_ms=self._now_ms,
                keeps_old_tombstones=self._keeps_old_tombstones,
                keeps=self._keeps,
                weights=self._weights[first],
            )
            return
        done = native.weigh_batches(
            table,
            first,
            last,
            self._now_ms,
            self._keeps_old_tombstones,
            offset_map.slots,
            offset_map.state,
            offset_map.secret,
            offset_map.marks_for(table[first:last]),
            self._keeps,
            self._weights,
            self._outcome,
        )
        if done < last:
            raise self._sections.fault(int(done), int(self._outcome[Outcome.FAULT]), int(self._outcome[Outcome.RECORD]))

    # ---- output

    def _make_room(self, n_bytes: int) -> None:
        """Reserve n_bytes and spare space after the used part of the output buffer."""
        need = self._used + n_bytes + SPARE_BYTES
        if len(self._room) < need:
            room: npt.NDArray[np.uint8] = np.empty(need + need // 4, np.uint8)
            room[: self._used] = self._room[: self._used]
            self._room = room

    def _emit(self, data: bytes | memoryview) -> None:
        self._make_room(len(data))
        self._room.data[self._used : self._used + len(data)] = data
        self._used += len(data)

    def _rebuild(self, row: int, keeps: npt.NDArray[np.uint8], *, has_new_horizon: bool) -> None:
        """Write a batch with its retained records, at least one."""
        entry = self._sections.table[row]
        horizon = self._new_horizon_ms if has_new_horizon else None
        if entry[t.MAGIC] == 2 and entry[t.ATTRIBUTES] & DELETE_HORIZON_FLAG:
            horizon = int(entry[t.BASE_TIMESTAMP])  # once set, it stays
        if entry[t.MAGIC] < 2 or not self._weights[row, Weights.IS_CANONICAL]:
            batch = self._sections.batch(row)
            self._emit(rebuild_batch(batch, compress(batch.records(), keeps), horizon))
            return
        codec = Compression(int(entry[t.ATTRIBUTES]) & CODEC_MASK)
        most = int(entry[t.END] - entry[t.START]) + LONGEST_NUMBERS * len(keeps) + WIDE
        at = self._used
        write_kept = plain_cleaning.write_kept if native.LEVEL is None else native.write_kept
        if codec:
            if len(self._payload) < most:
                self._payload = np.empty(2 * most, np.uint8)
            n_bytes, base, largest = write_kept(
                entry, keeps, -1 if horizon is None else horizon, self._payload.ctypes.data
            )
            self._make_room(DEFAULT_HEADER.size + largest_compressed(codec, n_bytes))
            room = self._room.data
            size = DEFAULT_HEADER.size + compress_into(
                codec, self._payload.data[:n_bytes], room[at + DEFAULT_HEADER.size :]
            )
        else:
            self._make_room(DEFAULT_HEADER.size + most)
            room = self._room.data
            n_bytes, base, largest = write_kept(
                entry, keeps, -1 if horizon is None else horizon, self._room.ctypes.data + at + DEFAULT_HEADER.size
            )
            size = DEFAULT_HEADER.size + int(n_bytes)
        source = self._sections.bytes_of(row)
        _, _, leader_epoch, _, _, attributes, delta, _, largest_before, *producer, _ = DEFAULT_HEADER.unpack_from(
            source
        )
        append_time = attributes & LOG_APPEND_TIME_FLAG
        DEFAULT_HEADER.pack_into(
            room,
            at,
            int(entry[t.BASE_OFFSET]),
            size - 12,
            leader_epoch,
            2,
            0,
            attributes & KNOWN_FLAGS | (0 if horizon is None else DELETE_HORIZON_FLAG),
            delta,
            int(base),
            largest_before if append_time else int(largest),
            *producer,
            int(np.count_nonzero(keeps)),
        )
        write_crc(room[at : at + size])
        self._used = at + size

    # ---- counting

    def _count(self, records: int, weights: npt.NDArray[np.int64]) -> None:
        self._stats.records_read += int(records)
        self._stats.records_written += int(weights[Weights.KEPT])
        self._stats.tombstones_dropped += int(weights[Weights.DROPPED_TOMBSTONES])
        self._stats.keyless_records += int(weights[Weights.KEYLESS])

    def _count_dropped(self, batch: Batch) -> None:
        self._stats.records_read += batch.count or 0
