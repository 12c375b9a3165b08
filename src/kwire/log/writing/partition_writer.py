"""An open partition: records are appended to it and fetched from it by the rules of a broker.

    append             produced records: checked, given offsets, written
    append_as_given    records that have offsets: copies, restores, conversions
    append_marker      the end of a producer's transaction

It keeps what a broker knows of a partition besides its segments, which are a LocalLog: where the log starts, what
consumers may read, its producers with their transactions, and its leader epochs. Appended records are in the page cache
when append returns, and durable after flush().
Source: kafka.log.UnifiedLog 3.9.1; rules A-01 to A-08, P-01 to P-08, F-62.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import NamedTuple

from kwire.errors import BrokerError, OptionError
from kwire.log.files.file_names import check_topic
from kwire.log.files.leader_epochs import LeaderEpochs
from kwire.log.files.time_lookup import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP, TimestampAndOffset
from kwire.log.files.transaction_index import AbortedTransaction, TransactionIndexEntry
from kwire.log.writing import log_reads, retention
from kwire.log.writing.append_batches import (
    AppendBatches,
    from_validated,
    from_whole_batch,
    unchanged,
    with_control_records,
)
from kwire.log.writing.append_preparation import AppendPreparation, Data, Prepared
from kwire.log.writing.local_log import LocalLog
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.log_reads import Fetched
from kwire.log.writing.producer_state import ProducerStates
from kwire.log.writing.recovery import NO_CHECKPOINTS, Loader, PartitionCheckpoints, rebuild_producer_state
from kwire.log.writing.segment_list import SegmentList
from kwire.log.writing.segment_writer import SegmentWriter
from kwire.log.writing.snapshot_files import SnapshotFiles
from kwire.records import AppendErrorCode, AppendOrigin, ControlRecordType, RejectedRecords, write_transaction_marker
from kwire.records.append.checks import analyze_append, check_given_offsets
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.checkpoints import end_offset_for
from kwire.storage.file_system import FileSystem

__all__ = ["Appended", "PartitionWriter", "Prepared"]

OFFSET_OUT_OF_RANGE = 1
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
OFFSET_SPAN = (1 << 31) - 1
NO_TIMESTAMP = -1


class Appended(NamedTuple):
    """Result of an append. Offsets are -1 if there was nothing to append.

    log_append_time_ms: with LogAppendTime; for a duplicate its timestamp; otherwise -1. duplicate: the log already has
    these records, at these offsets, and nothing was appended. records_converted: records that were re-encoded.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    max_timestamp: int
    duplicate: bool = False
    records_converted: int = 0


