"""Recover a partition's directory: interrupted swaps, lost indexes, torn tails, producer state.

    1  remove *.deleted, unfinished *.cleaned, and the .swap files of an unfinished split               G-02
    2  remove the files that complete .swap files replace                                              G-03
    3  rename .swap files to their final names                                                         G-04
    4  remove indexes without a log; open the logs; rebuild missing or invalid indexes                 G-05
    5  after a crash, check segments from the recovery point on batch by batch, truncate at the first
       incomplete or corrupt batch, and remove the segments after it                                   G-07, G-08
    6  restart a log that ends below its start; create a segment if there is none                      G-09, G-10
    7  truncate leader epochs to the log; rebuild producer state from snapshots and later records      G-12, G-13

Source: kafka.log.LogLoader, LogSegment.recover, UnifiedLog.rebuildProducerState 3.9.1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from kwire.errors import CorruptBatch, Malformed
from kwire.identifiers import MAX_OFFSET
from kwire.log.files.chunks import BatchWalk
from kwire.log.files.file_names import SEGMENT_FILE, decide_swaps, segment_file
from kwire.log.files.index_writer import LARGEST_RELATIVE, InvalidOffset
from kwire.log.files.leader_epochs import LeaderEpochs
from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.producer_state import ProducerStates
from kwire.log.writing.segment_list import SegmentList
from kwire.log.writing.segment_swap import split, swap
from kwire.log.writing.segment_writer import SegmentWriter
from kwire.log.writing.snapshot_files import SnapshotFiles
from kwire.records import AppendOrigin, Batch, ControlRecord, parse_control_record, read_batches
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.file_system import FileSystem, OpenFile
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.store import StoredFile

__all__ = [
    "NO_CHECKPOINTS",
    "Loaded",
    "Loader",
    "OffsetOverflow",
    "PartitionCheckpoints",
    "control_record_of",
    "rebuild_producer_state",
    "recover_segment",
    "replay_header",
]

logger = logging.getLogger("kwire.log")


class OffsetOverflow(Exception):
    """A segment's offsets do not fit its index (G-06). Never leaves this module."""

    def __init__(self, segment: SegmentWriter) -> None:
        super().__init__(segment)
        self.segment = segment


def checked_batches(log: OpenFile) -> Iterator[Batch]:
    """Iterate over the valid batches of a log until the file ends, possibly inside a batch.

    Raises CorruptBatch at the first invalid batch.
    """
    walk = BatchWalk(log)
    for batch in walk:
        if not batch.is_valid:
            raise batch.corrupt(f"stored CRC {batch.crc}, computed {batch.computed_crc()}")
        yield batch
    if walk.damage is not None:
        raise walk.damage


def control_record_of(batch: Batch) -> ControlRecord | None:
    """Return the control record of a control batch; None for other batches and for emptied ones (P-05)."""
    record = next(batch.records(), None) if batch.is_control else None
    return None if record is None else parse_control_record(record)


def recover_segment(segment: SegmentWriter, producers: ProducerStates, epochs: LeaderEpochs | None) -> int:
    """Rebuild a segment's indexes from its batches and truncate it after them; return the bytes removed (G-08).

    producers, epochs: updated from the batches. What is removed is logged as a warning, as in Kafka. Raises
    InvalidOffset for offsets that do not increase, OffsetOverflow for one that does not fit (G-06).
    """
    segment.remove_indexes()
    largest, last_entry, position = (-1, segment.base_offset), 0, 0
    try:
        for batch in checked_batches(segment.log):
            if not 0 <= batch.last_offset - segment.base_offset <= LARGEST_RELATIVE:
                raise OffsetOverflow(segment)
            if batch.max_timestamp > largest[0]:
                largest = batch.max_timestamp, batch.last_offset
            if position - last_entry > segment.index_interval_bytes:
                segment.offset_index.append(batch.last_offset, position)
                segment.time_index.append(*largest)
                last_entry = position
            position += batch.size_bytes
            if batch.magic >= 2:
                if epochs is not None and batch.partition_leader_epoch > (
                    -1 if epochs.latest is None else epochs.latest
                ):
                    epochs.assign(batch.partition_leader_epoch, batch.base_offset)
                apply_batch(producers, batch, segment)
                producers.end_offset = batch.last_offset + 1
        damage: object = "an incomplete batch"
    except (CorruptBatch, Malformed) as error:
        damage = error  # everything before it is kept
    cut = segment.log.end - position
    if cut:
        logger.warning("%s: %d bytes from byte %d on are removed: %s", segment.log.url, cut, position, damage)
        segment.log.truncate(position)
    segment.set_largest(largest)
    segment.deactivate()
    return cut


def apply_batch(producers: ProducerStates, batch: Batch, segment: SegmentWriter | None = None) -> None:
    """Apply a batch of the log to the producer state; segment: receives the entries of aborted transactions."""
    if batch.producer_id < 0:
        return
    update = producers.prepare([(batch, control_record_of(batch))], AppendOrigin.REPLICATION)
    producers.commit(update)
    for completed in update.completed:
        if completed.is_aborted and segment is not None:
            stable = producers.last_stable_offset(completed)
            segment.transaction_index.append(
                TransactionIndexEntry(completed.producer_id, completed.first_offset, completed.last_offset, stable)
            )
        producers.complete(completed)


