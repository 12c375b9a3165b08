"""The segments of one partition: appended to, rolled, synced, truncated, replaced and deleted.

A local log knows files and offsets. What records mean, and who may read them, is the business of PartitionWriter; it
hands over the producer snapshots, which are synced and deleted with the segments they belong to.

One thread owns it. Records are durable after flush(): `recovery_point` is the first offset that may not be. After a
crash everything below the recovery point is intact, and after it everything up to the first incomplete batch
(kwire.log.writing.recovery).
Source: kafka.log.LocalLog 3.9.1; rules F-60, F-61, F-63, X-35.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import Executor

from kwire.errors import LogError, Malformed, OptionError
from kwire.identifiers import MAX_OFFSET
from kwire.log.files.transaction_index import TransactionIndexEntry
from kwire.log.writing.append_batches import AppendBatches
from kwire.log.writing.delayed_removal import DelayedRemoval
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.producer_state import ProducerStates
from kwire.log.writing.recovery import Loaded
from kwire.log.writing.segment_list import SegmentList
from kwire.log.writing.segment_swap import swap
from kwire.log.writing.segment_writer import SegmentWriter
from kwire.log.writing.snapshot_files import SnapshotFiles
from kwire.storage.background_sync import BackgroundSync
from kwire.storage.checkpoints import PARTITION_METADATA, parse_partition_metadata, render_partition_metadata
from kwire.storage.file_system import FileSystem

__all__ = ["LocalLog"]


class LocalLog:
    """The segments in a partition's directory, and the producer snapshots beside them. Empty before begin().

    directory: its full path. topic_id: in partition.metadata. config: the topic's, can be replaced at any time.
    segments: in offset order, the last one active. log_end_offset: of the next record. recovery_point: records below it
    are durable. flushed_ms: the time given to the last flush.
    """

    def __init__(
        self, file_system: FileSystem, directory: str, topic: str, partition: int, config: LogConfig, now_ms: int
    ) -> None:
        self._files, self.directory, self.topic, self.partition = file_system, directory, topic, partition
        self.name, self.config = f"{topic}-{partition}", config
        self.topic_id = self._load_topic_id()
        self.snapshots = SnapshotFiles(file_system, directory)
        self.segments = SegmentList()
        self.log_end_offset = self.recovery_point = 0
        self.flushed_ms = now_ms
        self.is_closed = False
        self._removal = DelayedRemoval(file_system)
        self._rolled_snapshots: list[int] = []
        self._syncing: BackgroundSync | None = None
        self._failure: LogError | None = None

    def _load_topic_id(self) -> uuid.UUID | None:
        path = f"{self.directory}/{PARTITION_METADATA}"
        data = self._files.read_all(path) if self._files.exists(path) else b""
        if not data:  # also what a crash leaves of a file that was not synced
            return None
        try:
            return parse_partition_metadata(data)
        except Malformed as error:
            raise LogError(str(error), path) from error

    def assign_topic_id(self, topic_id: uuid.UUID, *, sync: bool = True) -> None:
        """Write a topic id to partition.metadata unless that has it. Raises LogError if it has another one.

        Source: kafka.log.UnifiedLog.assignTopicId.
        """
        path = f"{self.directory}/{PARTITION_METADATA}"
        if self.topic_id is None:
            self._files.write_atomically(path, render_partition_metadata(topic_id), sync=sync)
            self.topic_id = topic_id
        elif topic_id != self.topic_id:
            what = f"topic id is {self.topic_id}, expected {topic_id}: the log is of another topic {self.topic!r}"
            raise LogError(what, path)

    def begin(self, loaded: Loaded) -> None:
        """Begin with the segments that were loaded from the directory."""
        self.segments, self.log_end_offset = loaded.segments, loaded.log_end_offset
        self.recovery_point = loaded.recovery_point

    @property
    def has_failed(self) -> bool:
        """Whether a write has failed: the log stays readable, and has to be reopened to be written."""
        return self._failure is not None

    def check_writable(self) -> None:
        """Raise LogError if the log is closed, or a write has failed."""
        if self.is_closed:
            raise LogError("log is closed", self.directory)
        if self._failure is not None:
            raise LogError(f"a write failed before; reopen the log: {self._failure.what}", self._failure.file)

    # ---- appending and rolling

    def is_full(self, new: AppendBatches, now_ms: int) -> bool:
        """Return whether batches have to begin a new segment (F-60)."""
        active = self.segments.active
        return active.should_roll(self.config, now_ms, new.size_bytes, new.last_offset, new.max_timestamp)

    def append(self, new: AppendBatches) -> None:
        """Write batches to the active segment. Raises LogError; the log cannot be written any more then."""
        only = new.headers[0].base_offset if len(new.headers) == 1 and new.headers[0].magic == 2 else None
        try:
            self.segments.active.append(
                new.parts, new.last_offset, new.max_timestamp, new.offset_of_max_timestamp, only_base_offset=only
            )
        except LogError as error:
            self._failure = error
            raise
        self.log_end_offset = new.last_offset + 1

    def append_aborted(self, entry: TransactionIndexEntry) -> None:
        """Write an aborted transaction to the index of the active segment. Raises LogError as append() does."""
        try:
            self.segments.active.transaction_index.append(entry)
        except LogError as error:
            self._failure = error
            raise

    def roll(self, now_ms: int, at_least: int = 0) -> SegmentWriter:
        """Begin and return a new segment at the log end offset, or at at_least if that is higher (F-61).

        The old segment is flushed by the next flush_rolled() or flush().
        """
        self.check_writable()
        base, active = max(at_least, self.log_end_offset), self.segments.active
        if base == active.base_offset and active.size_bytes == 0:
            self._mark_deleted(active, now_ms)  # its indexes have no room for an entry
        else:
            active.deactivate()
            active.unload()
        segment = self._new_segment(base, now_ms)
        self.segments.add(segment)
        return segment

    def take_snapshot(self, producers: ProducerStates) -> None:
        """Write a snapshot of the producers at a new segment; it is synced with the segments before (F-43)."""
        taken = self.snapshots.take(producers, sync=False)
        if taken is not None:
            self._rolled_snapshots.append(taken)

    def _new_segment(self, base_offset: int, now_ms: int, suffix: str = "") -> SegmentWriter:
        def create() -> SegmentWriter:
            return SegmentWriter(
                self._files, self.directory, base_offset, self.config, now_ms=now_ms, is_new=True, suffix=suffix
            )

        segment = create()
        if segment.log.end or segment.offset_index.count or segment.transaction_index.file is not None:
            segment.remove()  # left from a crash
            segment = create()
        return segment

    # ---- flushing

    def flush_rolled(self, executor: Executor | None = None) -> None:
        """Make all but the active segment durable; the recovery point advances to the active segment's base offset.

        With an executor, the sync runs in the background, and the recovery point advances in a later call.
        """
        if executor is None:
            self.finish_sync()
            self._flush_rolled()
            return
        if self._syncing is not None:
            if not self._syncing.is_done:
                return
            self.finish_sync()
        base = self.segments.active.base_offset
        if base > self.recovery_point:
            files = [file for each in self.segments.between(self.recovery_point, base) for file in each.files]
            snapshots = self.snapshots.opened(self._rolled_snapshots)
            self._rolled_snapshots.clear()
            self._syncing = BackgroundSync(files + snapshots, base, executor)
            for file in snapshots:
                file.close()

    def finish_sync(self) -> None:
        """Wait for the sync in the background, and advance the recovery point."""
        syncing, self._syncing = self._syncing, None
        if syncing is not None:
            syncing.finish()
            self._files.sync_directory(self.directory)
            self.recovery_point = max(self.recovery_point, syncing.up_to)

    def _flush_rolled(self) -> None:
        base = self.segments.active.base_offset
        for offset in self._rolled_snapshots:
            self.snapshots.sync(offset)
        self._rolled_snapshots.clear()
        if base > self.recovery_point:
            self._sync(base, base)

    def flush(self, *, now_ms: int | None = None) -> None:
        """Make everything durable; the recovery point advances to the log end offset."""
        self.flush_rolled()
        self._sync(MAX_OFFSET, self.log_end_offset)
        if now_ms is not None:
            self.flushed_ms = now_ms

    def _sync(self, below: int, recovery_point: int) -> None:
        unflushed = self.segments.between(self.recovery_point, below)
        for segment in unflushed:
            segment.sync()
        if any(segment.base_offset >= self.recovery_point for segment in unflushed):
            self._files.sync_directory(self.directory)
        self.recovery_point = recovery_point

    def close(self) -> None:
        """Close the files of flushed segments, and trim their indexes."""
        for segment in self.segments:
            segment.close()
        self._removal.close()
        self.is_closed = True

    def abandon(self) -> None:
        """Close all files without flushing, like a crash; the next open has to recover."""
        if self._syncing is not None:
            self._syncing.finish()
        for segment in self.segments:
            segment.close_files()
        self._removal.close()
        self.is_closed = True

    # ---- truncating and deleting

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Remove everything that ends at or above an offset, which is not below the first segment."""
        self.remove([segment for segment in self.segments if segment.base_offset > offset], now_ms)
        self.segments.active.truncate_to(offset, now_ms)
        self._set_end(offset)

    def start_again_at(self, offset: int, now_ms: int) -> None:
        """Remove all segments, and begin an empty one at an offset. The snapshots stay."""
        for segment in list(self.segments):
            self.segments.remove(segment.base_offset)
            self._mark_deleted(segment, now_ms)
        self.segments.add(self._new_segment(offset, now_ms))
        self._set_end(offset)

    def _set_end(self, offset: int) -> None:
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)

    def remove(self, segments: Sequence[SegmentWriter], now_ms: int) -> None:
        """Remove segments with their snapshots. Files are renamed to `.deleted` until delete_due_files()."""
        for segment in segments:
            self.segments.remove(segment.base_offset)
            self._mark_deleted(segment, now_ms)
            self._mark_snapshot_deleted(segment.base_offset, now_ms)

    def _mark_deleted(self, segment: SegmentWriter, now_ms: int) -> None:
        segment.change_suffix(".deleted")
        self.remove_later(segment, now_ms)

    def _mark_snapshot_deleted(self, offset: int, now_ms: int) -> None:
        marked = self.snapshots.mark_deleted(offset)
        if marked is not None:
            self.remove_later(marked, now_ms)

    def remove_later(self, what: SegmentWriter | str, now_ms: int) -> None:
        """Remove a segment or file that is renamed already after file.delete.delay.ms (F-63)."""
        self._removal.add(what, now_ms + self.config.file_delete_delay_ms)

    def delete_due_files(self, now_ms: int) -> None:
        """Remove `.deleted` files whose file.delete.delay.ms has passed (F-63)."""
        self._removal.remove_due(now_ms)

    # ---- cleaning

    def new_cleaned_segment(self, base_offset: int, *, now_ms: int) -> SegmentWriter:
        """Create an empty `.cleaned` segment for a cleaner or a split, removing the remains of an earlier one."""
        return self._new_segment(base_offset, now_ms, ".cleaned")

    def replace_segments(self, old: Sequence[int], new: Sequence[int], *, now_ms: int) -> None:
        """Replace old segments by `.cleaned` ones (X-35), given by base offsets; none may be active.

        After a crash at any step, the next open finds either the old segments or the new ones.
        """
        self.check_writable()
        if not new or any(base not in self.segments for base in old):
            raise OptionError(f"cannot replace segments {list(old)} of {self.name} by {list(new)}")
        if self.segments.active.base_offset in old:
            raise OptionError(f"segment {self.segments.active.base_offset} of {self.name} is active")
        fresh = [
            SegmentWriter(self._files, self.directory, base, self.config, now_ms=now_ms, suffix=".cleaned")
            for base in sorted(new)
        ]

        def removed(segment: SegmentWriter) -> None:
            self._mark_deleted(segment, now_ms)
            if segment.base_offset not in new:
                self._mark_snapshot_deleted(segment.base_offset, now_ms)

        swap(self._files, self.directory, self.segments, old, fresh, removed)