class PartitionWriter:
    """An open partition. Created by open().

    topic, partition, name: its identity. local: its segments and their files. log_start_offset: of the first record.
    producers, leader_epochs: their state.
    """

    def __init__(self, local: LocalLog, leader_epochs: LeaderEpochs, producers: ProducerStates) -> None:
        """Internal: use open()."""
        self.local, self.topic, self.partition = local, local.topic, local.partition
        self.name, self.directory = local.name, local.directory
        self.leader_epochs, self.producers = leader_epochs, producers
        self.log_start_offset = self._high_watermark = 0
        self._preparation = AppendPreparation(self.name, local.config)

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
    ) -> PartitionWriter:
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
        local = LocalLog(file_system, directory, topic, partition, config, now_ms)
        if topic_id is not None:
            local.assign_topic_id(topic_id, sync=sync)
        leader_epochs = LeaderEpochs(file_system, directory)
        if config.magic < 2:
            leader_epochs.discard()
        producers = ProducerStates(local.name, expiration_ms=config.producer_id_expiration_ms)
        loaded = Loader(
            file_system=file_system,
            directory=directory,
            name=local.name,
            config=config,
            checkpoints=checkpoints,
            epochs=leader_epochs,
            producers=producers,
            snapshots=local.snapshots,
            now_ms=now_ms,
            remove_later=lambda what: local.remove_later(what, now_ms),
        ).load()
        local.begin(loaded)
        self = cls(local, leader_epochs, producers)
        self.log_start_offset, self.high_watermark = loaded.log_start_offset, loaded.log_end_offset
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, [{self.log_start_offset}, {self.log_end_offset}))"

    # ---- configs and offsets

    @property
    def config(self) -> LogConfig:
        """The topic's configs; can be replaced at any time."""
        return self.local.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        if config is not self.local.config:
            self.local.config = config
            self._preparation = AppendPreparation(self.name, config)
            self.producers.expiration_ms = config.producer_id_expiration_ms

    @property
    def topic_id(self) -> uuid.UUID | None:
        """The id of the topic, if one was assigned."""
        return self.local.topic_id

    def assign_topic_id(self, topic_id: uuid.UUID) -> None:
        """Write a topic id to partition.metadata unless that has it. Raises LogError if it has another one."""
        self.local.assign_topic_id(topic_id)

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.local.log_end_offset

    @property
    def recovery_point(self) -> int:
        """The first offset that may not be durable."""
        return self.local.recovery_point

    @property
    def high_watermark(self) -> int:
        """Upper bound of what consumers read. On one node it follows every append; it can be set lower."""
        return self._high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        self._high_watermark = min(max(offset, self.log_start_offset), self.local.log_end_offset)
        self.producers.replicated_to(self._high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """Upper bound of what consumers with read_committed read (P-06)."""
        first = self.producers.first_unstable_offset
        if first is None or first >= self._high_watermark:
            return self._high_watermark
        return max(first, self.log_start_offset)

    @property
    def segments(self) -> SegmentList:
        """The segments in offset order, the last one active."""
        return self.local.segments

    @property
    def snapshots(self) -> SnapshotFiles:
        """The producer snapshots beside the segments."""
        return self.local.snapshots

    @property
    def has_failed(self) -> bool:
        """Whether a write has failed: the log stays readable, and has to be reopened to be written."""
        return self.local.has_failed

    @property
    def is_closed(self) -> bool:
        """Whether the files are closed."""
        return self.local.is_closed

    @property
    def size_bytes(self) -> int:
        """Size of the batches in all segments."""
        return self.segments.size_bytes

    # ---- appending

    def append(
        self,
        data: Data,
        *,
        now_ms: int,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int | None = None,
    ) -> Appended:
        """Check produced records, assign offsets and write them: all of them or, with an error, none.

        leader_epoch: this node's as the partition's leader. produce_version: of the Produce request, if any; decides
        which record formats are valid (U-01).
        Raises RejectedRecords or BrokerError with Kafka's code (P-02 to P-05), LogError for failed writes.
        """
        prepared = self.prepare(
            data, now_ms=now_ms, leader_epoch=leader_epoch, origin=origin, produce_version=produce_version
        )
        return self.append_prepared(prepared)

    def prepare(
        self,
        data: Data,
        *,
        now_ms: int,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int | None = None,
        quick: bool = False,
    ) -> Prepared:
        """Check produced records and assign offsets as if they were appended now; arguments as for append.

        The log is not changed, and only its configs and its end are read, so any thread may do this.
        data: must not change before it is appended. quick: give up if that takes more than about a millisecond.
        Raises RejectedRecords; TooMuchWork with quick.
        """
        return self._preparation.prepare(
            data,
            self.local.log_end_offset,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
            origin=origin,
            produce_version=produce_version,
            quick=quick,
        )

    def append_prepared(self, prepared: Prepared) -> Appended:
        """Write prepared records after everything appended since. Raises like append."""
        if self.local.log_end_offset != prepared.first_offset:
            prepared = self._move(prepared)
        now_ms, origin, first_offset = prepared.now_ms, prepared.origin, prepared.first_offset
        if prepared.whole is not None:
            new = from_whole_batch(prepared.data, prepared.whole, first_offset, prepared.leader_epoch)
            return self._write(new, origin, now_ms, NO_TIMESTAMP, 0)
        checked = prepared.checked
        if checked is None:
            return Appended(-1, -1, NO_TIMESTAMP, self.log_start_offset, NO_TIMESTAMP)
        append_time = now_ms if self.local.config.message_timestamp_type == "LogAppendTime" else NO_TIMESTAMP
        return self._write(
            from_validated(checked, first_offset), origin, now_ms, append_time, checked.records_converted
        )

    def _move(self, prepared: Prepared) -> Prepared:
        """Return the same records with offsets from the current log end on."""
        moved = prepared.moved_to(self.log_end_offset)
        if moved is None:
            return self.prepare(
                prepared.data,
                now_ms=prepared.now_ms,
                leader_epoch=prepared.leader_epoch,
                origin=prepared.origin,
                produce_version=prepared.produce_version,
            )
        return moved

    def append_as_given(self, data: Data, *, now_ms: int, origin: AppendOrigin = AppendOrigin.REPLICATION) -> Appended:
        """Write batches unchanged, with their offsets, epochs and timestamps; gaps are allowed (A-05).

        Raises RejectedRecords for offsets that do not increase or begin below the log end, and wrong checksums.
        """
        info = analyze_append(data, origin=origin, topic_partition=self.name)
        if info.valid_bytes <= 0:
            return Appended(-1, -1, NO_TIMESTAMP, self.log_start_offset, NO_TIMESTAMP)
        check_given_offsets(info, self.log_end_offset)
        return self._write(unchanged(data, info), origin, now_ms, NO_TIMESTAMP, 0)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        *,
        now_ms: int,
        leader_epoch: int = 0,
    ) -> Appended:
        """Write the marker that ends a producer's transaction, even if this partition has no part of it.

        Raises BrokerError for a stale epoch of the producer or the coordinator (P-02, P-05).
        """
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        data = write_transaction_marker(
            kind,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=now_ms,
        )
        return self.append(data, now_ms=now_ms, leader_epoch=leader_epoch, origin=AppendOrigin.COORDINATOR)

    def _write(
        self, new: AppendBatches, origin: AppendOrigin, now_ms: int, append_time: int, records_converted: int
    ) -> Appended:
        local, config = self.local, self.local.config
        local.check_writable()
        self._assign_epochs(new.headers)
        if new.size_bytes > config.max_segment_bytes:
            raise RejectedRecords(
                f"Message batch size is {new.size_bytes} bytes in append to partition {self.name}, which exceeds the "
                f"maximum configured segment size of {config.max_segment_bytes}.",
                AppendErrorCode.RECORD_LIST_TOO_LARGE,
            )
        if local.is_full(new, now_ms):
            self.roll(now_ms, new.last_offset - OFFSET_SPAN if new.first_offset is None else new.first_offset)
        update = self.producers.prepare(with_control_records(new), origin)
        if update.duplicate is not None:
            first, last, timestamp = update.duplicate
            return Appended(first, last, timestamp, self.log_start_offset, timestamp, duplicate=True)
        local.append(new)
        if update.entries:
            self.producers.commit(update)
            for completed in update.completed:
                if completed.is_aborted:
                    stable = self.producers.last_stable_offset(completed)
                    local.append_aborted(
                        TransactionIndexEntry(
                            completed.producer_id, completed.first_offset, completed.last_offset, stable
                        )
                    )
                self.producers.complete(completed)
        end_offset = self.producers.end_offset = self._high_watermark = local.log_end_offset
        self.producers.replicated_to(end_offset)
        if end_offset - local.recovery_point >= config.flush_messages:
            local.flush(now_ms=now_ms)
        return Appended(
            new.headers[0].base_offset if new.first_offset is None else new.first_offset,
            new.last_offset,
            append_time,
            self.log_start_offset,
            new.max_timestamp,
            records_converted=records_converted,
        )

    def begin_leader_epoch(self, leader_epoch: int) -> None:
        """Begin the epoch of a new leader at the end of the log, as Kafka does before the epoch has a record.

        Records of a later epoch, which a directory can have whose metadata is older, keep it.
        """
        latest = self.leader_epochs.latest
        if self.local.config.magic >= 2 and (latest is None or leader_epoch > latest):
            self.leader_epochs.begin(leader_epoch, self.log_end_offset)

    def _assign_epochs(self, headers: Sequence[BatchHeader]) -> None:
        """Update the leader epochs (A-08); a topic of an older record format has none."""
        if self.local.config.magic < 2:
            return
        for header in headers:
            if header.magic >= 2:
                self.leader_epochs.assign(header.leader_epoch, header.base_offset)
            else:
                self.leader_epochs.clear()

    # ---- reading

    def fetch(
        self,
        offset: int,
        max_bytes: int,
        *,
        up_to: int | None = None,
        at_least_one: bool = True,
        may_cut_first: bool = False,
    ) -> Fetched:
        """Fetch batches, as ranges of files, from the one that contains offset up to up_to. The last one may be cut.

        up_to: the high watermark (default) or the last stable offset. at_least_one: return the first batch whole even
        if it is larger than max_bytes. may_cut_first: return the beginning of a larger first batch, and not nothing.
        Raises BrokerError OFFSET_OUT_OF_RANGE outside of [log_start_offset, log_end_offset].
        """
        local = self.local
        end_offset = local.log_end_offset
        if not self.log_start_offset <= offset <= end_offset:
            raise BrokerError(
                f"offset {offset} of {self.name} is out of range {self.log_start_offset} to {end_offset}",
                OFFSET_OUT_OF_RANGE,
            )
        limit = self._high_watermark if up_to is None else min(up_to, end_offset)
        return log_reads.fetch(
            local.segments,
            offset,
            max_bytes,
            limit=limit,
            log_end_offset=end_offset,
            at_least_one=at_least_one,
            may_cut_first=may_cut_first,
        )

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Return aborted transactions with data in [from_offset, to_offset); to_offset: a fetch's next_offset_bound."""
        return log_reads.aborted_transactions(self.segments, from_offset, to_offset)

    def offset_for_time(self, timestamp: int, *, up_to: int | None = None) -> TimestampAndOffset | None:
        """Find the earliest record at or after timestamp (ms), like ListOffsets; None if there is none below up_to.

        Special timestamps: EARLIEST_TIMESTAMP, LATEST_TIMESTAMP and MAX_TIMESTAMP, as for PartitionLog. up_to: the high
        watermark (default) or the last stable offset.
        Raises BrokerError UNSUPPORTED_FOR_MESSAGE_FORMAT in a log of magic 0, CorruptBatch for damaged batches.
        """
        limit = self._high_watermark if up_to is None else up_to
        if timestamp == EARLIEST_TIMESTAMP:
            first = self.leader_epochs.earliest
            known = first is not None and first.start_offset <= self.log_start_offset
            return TimestampAndOffset(
                self.log_start_offset, NO_TIMESTAMP, first.leader_epoch if known and first else None
            )
        if timestamp == LATEST_TIMESTAMP:
            return TimestampAndOffset(limit, NO_TIMESTAMP, self.leader_epochs.latest)
        if self.local.config.magic == 0:
            raise BrokerError(
                f"{self.name} cannot be searched by timestamp: its message.format.version is "
                f"{self.local.config.message_format_version}",
                UNSUPPORTED_FOR_MESSAGE_FORMAT,
            )
        if timestamp == MAX_TIMESTAMP:
            record = log_reads.offset_of_largest_time(self.segments)
        else:
            record = log_reads.offset_for_time(self.segments, timestamp, self.log_start_offset)
        return record if record is not None and record.offset < limit else None

    def end_offset_for(self, leader_epoch: int) -> tuple[int, int]:
        """Return (leader epoch, end offset) as in OffsetForLeaderEpoch responses; (-1, -1) is undefined."""
        return end_offset_for(leader_epoch, self.leader_epochs.entries, self.log_end_offset)

    # ---- rolling, flushing, closing

    def roll(self, now_ms: int, at_least: int = 0) -> SegmentWriter:
        """Begin and return a new segment at the log end offset, or at at_least if that is higher (F-61).

        The old segment and a snapshot of the producers are flushed by the next flush_rolled() or flush().
        """
        segment = self.local.roll(now_ms, at_least)
        self.producers.end_offset = segment.base_offset
        self.local.take_snapshot(self.producers)
        return segment

    def flush_rolled(self, executor: Executor | None = None) -> None:
        """Make all but the active segment durable; see LocalLog."""
        self.local.flush_rolled(executor)

    def flush(self, *, now_ms: int | None = None) -> None:
        """Make everything durable; the recovery point advances to the log end offset."""
        self.local.flush(now_ms=now_ms)

    def close(self) -> None:
        """Close cleanly: flush, take a producer snapshot, trim the indexes."""
        if self.is_closed:
            return
        self.local.check_writable()
        self.leader_epochs.flush()
        self.local.flush()
        self.snapshots.take(self.producers)
        self.local.close()

    def abandon(self) -> None:
        """Close all files without flushing, like a crash; the next open has to recover."""
        self.local.abandon()

    # ---- truncating and deleting

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Remove everything that ends at or above offset; return whether there was anything to remove."""
        if offset < 0:
            raise OptionError(f"cannot truncate to offset {offset}: offsets are not negative")
        self.local.check_writable()
        self.local.finish_sync()
        if offset >= self.log_end_offset:
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            self.leader_epochs.flush()
            return False
        if self.segments[0].base_offset > offset:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return True
        self.local.truncate_to(offset, now_ms)
        self.leader_epochs.truncate_from_end(offset)
        self.leader_epochs.flush()
        self.log_start_offset = min(offset, self.log_start_offset)
        self._rebuild_producers(now_ms)
        self.high_watermark = min(self._high_watermark, offset)
        return True

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Remove all records; the log then begins and ends at offset."""
        self.local.check_writable()
        self.local.finish_sync()
        self.local.start_again_at(offset, now_ms)
        self.leader_epochs.clear()
        self.producers.clear()
        self.snapshots.remove_all()
        self.producers.snapshot_offset, self.producers.end_offset = 0, offset
        self.log_start_offset = offset
        self._rebuild_producers(now_ms)
        self._high_watermark = offset

    def _rebuild_producers(self, now_ms: int) -> None:
        rebuild_producer_state(
            self.producers,
            self.snapshots,
            self.segments,
            log_start_offset=self.log_start_offset,
            end_offset=self.log_end_offset,
            magic=self.config.magic,
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
        self.local.check_writable()
        self._increment_start(offset)
        return self.log_start_offset

    def _increment_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)
            self.snapshots.start_incremented(self.producers, offset)

    def delete_old_segments(self, now_ms: int) -> list[int]:
        """Remove segments below the log start and, with cleanup.policy=delete, those beyond retention (F-62).

        Returns their base offsets. The files are renamed to `.deleted` until LocalLog.delete_due_files().
        """
        self.local.check_writable()
        gone = self._delete(
            retention.below_log_start(self.segments, self.log_start_offset, self._high_watermark, self.log_end_offset),
            now_ms,
        )
        if "delete" in self.config.cleanup_policy:
            rest = self.config, self._high_watermark, self.log_end_offset
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
        self.local.remove(segments, now_ms)
        return [segment.base_offset for segment in segments]