def rebuild_producer_state(
    producers: ProducerStates,
    snapshots: SnapshotFiles,
    segments: SegmentList,
    *,
    log_start_offset: int,
    end_offset: int,
    magic: int,
    is_clean: bool,
    now_ms: int,
) -> None:
    """Rebuild the producer state at end_offset (G-13)."""
    bases = segments.base_offsets[-2:]
    if magic < 2 or (snapshots.latest is None and is_clean):
        for offset in [*bases, end_offset]:  # nothing is scanned, now or when the log is truncated
            producers.end_offset = offset
            snapshots.take(producers)
        return
    was_empty = producers.is_empty and producers.end_offset >= end_offset
    snapshots.truncate_and_reload(producers, log_start_offset, end_offset, now_ms)
    if end_offset > producers.end_offset and not was_empty:
        for segment in segments.between(producers.end_offset, end_offset):
            start = max(segment.base_offset, producers.end_offset, log_start_offset)
            producers.end_offset = start
            if segment.base_offset in bases or segment.base_offset == end_offset:
                snapshots.take(producers)
            replay(producers, segment, start, end_offset)
    producers.end_offset = end_offset
    snapshots.take(producers)


def replay(producers: ProducerStates, segment: SegmentWriter, start_offset: int, end_offset: int) -> None:
    """Apply the batches of a segment that end in [start_offset, end_offset) to the producer state."""
    place = segment.find_batch(start_offset)
    if place is None:
        return
    for header in HeaderWalk(segment.log, place.position):
        if header.last_offset >= end_offset:
            return
        replay_header(producers, segment.log, header)


def replay_header(producers: ProducerStates, file: StoredFile, header: BatchHeader) -> None:
    """Apply the batch of a header to the producer state; only control batches are read."""
    if header.producer_id < 0:
        return
    if header.is_control:
        data = file.pread(header.position, header.size_bytes)
        for batch in read_batches(data, position=header.position, file=file.url):
            apply_batch(producers, batch)
    else:
        producers.commit(producers.prepare([(header, None)], AppendOrigin.REPLICATION))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCheckpoints:
    """Entries of a partition in the checkpoint files of a log directory.

    log_start_offset, recovery_point: 0 without an entry. is_clean: whether the last shutdown was clean, so that batches
    need no check.
    """

    log_start_offset: int = 0
    recovery_point: int = 0
    is_clean: bool = False


NO_CHECKPOINTS = PartitionCheckpoints()


class Loaded(NamedTuple):
    """Result of loading: segments, [log_start_offset, log_end_offset), and the recovery point."""

    segments: SegmentList
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


