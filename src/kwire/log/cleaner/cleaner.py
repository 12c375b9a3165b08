"""The cleaner of a log directory: selects logs, compacts them, swaps segments in.

A pass works in steps of one chunk, and a broker's loop can serve clients between them: `steps(log)` is a generator,
`clean(log)` runs it to the end. Between steps the log may grow, lose segments or be closed; the pass ends at a group
with missing segments and does not change it.

    write <base>.log.cleaned and indexes -> LocalLog.replace_segments (X-35) ... -> cleaner-offset-checkpoint

After an interruption, each group has either its old segments or the new one. If the checkpoint was not written,
another pass reads the clean range again.
Source: kafka.log.LogCleaner, LogCleanerManager, Cleaner.cleanSegments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

import numpy as np

from kwire.errors import KwireError
from kwire.log.cleaner.cleaner_stats import CleanerStats
from kwire.log.cleaner.cleaning_pass import CleaningPass
from kwire.log.cleaner.cleaning_plan import CleaningPlan, make_plan
from kwire.log.cleaner.log_state import SourceSegment, open_state
from kwire.log.cleaner.offset_map import DEFAULT_LOAD_FACTOR, DEFAULT_MEMORY_BYTES, OffsetMap
from kwire.log.cleaner.sections import Table
from kwire.log.files.cleaner_checkpoints import CleanerCheckpoints
from kwire.log.writing.partition_writer import PartitionWriter
from kwire.log.writing.segment_writer import SegmentWriter
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.format import batch_table as t

__all__ = ["Cleaner"]

APPEND_BYTES = 32 << 10  # per append to a new segment, which is also the distance of its index entries
TABLE_ROWS = 4096
Steps = Generator[int, None, CleanerStats]
Progress = Callable[[int], None]


class Cleaner:
    """Compacts logs of one log directory.

    checkpoints: of that directory; LogManager.cleaner_checkpoints if it is open. dedupe_buffer_bytes, load_factor:
    of the offset map (log.cleaner.dedupe.buffer.size, log.cleaner.io.buffer.load.factor). max_decompressed_bytes: of a
    batch.
    random_bytes: source of the secrets of offset maps.
    uncleanable: open logs that failed, with the error; they are not selected again.
    """

    def __init__(
        self,
        checkpoints: CleanerCheckpoints,
        *,
        dedupe_buffer_bytes: int = DEFAULT_MEMORY_BYTES,
        load_factor: float = DEFAULT_LOAD_FACTOR,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.checkpoints = checkpoints
        self.uncleanable: dict[PartitionWriter, KwireError] = {}
        self._dedupe_buffer_bytes, self._load_factor = dedupe_buffer_bytes, load_factor
        self._max_decompressed_bytes, self._random_bytes = max_decompressed_bytes, random_bytes
        self._rows: Table = np.empty((TABLE_ROWS, t.COLUMN_COUNT), np.int64)

    def plan(self, log: PartitionWriter, now_ms: int) -> CleaningPlan:
        """Return the plan of a pass over a log."""
        return make_plan(open_state(log), self.checkpoints.get((log.topic, log.partition)), now_ms)

    def choose(self, logs: Iterable[PartitionWriter], now_ms: int) -> list[PartitionWriter]:
        """Return the logs with cleanup.policy=compact that are due, dirtiest first (X-03)."""
        candidates = []
        self.uncleanable = {log: error for log, error in self.uncleanable.items() if not log.is_closed}
        for log in logs:
            if log.config.is_compacted and log not in self.uncleanable:
                plan = self.plan(log, now_ms)
                if plan.resets_checkpoint:
                    self.checkpoints.put((log.topic, log.partition), plan.first_dirty_offset)
                if plan.is_due(log.config):
                    candidates.append((plan.dirty_ratio, log))
        return [log for _, log in sorted(candidates, key=lambda each: each[0], reverse=True)]

    def clean(self, log: PartitionWriter, now_ms: int, progress: Progress = lambda read_bytes: None) -> CleanerStats:
        """Run one pass over a log, whether it is due or not. Raises what steps() raises.

        progress: called after each chunk with the number of bytes read so far.
        """
        steps = self.steps(log, now_ms)
        while True:
            try:
                progress(next(steps))
            except StopIteration as end:
                stats: CleanerStats = end.value
                return stats

    def clean_fully(
        self, log: PartitionWriter, now_ms: int, progress: Progress = lambda read_bytes: None
    ) -> CleanerStats:
        """Run passes over a log until everything cleanable is clean; several if the map is too small for all keys.

        progress: as for clean().
        """
        stats = CleanerStats()
        key = log.topic, log.partition
        while True:
            end_offset = self.plan(log, now_ms).end_offset
            before = self.checkpoints.get(key)
            stats.add(self.clean(log, now_ms, progress))
            reached = self.checkpoints.get(key)
            if reached is None or reached >= end_offset or reached == before:
                return stats

    def steps(self, log: PartitionWriter, now_ms: int) -> Steps:
        """Run one pass over a log, one chunk per step; yields the bytes read so far, returns the stats.

        Raises CorruptBatch at a damaged batch and LogError for I/O errors; segments that are not swapped in yet are
        not changed, and the log becomes uncleanable.
        """
        key = log.topic, log.partition
        state = open_state(log)
        plan = make_plan(state, self.checkpoints.get(key), now_ms)
        offset_map = OffsetMap(self._dedupe_buffer_bytes, self._load_factor, secret=self._random_bytes(16))
        work = CleaningPass(state, plan, offset_map, now_ms=now_ms, max_decompressed_bytes=self._max_decompressed_bytes)
        try:
            for _ in work.build_map():
                yield work.read_bytes
                if not has_segments(log, state.segments):
                    return work.stats
            for group in work.groups():
                if not (yield from self._clean_group(log, work, group, now_ms)):
                    return work.stats
            if not log.is_closed:  # if deleted meanwhile, another log may have the name by now
                self.checkpoints.put(key, work.end_offset)
        except KwireError as error:
            if not log.is_closed:
                self.uncleanable[log] = error
                raise
        return work.stats

    def _clean_group(
        self, log: PartitionWriter, work: CleaningPass, group: Sequence[SourceSegment], now_ms: int
    ) -> Generator[int, None, bool]:
        """Replace a group by one compacted segment; return False if segments of the group are missing."""
        cleaned = log.local.new_cleaned_segment(group[0].base_offset, now_ms=now_ms)
        try:
            for retained in work.clean(group):
                self._append(cleaned, retained)
                yield work.read_bytes
                if not has_segments(log, group):
                    cleaned.remove()
                    return False
            for entry in work.take_aborted():
                cleaned.transaction_index.append(entry)
            cleaned.deactivate()
            cleaned.sync()
            cleaned.set_modified(group[-1].modified_ms)
        except BaseException:  # including KeyboardInterrupt: remove the incomplete segment
            cleaned.remove()
            raise
        cleaned.close_files()
        log.local.replace_segments([each.base_offset for each in group], [group[0].base_offset], now_ms=now_ms)
        return True

    def _append(self, cleaned: SegmentWriter, data: memoryview) -> None:
        """Append batches to a new segment, with an index entry every APPEND_BYTES until an index is full."""
        for rows in self._appends(data):
            if cleaned.offset_index.is_full or cleaned.time_index.is_full:
                cleaned.index_interval_bytes = cleaned.log.end + len(data)
            start, end = int(rows[0, t.POSITION]), int(rows[-1, t.POSITION] + rows[-1, t.SIZE])
            largest = int(rows[:, t.MAX_TIMESTAMP].argmax())
            cleaned.append(
                [data[start:end]],
                int(rows[-1, t.LAST_OFFSET]),
                int(rows[largest, t.MAX_TIMESTAMP]),
                int(rows[largest, t.LAST_OFFSET]),
            )

    def _appends(self, data: memoryview) -> Iterator[Table]:
        """Yield header tables of runs of whole batches of about APPEND_BYTES."""
        array = np.frombuffer(data, np.uint8)
        at = 0
        while at < len(array):
            count, at, _ = t.scan_batches(array, at, self._rows)
            ends = self._rows[:count, t.POSITION] + self._rows[:count, t.SIZE]
            first = 0
            while first < count:
                last = int(np.searchsorted(ends, self._rows[first, t.POSITION] + APPEND_BYTES, "right"))
                last = max(last, first + 1)
                yield self._rows[first:last]
                first = last


def has_segments(log: PartitionWriter, group: Sequence[SourceSegment]) -> bool:
    """Return whether a log is open and still has exactly these segments."""
    return not log.is_closed and all(log.segments.get(each.base_offset) is each for each in group)
