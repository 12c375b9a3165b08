"""One open partition: its files, offsets and segments, and everything that changes its directory except appends.

One thread owns it. Records are durable after flush(): `recovery_point` is the first offset that may not be. After a
crash everything below the recovery point is intact, and after it everything up to the first incomplete batch
(kwire.log.writing.recovery).
Source: kafka.log.UnifiedLog, LocalLog 3.9.1; rules F-60 to F-63, X-35.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Self

from kwire.errors import BrokerError, LogError, Malformed, OptionError
from kwire.identifiers import MAX_OFFSET
from kwire.log.files.file_names import check_topic
from kwire.log.files.leader_epochs import LeaderEpochs
from kwire.log.writing import retention
from kwire.log.writing.delayed_removal import DelayedRemoval
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.producer_state import ProducerStates
from kwire.log.writing.recovery import NO_CHECKPOINTS, Loader, PartitionCheckpoints, rebuild_producer_state
from kwire.log.writing.segment_list import SegmentList
from kwire.log.writing.segment_swap import swap
from kwire.log.writing.segment_writer import SegmentWriter
from kwire.log.writing.snapshot_files import SnapshotFiles
from kwire.storage.background_sync import BackgroundSync
from kwire.storage.checkpoints import PARTITION_METADATA, parse_partition_metadata, render_partition_metadata
from kwire.storage.file_system import FileSystem

__all__ = ["OFFSET_OUT_OF_RANGE", "OpenPartition"]

OFFSET_OUT_OF_RANGE = 1


class OpenPartition:
    """The open files of a partition. Created by open().

    topic, partition, name, directory, topic_id: its identity. segments: in offset order, the last one active.
    log_start_offset, log_end_offset: [first, next). recovery_point: records below it are durable.
    producers, leader_epochs: their state.
    """

    def __init__(
        self, file_system: FileSystem, directory: str, topic: str, partition: int, config: LogConfig, now_ms: int
    ) -> None:
        """Internal: use open()."""
        self._files, self.directory, self.topic, self.partition = file_system, directory, topic, partition
        self.name = f"{topic}-{partition}"
        self._config = config
        self._use(config)
        self.topic_id: uuid.UUID | None = None
        self.leader_epochs = LeaderEpochs(file_system, directory)
        self.producers = ProducerStates(self.name, expiration_ms=config.producer_id_expiration_ms)
        self.snapshots = SnapshotFiles(file_system, directory)
        self.segments = SegmentList()
        self.log_start_offset = self.log_end_offset = self.recovery_point = self._high_watermark = 0
        self.flushed_ms = now_ms
        self._removal = DelayedRemoval(file_system)
        self._rolled_snapshots: list[int] = []
        self._syncing: BackgroundSync | None = None
        self._failure: LogError | None = None
        self.is_closed = False

    @classmethod
    def open(
        cls,
        file_system: FileSystem,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        now_ms: int,
        checkpoints: PartitionCheckpoints = NO_CHECKPOINTS,
        topic_id: uuid.UUID | None = None,
        sync: bool = True,
    ) -> Self:
        """Open a partition's directory, creating it if necessary. directory: its full path.

        checkpoints: of the log directory; nothing is recovered after a clean shutdown. topic_id: written to
        partition.metadata if that is missing. sync: make the creation durable.
        Raises OptionError for an invalid topic name, LogError for unusable files or another topic id.
        """
        check_topic(topic, partition)
        if not file_system.is_directory(directory):
            file_system.make_directory(directory)
            if sync:
                file_system.sync_directory(directory.rpartition("/")[0])
        log = cls(file_system, directory, topic, partition, config, now_ms)
        log._load_topic_id()
        if topic_id is not None:
            log.assign_topic_id(topic_id, sync=sync)
        if config.magic < 2:
            log.leader_epochs.discard()
        loaded = Loader(
            file_system=file_system,
            directory=directory,
            name=log.name,
            config=config,
            checkpoints=checkpoints,
            epochs=log.leader_epochs,
            producers=log.producers,
            snapshots=log.snapshots,
            now_ms=now_ms,
            remove_later=lambda what: log._removal.add(what, now_ms + config.file_delete_delay_ms),
        ).load()
        log.segments, log.recovery_point = loaded.segments, loaded.recovery_point
        log.log_start_offset, log.log_end_offset = loaded.log_start_offset, loaded.log_end_offset
        log.high_watermark = loaded.log_end_offset
        return log

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, [{self.log_start_offset}, {self.log_end_offset}))"

    def _load_topic_id(self) -> None:
        path = f"{self.directory}/{PARTITION_METADATA}"
        data = self._files.read_all(path) if self._files.exists(path) else b""
        if not data:  # also what a crash leaves of a file that was not synced
            return
        try:
            self.topic_id = parse_partition_metadata(data)
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

    @property
    def config(self) -> LogConfig:
        """The topic's configs; can be replaced at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        if config is not self._config:
            self._config = config
            self._use(config)

    def _use(self, config: LogConfig) -> None:
        """Apply new configs; overridden by subclasses."""

    @property
    def high_watermark(self) -> int:
        """Upper bound of what consumers read. On one node it follows every append; it can be set lower."""
        return self._high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        self._high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.producers.replicated_to(self._high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """Upper bound of what consumers with read_committed read (P-06)."""
        first = self.producers.first_unstable_offset
        if first is None or first >= self._high_watermark:
            return self._high_watermark
        return max(first, self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        """Size of the batches in all segments."""
        return self.segments.size_bytes

    # ---- rolling

    def roll(self, now_ms: int, at_least: int = 0) -> SegmentWriter:
        """Roll: begin and return a new segment at the log end offset, or at at_least if that is higher (F-61).

        The old segment is flushed by the next flush_rolled() or flush().
        """
        self._check_writable()
        base, active = max(at_least, self.log_end_offset), self.segments.active
        if base == active.base_offset and active.size_bytes == 0:
            active.change_suffix(".deleted")  # its indexes have no room for an entry
            self._removal.add(active, now_ms + self._config.file_delete_delay_ms)
        else:
            active.deactivate()
            active.unload()
        segment = self._new_segment(base, now_ms)
        self.segments.add(segment)
        self.producers.end_offset = base
        taken = self.snapshots.take(self.producers, sync=False)
        if taken is not None:
            self._rolled_snapshots.append(taken)
        return segment

    def _new_segment(self, base_offset: int, now_ms: int, suffix: str = "") -> SegmentWriter:
        def create() -> SegmentWriter:
            return SegmentWriter(
                self._files, self.directory, base_offset, self._config, now_ms=now_ms, is_new=True, suffix=suffix
            )

        segment = create()
        if segment.log.end or segment.offset_index.count or segment.transaction_index.file is not None:
            segment.remove()  # left from a crash
            segment = create()
        return segment

    @property
    def has_failed(self) -> bool:
        """Whether a write has failed: the log stays readable, and has to be reopened to be written."""
        return self._failure is not None

    def _check_writable(self) -> None:
        if self.is_closed:
            raise LogError("log is closed", self.directory)
        if self._failure is not None:
            raise LogError(f"a write failed before; reopen the log: {self._failure.what}", self._failure.file)

    # ---- flushing

    def flush_rolled(self, executor: Executor | None = None) -> None:
        """Make all but the active segment durable; the recovery point advances to the active segment's base offset.

        With an executor, the sync runs in the background, and the recovery point advances in a later call.
        """
        if executor is None:
            self._finish_sync()
            self._flush_rolled()
            return
        if self._syncing is not None:
            if not self._syncing.is_done:
                return
            self._finish_sync()
        base = self.segments.active.base_offset
        if base > self.recovery_point:
            files = [file for each in self.segments.between(self.recovery_point, base) for file in each.files]
            snapshots = self.snapshots.opened(self._rolled_snapshots)
            self._rolled_snapshots.clear()
            self._syncing = BackgroundSync(files + snapshots, base, executor)
            for file in snapshots:
                file.close()

    def _finish_sync(self) -> None:
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
        """Close cleanly: flush, take a producer snapshot, trim the indexes."""
        if self.is_closed:
            return
        self._check_writable()
        self.leader_epochs.flush()
        self.flush()
        self.snapshots.take(self.producers)
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

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Remove everything that ends at or above offset; return whether there was anything to remove."""
        if offset < 0:
            raise OptionError(f"cannot truncate to offset {offset}: offsets are not negative")
        self._check_writable()
        self._finish_sync()
        if offset >= self.log_end_offset:
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            self.leader_epochs.flush()
            return False
        if self.segments[0].base_offset > offset:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return True
        removed = [segment for segment in self.segments if segment.base_offset > offset]
        self._remove(removed, now_ms)
        self.segments.active.truncate_to(offset, now_ms)
        self._set_end(offset)
        self.leader_epochs.truncate_from_end(offset)
        self.leader_epochs.flush()
        self.log_start_offset = min(offset, self.log_start_offset)
        self._rebuild_producers(now_ms)
        self.high_watermark = min(self._high_watermark, offset)
        return True

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Remove all records; the log then begins and ends at offset."""
        self._check_writable()
        self._finish_sync()
        removed = list(self.segments)
        for segment in removed:
            self.segments.remove(segment.base_offset)
            self._mark_deleted(segment, now_ms)
        self.segments.add(self._new_segment(offset, now_ms))
        self.leader_epochs.clear()
        self.producers.clear()
        self.snapshots.remove_all()
        self.producers.snapshot_offset, self.producers.end_offset = 0, offset
        self.log_start_offset = offset
        self._set_end(offset)
        self._rebuild_producers(now_ms)
        self._high_watermark = offset

    def _set_end(self, offset: int) -> None:
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)

    def _rebuild_producers(self, now_ms: int) -> None:
        rebuild_producer_state(
            self.producers,
            self.snapshots,
            self.segments,
            log_start_offset=self.log_start_offset,
            end_offset=self.log_end_offset,
            magic=self._config.magic,
            is_clean=False,
            now_ms=now_ms,
        )

    def delete_records(self, before_offset: int) -> int:
        """Advance the log start offset to before_offset (-1: the high watermark) and return it.

        Raises BrokerError OFFSET_OUT_OF_RANGE above the high watermark. delete_old_segments() removes the files.
        """
        offset = self._high_watermark if before_offset == -1 else before_offset
        if not 0 <= offset <= self._high_watermark:
            raise BrokerError(
                f"log start of {self.name} cannot move to {offset}: its high watermark is {self._high_watermark}",
                OFFSET_OUT_OF_RANGE,
            )
        self._check_writable()
        self._increment_start(offset)
        return self.log_start_offset

    def _increment_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)
            self.snapshots.start_incremented(self.producers, offset)

    def delete_old_segments(self, now_ms: int) -> list[int]:
        """Remove segments below the log start and, with cleanup.policy=delete, those beyond retention (F-62).

        Returns their base offsets. The files are renamed to `.deleted` until delete_due_files() removes them.
        """
        self._check_writable()
        gone = self._delete(
            retention.below_log_start(self.segments, self.log_start_offset, self._high_watermark, self.log_end_offset),
            now_ms,
        )
        if "delete" in self._config.cleanup_policy:
            rest = self._config, self._high_watermark, self.log_end_offset
            gone += self._delete(retention.over_size(self.segments, *rest), now_ms)
            gone += self._delete(retention.over_time(self.segments, *rest, now_ms), now_ms)
        return gone

    def _delete(self, segments: list[SegmentWriter], now_ms: int) -> list[int]:
        if not segments:
            return []
        if len(segments) == len(self.segments):
            self.roll(now_ms)
        last = segments[-1].base_offset
        self._increment_start(self.segments[self.segments.number_of(last) + 1].base_offset)
        self.leader_epochs.flush()
        self._remove(segments, now_ms)
        return [segment.base_offset for segment in segments]

    def _remove(self, segments: Sequence[SegmentWriter], now_ms: int) -> None:
        for segment in segments:
            self.segments.remove(segment.base_offset)
            self._mark_deleted(segment, now_ms)
            self._mark_snapshot_deleted(segment.base_offset, now_ms)

    def _mark_deleted(self, segment: SegmentWriter, now_ms: int) -> None:
        segment.change_suffix(".deleted")
        self._removal.add(segment, now_ms + self._config.file_delete_delay_ms)

    def _mark_snapshot_deleted(self, offset: int, now_ms: int) -> None:
        marked = self.snapshots.mark_deleted(offset)
        if marked is not None:
            self._removal.add(marked, now_ms + self._config.file_delete_delay_ms)

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
        self._check_writable()
        if not new or any(base not in self.segments for base in old):
            raise OptionError(f"cannot replace segments {list(old)} of {self.name} by {list(new)}")
        if self.segments.active.base_offset in old:
            raise OptionError(f"segment {self.segments.active.base_offset} of {self.name} is active")
        fresh = [
            SegmentWriter(self._files, self.directory, base, self._config, now_ms=now_ms, suffix=".cleaned")
            for base in sorted(new)
        ]

        def removed(segment: SegmentWriter) -> None:
            self._mark_deleted(segment, now_ms)
            if segment.base_offset not in new:
                self._mark_snapshot_deleted(segment.base_offset, now_ms)

        swap(self._files, self.directory, self.segments, old, fresh, removed)