class Loader(msgspec.Struct, kw_only=True):
    """Opens one partition's directory. remove_later: called with segments and snapshots renamed to `.deleted`."""

    file_system: FileSystem
    directory: str
    name: str
    config: LogConfig
    checkpoints: PartitionCheckpoints
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: SnapshotFiles
    now_ms: int
    remove_later: Callable[[SegmentWriter | str], None]

    def load(self) -> Loaded:
        """Run all passes. Raises LogError if files cannot be read or changed."""
        segments = self.open_and_recover(self.finish_swaps())
        end_offset = self.check_end(segments)
        if not len(segments):
            segments.add(self._segment(self.checkpoints.log_start_offset, is_new=True))
        recovery_point = min(self.checkpoints.recovery_point, segments.active.read_next_offset())
        if self.checkpoints.is_clean and end_offset is not None:
            recovery_point = end_offset
        if end_offset is None:
            end_offset = segments.active.read_next_offset()
        segments.active.activate()
        self.epochs.truncate_from_end(end_offset)
        log_start_offset = max(self.checkpoints.log_start_offset, segments[0].base_offset)
        self.epochs.truncate_from_start(self.checkpoints.log_start_offset)
        self.epochs.flush()
        self.snapshots.remove_stray(segments.base_offsets)
        rebuild_producer_state(
            self.producers,
            self.snapshots,
            segments,
            log_start_offset=log_start_offset,
            end_offset=end_offset,
            magic=self.config.magic,
            is_clean=self.checkpoints.is_clean,
            now_ms=self.now_ms,
        )
        return Loaded(segments, log_start_offset, end_offset, recovery_point)

    def _segment(self, base_offset: int, *, is_new: bool = False, suffix: str = "") -> SegmentWriter:
        return SegmentWriter(
            self.file_system,
            self.directory,
            base_offset,
            self.config,
            now_ms=self.now_ms,
            is_new=is_new,
            suffix=suffix,
        )

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    # ---- passes 1 to 3

    def finish_swaps(self) -> Sequence[str]:
        """Finish or undo interrupted swaps (G-02 to G-04). Returns the names in the directory."""
        files, names = self.file_system, self.file_system.list(self.directory)
        swaps = decide_swaps(names, self._end_of_swap)
        others = (name for name in names if SEGMENT_FILE.fullmatch(name) is None and name.endswith(".deleted"))
        removed = [name for name in others if not name.endswith(".checkpoint.deleted")]
        removed += [each.name for each in swaps.removed]
        for name in removed:
            files.remove(self._path(name))
        for _, _, name in swaps.swap:
            files.rename(self._path(name), self._path(name.removesuffix(".swap")))
        if swaps.swap:
            files.sync_directory(self.directory)
        return files.list(self.directory) if removed or swaps.swap else names

    def _end_of_swap(self, name: str, base_offset: int) -> int:
        end = base_offset
        with self.file_system.open(self._path(name)) as log:
            for header in HeaderWalk(log):
                end = header.last_offset + 1
        return end

    def open_and_recover(self, names: Sequence[str]) -> SegmentList:
        """Run passes 4 and 5 until no segment has to be split (G-06). names: of the files in the directory."""
        while True:
            try:
                segments = self.open_segments(names)
                if not self.checkpoints.is_clean:
                    self.recover(segments)
                return segments
            except OffsetOverflow as overflow:
                self._split(overflow.segment)
                names = self.file_system.list(self.directory)

    def _split(self, segment: SegmentWriter) -> None:
        made = split(segment, lambda base: self._segment(base, is_new=True, suffix=".cleaned"))
        before = SegmentList()
        before.add(segment)
        swap(self.file_system, self.directory, before, [segment.base_offset], made, SegmentWriter.remove)
        for one in made:
            one.close_files()

    # ---- pass 4

    def open_segments(self, names: Sequence[str]) -> SegmentList:
        """Open every log; rebuild missing or invalid indexes (G-05)."""
        segments = SegmentList()
        kinds_by_base: dict[int, set[str]] = {}
        for name in names:
            match = SEGMENT_FILE.fullmatch(name)
            if match is not None and match["suffix"] is None and match["kind"] != "snapshot":
                kinds_by_base.setdefault(int(match["base"]), set()).add(match["kind"])
        for base_offset, kinds in sorted(kinds_by_base.items()):
            if "log" not in kinds:
                for kind in kinds:
                    self.file_system.remove(self._path(segment_file(base_offset, kind)))
                continue
            segment = self._segment(base_offset)
            if "index" not in kinds or not segment.transaction_index.is_sane:
                self._recover(segments, segment)
            segments.add(segment)
        return segments

    def _recover(self, before: SegmentList, segment: SegmentWriter) -> int:
        """Recover one segment, with the producer state after the previous segments."""
        snapshots = SnapshotFiles(self.file_system, self.directory)
        producers = ProducerStates(self.name, expiration_ms=self.producers.expiration_ms)
        rebuild_producer_state(
            producers,
            snapshots,
            before,
            log_start_offset=self.checkpoints.log_start_offset,
            end_offset=segment.base_offset,
            magic=self.config.magic,
            is_clean=False,
            now_ms=self.now_ms,
        )
        cut = recover_segment(segment, producers, self.epochs)
        snapshots.take(producers)
        return cut

    # ---- pass 5

    def recover(self, segments: SegmentList) -> None:
        """Check the batches that may not be durable (G-07)."""
        unflushed = segments.between(self.checkpoints.recovery_point, MAX_OFFSET)
        for done, segment in enumerate(unflushed):
            try:
                cut = self._recover(segments, segment)
            except InvalidOffset as error:
                cut = segment.log.end
                logger.warning("%s: all of its %d bytes are removed: %s", segment.log.url, cut, error)
                segment.remove_indexes()
                segment.log.truncate(0)
                segment.set_largest((-1, segment.base_offset))
            if cut:
                following = unflushed[done + 1 :]
                if following:
                    last = following[-1].log.url
                    logger.warning("%s: removed with the %d segments after the damage", last, len(following))
                self._remove(segments, following)
                break

    def _remove(self, segments: SegmentList, removed: list[SegmentWriter]) -> None:
        self.snapshots.reload()
        for segment in removed:
            segments.remove(segment.base_offset)
            segment.change_suffix(".deleted")
            self.remove_later(segment)
            marked = self.snapshots.mark_deleted(segment.base_offset)
            if marked is not None:
                self.remove_later(marked)

    # ---- pass 6

    def check_end(self, segments: SegmentList) -> int | None:
        """Return the log end offset; None, with all segments removed, if it is below the log start offset (G-09)."""
        if not len(segments):
            return None
        end_offset = segments.active.read_next_offset()
        if end_offset >= self.checkpoints.log_start_offset:
            return end_offset
        start = self.checkpoints.log_start_offset
        logger.warning("%s: all segments are removed: the log ends at %d, below its start %d",
                       self.directory, end_offset, start)  # fmt: skip
        self._remove(segments, list(segments))
        self.epochs.clear()
        self.producers.clear()
        self.snapshots.reload()
        self.snapshots.remove_all()
        self.producers.snapshot_offset, self.producers.end_offset = 0, self.checkpoints.log_start_offset
        return None
