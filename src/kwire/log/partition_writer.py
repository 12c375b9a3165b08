"""One open partition: records in at its end, parts of files out, and everything that changes its directory.

    append             produced records: checked, numbered, written
    append_as_given    records that have their offsets: copies, restores, conversions
    append_marker      the end of a producer's transaction

One thread owns it. A record is in the page cache when append returns and on the disk when flush() does:
`recovery_point` says up to where. After a crash, everything below the recovery point is there, and what is behind it up
to the first batch that is not whole (kwire.log.recovery).
Source: kafka.log.UnifiedLog, LocalLog 3.9.1; rules A-01 to A-08, P-01 to P-08, F-60 to F-63, X-35.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from kwire.errors import BrokerError, LogError, Malformed, OptionError
from kwire.identifiers import MAX_OFFSET
from kwire.log import log_reads, retention
from kwire.log.delayed_removal import DelayedRemoval
from kwire.log.file_names import check_topic
from kwire.log.leader_epochs import LeaderEpochs
from kwire.log.log_config import LogConfig
from kwire.log.log_reads import Fetched
from kwire.log.producer_state import ProducerStates
from kwire.log.recovery import Loader, Progress, rebuild_producer_state
from kwire.log.segment_list import SegmentList
from kwire.log.segment_swap import swap
from kwire.log.segment_writer import SegmentWriter
from kwire.log.snapshot_files import SnapshotFiles
from kwire.log.time_lookup import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP, TimestampAndOffset
from kwire.log.to_write import Data, ToWrite, as_given, numbered, numbered_whole, with_markers
from kwire.log.transaction_index import AbortedTransaction, TransactionIndexEntry
from kwire.records import (
    AppendErrorCode,
    AppendOrigin,
    Compression,
    ControlRecordType,
    RejectedRecords,
    TimestampType,
    ValidatedRecords,
    validate_and_assign_offsets,
    write_transaction_marker,
)
from kwire.records.append_checks import analyze_append, check_given_offsets
from kwire.records.append_work import is_quick
from kwire.records.batch_header import BatchHeader
from kwire.records.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.request_magic import PRODUCE_ZSTD_VERSION, check_produced
from kwire.records.whole_batch import Acceptance, WholeBatch, take_whole_batch
from kwire.storage.background_sync import BackgroundSync
from kwire.storage.checkpoints import PARTITION_METADATA, parse_partition_metadata, render_partition_metadata
from kwire.storage.file_system import FileSystem

__all__ = ["Appended", "PartitionWriter", "Prepared"]

OFFSET_OUT_OF_RANGE, UNSUPPORTED_FOR_MESSAGE_FORMAT = 1, 43
OFFSET_SPAN = (1 << 31) - 1
NO_TIMESTAMP = -1
WITH_SHORT_WAY = (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR)
WITHOUT_ZSTD = range(3, PRODUCE_ZSTD_VERSION)
"""Versions of Produce whose batches are asked for their codec as well."""
TIMESTAMP_TYPES = {kind.text: kind for kind in (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME)}


def acceptance(config: LogConfig) -> Acceptance | None:
    """What batches that go the short way have to be like in a topic, None where there is no such way."""
    if config.magic != 2 or TIMESTAMP_TYPES[config.message_timestamp_type] != TimestampType.CREATE_TIME:
        return None
    return Acceptance(
        codec=None if config.codec == "producer" else Compression[config.codec.upper()],
        max_message_bytes=config.max_message_bytes,
        message_timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        message_timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        compacted=config.is_compacted,
    )


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of records. Offsets are -1 where there was nothing to append.

    log_append_time_ms: with LogAppendTime, and of a duplicate its timestamp; else -1. duplicate: these records were in
    the log already, at these offsets, and nothing was appended. records_converted: records that were encoded anew.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    max_timestamp: int
    duplicate: bool = False
    records_converted: int = 0


@dataclass(slots=True, kw_only=True)
class Prepared:
    """Produced records that were checked and numbered from first_offset on, not written yet.

    whole, checked: the result, by the short or the long way; neither where there is nothing to append. The rest: what
    was asked, see PartitionWriter.prepare.
    """

    data: Data
    first_offset: int
    now_ms: int
    leader_epoch: int
    origin: AppendOrigin
    produce_version: int | None
    whole: WholeBatch | None = None
    checked: ValidatedRecords | None = None


class PartitionWriter:
    """An open partition. Made by open().

    topic, partition, name, directory, topic_id: which one. segments: in offset order, the last one active.
    log_start_offset, log_end_offset: [first, next). recovery_point: what is below is on the disk.
    producers, leader_epochs: what is known of them.
    """

    def __init__(
        self, file_system: FileSystem, directory: str, topic: str, partition: int, config: LogConfig, now_ms: int
    ) -> None:
        """Use open()."""
        self._files, self.directory, self.topic, self.partition = file_system, directory, topic, partition
        self.name = f"{topic}-{partition}"
        self.config = config
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
        clean: bool = False,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        topic_id: uuid.UUID | None = None,
        progress: Progress | None = None,
    ) -> PartitionWriter:
        """Open a partition's directory, or make it; directory: the whole path.

        clean: the last stop was, so nothing is checked. log_start_offset, recovery_point: as checkpointed, else 0.
        topic_id: written to partition.metadata where there is none. progress: told of segments that are recovered.
        Raises OptionError on a name that no topic can have, LogError on files that cannot be used or another topic id.
        """
        check_topic(topic, partition)
        if not file_system.is_directory(directory):
            file_system.make_directory(directory)
            file_system.sync_directory(directory.rpartition("/")[0])
        log = cls(file_system, directory, topic, partition, config, now_ms)
        log._load_topic_id(topic_id)
        if config.magic < 2:
            log.leader_epochs.discard()
        loaded = Loader(
            file_system=file_system,
            directory=directory,
            name=log.name,
            config=config,
            is_clean=clean,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            epochs=log.leader_epochs,
            producers=log.producers,
            snapshots=log.snapshots,
            now_ms=now_ms,
            progress=progress,
            remove_later=lambda what: log._removal.add(what, now_ms + config.file_delete_delay_ms),
        ).load()
        log.segments, log.recovery_point = loaded.segments, loaded.recovery_point
        log.log_start_offset, log.log_end_offset = loaded.log_start_offset, loaded.log_end_offset
        log.high_watermark = loaded.log_end_offset
        return log

    def __repr__(self) -> str:
        return f"PartitionWriter({self.name!r}, [{self.log_start_offset}, {self.log_end_offset}))"

    def _load_topic_id(self, topic_id: uuid.UUID | None) -> None:
        path = f"{self.directory}/{PARTITION_METADATA}"
        if self._files.exists(path):
            try:
                self.topic_id = parse_partition_metadata(self._files.read_all(path))
            except Malformed as error:
                raise LogError(str(error), path) from error
            if topic_id is not None and topic_id != self.topic_id:
                raise LogError(f"this is the log of another topic {self.topic!r}, its id is {self.topic_id}", path)
        elif topic_id is not None:
            self._files.write_atomically(path, render_partition_metadata(topic_id))
            self.topic_id = topic_id

    # ---- settings and offsets

    @property
    def config(self) -> LogConfig:
        """The topic's settings; can be replaced at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._append_settings: dict[str, Any] = {
            "to_magic": config.magic,
            "compression_type": config.codec,
            "compression_level": config.compression_level,
            "message_timestamp_type": TIMESTAMP_TYPES[config.message_timestamp_type],
            "message_timestamp_before_max_ms": config.message_timestamp_before_max_ms,
            "message_timestamp_after_max_ms": config.message_timestamp_after_max_ms,
            "compacted": config.is_compacted,
            "max_message_bytes": config.max_message_bytes,
            "topic_partition": self.name,
            "check_crc": False,
        }
        self._acceptance = acceptance(config)

    @property
    def high_watermark(self) -> int:
        """Consumers read below it. One node: what is appended is below it at once; it can be set lower."""
        return self._high_watermark

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        self._high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.producers.replicated_to(self._high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """Consumers of committed data read below it (P-06)."""
        first = self.producers.first_unstable_offset
        if first is None or first >= self._high_watermark:
            return self._high_watermark
        return max(first, self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
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
        """Check produced records, number them and write them; all of them or, with an error, none.

        leader_epoch: of this node as the partition's leader. produce_version: of the Produce request, where there is
        one: it says what records may look like (U-01).
        Raises RejectedRecords or BrokerError with Kafka's code (P-02 to P-05), LogError where writing fails.
        """
        prepared = self.prepare(
            data, now_ms=now_ms, leader_epoch=leader_epoch, origin=origin, produce_version=produce_version
        )
        return self.append_prepared(prepared)

    def is_quick(self, data: Data) -> bool:
        """Whether prepare() takes about a millisecond, if records decompress to no more than quick_bytes()."""
        config = self._config
        codec = None if config.codec == "producer" else Compression[config.codec.upper()]
        return is_quick(data, magic=config.magic, codec=codec)

    def prepare(
        self,
        data: Data,
        *,
        now_ms: int,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int | None = None,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> Prepared:
        """Check produced records and number them as if they were appended now; see append.

        Nothing of the log is changed, and nothing but its settings and its end is read, so any thread may do this.
        data: not to be changed before it is appended.
        Raises RejectedRecords; DecompressesToTooMuch above max_decompressed_bytes.
        """
        first_offset = self.log_end_offset
        prepared = Prepared(
            data=data,
            first_offset=first_offset,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
            origin=origin,
            produce_version=produce_version,
        )
        topic = self._acceptance
        if topic is not None and origin in WITH_SHORT_WAY and produce_version not in WITHOUT_ZSTD:
            prepared.whole = take_whole_batch(
                data,
                first_offset,
                now_ms=now_ms,
                leader_epoch=leader_epoch,
                topic=topic,
                max_decompressed_bytes=max_decompressed_bytes,
            )
            if prepared.whole is not None:
                return prepared
        if produce_version is not None:
            check_produced(data, produce_version)
        info = analyze_append(
            data,
            origin=origin,
            leader_epoch=leader_epoch,
            max_message_bytes=self._config.max_message_bytes,
            topic_partition=self.name,
        )
        if info.valid_bytes > 0:
            prepared.checked = validate_and_assign_offsets(
                data,
                first_offset,
                now_ms=now_ms,
                leader_epoch=leader_epoch,
                origin=origin,
                max_decompressed_bytes=max_decompressed_bytes,
                **self._append_settings,
            )
        return prepared

    def append_prepared(self, prepared: Prepared) -> Appended:
        """Write records that prepare() has checked, behind whatever was appended since; see append."""
        if self.log_end_offset != prepared.first_offset:
            prepared = self._move(prepared)
        now_ms, origin, first_offset = prepared.now_ms, prepared.origin, prepared.first_offset
        if prepared.whole is not None:
            new = numbered_whole(prepared.data, prepared.whole, first_offset, prepared.leader_epoch)
            return self._write(new, origin, now_ms, NO_TIMESTAMP, 0)
        checked = prepared.checked
        if checked is None:
            return Appended(-1, -1, NO_TIMESTAMP, self.log_start_offset, NO_TIMESTAMP)
        append_time = now_ms if self._config.message_timestamp_type == "LogAppendTime" else NO_TIMESTAMP
        return self._write(numbered(checked, first_offset), origin, now_ms, append_time, checked.records_converted)

    def _move(self, prepared: Prepared) -> Prepared:
        """The same records at the log's present end."""
        shift = self.log_end_offset - prepared.first_offset
        whole = None if prepared.whole is None else prepared.whole.moved(shift)
        checked = None if prepared.checked is None else prepared.checked.moved(shift)
        if whole is None and checked is None:
            return self.prepare(
                prepared.data,
                now_ms=prepared.now_ms,
                leader_epoch=prepared.leader_epoch,
                origin=prepared.origin,
                produce_version=prepared.produce_version,
            )
        return replace(prepared, first_offset=self.log_end_offset, whole=whole, checked=checked)

    def append_as_given(self, data: Data, *, now_ms: int, origin: AppendOrigin = AppendOrigin.REPLICATION) -> Appended:
        """Write batches with the offsets, epochs and times that they have; gaps between them are fine (A-05).

        Raises RejectedRecords: offsets that do not rise or begin below the log's end, a wrong checksum.
        """
        info = analyze_append(data, origin=origin, topic_partition=self.name)
        if info.valid_bytes <= 0:
            return Appended(-1, -1, NO_TIMESTAMP, self.log_start_offset, NO_TIMESTAMP)
        check_given_offsets(info, self.log_end_offset)
        return self._write(as_given(data, info), origin, now_ms, NO_TIMESTAMP, 0)

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
        """Write the marker that ends a producer's transaction, whether it has one here or not.

        Raises BrokerError: an older epoch of the producer or of the coordinator than known (P-02, P-05).
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
        self, new: ToWrite, origin: AppendOrigin, now_ms: int, append_time: int, records_converted: int
    ) -> Appended:
        self._check_writable()
        self._learn_epochs(new.headers)
        if new.size_bytes > self._config.max_segment_bytes:
            raise RejectedRecords(
                f"Message batch size is {new.size_bytes} bytes in append to partition {self.name}, which exceeds the "
                f"maximum configured segment size of {self._config.max_segment_bytes}.",
                AppendErrorCode.RECORD_LIST_TOO_LARGE,
            )
        segment = self._segment_for(new, now_ms)
        update = self.producers.prepare(with_markers(new), origin)
        if update.duplicate is not None:
            first, last, timestamp = update.duplicate
            return Appended(first, last, timestamp, self.log_start_offset, timestamp, duplicate=True)
        only = new.headers[0].base_offset if len(new.headers) == 1 and new.headers[0].magic == 2 else None
        try:
            segment.append(
                new.parts, new.last_offset, new.max_timestamp, new.offset_of_max_timestamp, only_base_offset=only
            )
            self.log_end_offset = new.last_offset + 1
            if update.entries:
                self.producers.commit(update)
                for completed in update.completed:
                    if completed.is_aborted:
                        stable = self.producers.last_stable_offset(completed)
                        segment.transaction_index.append(
                            TransactionIndexEntry(
                                completed.producer_id, completed.first_offset, completed.last_offset, stable
                            )
                        )
                    self.producers.complete(completed)
        except LogError as error:
            self._failure = error
            raise
        self.producers.end_offset = self.log_end_offset
        self.high_watermark = self.log_end_offset
        if self.log_end_offset - self.recovery_point >= self._config.flush_messages:
            self.flush(now_ms=now_ms)
        return Appended(
            new.headers[0].base_offset if new.first_offset is None else new.first_offset,
            new.last_offset,
            append_time,
            self.log_start_offset,
            new.max_timestamp,
            records_converted=records_converted,
        )

    @property
    def has_failed(self) -> bool:
        """Whether a write went wrong: what is there can be read; to be written the log has to be opened again."""
        return self._failure is not None

    def _check_writable(self) -> None:
        if self.is_closed:
            raise LogError("the log is closed", self.directory)
        if self._failure is not None:
            raise LogError(f"an earlier write failed, open the log again: {self._failure.what}", self._failure.file)

    def _learn_epochs(self, headers: Sequence[BatchHeader]) -> None:
        """A-08."""
        for header in headers:
            if header.magic >= 2:
                self.leader_epochs.assign(header.leader_epoch, header.base_offset)
            else:
                self.leader_epochs.clear()

    def _segment_for(self, new: ToWrite, now_ms: int) -> SegmentWriter:
        segment = self.segments.active
        if not segment.should_roll(self._config, now_ms, new.size_bytes, new.last_offset, new.max_timestamp):
            return segment
        base = new.last_offset - OFFSET_SPAN if new.first_offset is None else new.first_offset
        return self.roll(now_ms, base)

    def roll(self, now_ms: int, at_least: int = 0) -> SegmentWriter:
        """Begin a new segment at the log's end, or higher: at_least (F-61). Returns it.

        The old one is flushed by the next flush_rolled() or flush().
        """
        self._check_writable()
        base, active = max(at_least, self.log_end_offset), self.segments.active
        if base == active.base_offset and active.size_bytes == 0:
            active.change_suffix(".deleted")  # its indexes had no room for one entry
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
        segment = SegmentWriter(
            self._files, self.directory, base_offset, self._config, now_ms=now_ms, is_new=True, suffix=suffix
        )
        if segment.log.end or segment.offset_index.count or segment.transaction_index.file is not None:
            segment.remove()  # left from a crash
            segment = SegmentWriter(
                self._files, self.directory, base_offset, self._config, now_ms=now_ms, is_new=True, suffix=suffix
            )
        return segment

    # ---- reading

    def fetch(self, offset: int, max_bytes: int, *, up_to: int | None = None, at_least_one: bool = True) -> Fetched:
        """Batches from the one that has offset on, as parts of files; none that begins at or above up_to.

        up_to: the high watermark (default) or the last stable offset. at_least_one: the first batch is given whole even
        if it is larger than max_bytes; without, the last bytes may be a batch that is cut.
        Raises BrokerError OFFSET_OUT_OF_RANGE outside of [log_start_offset, log_end_offset].
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise BrokerError(
                f"offset {offset} of {self.name}, which has {self.log_start_offset} to {self.log_end_offset}",
                OFFSET_OUT_OF_RANGE,
            )
        limit = self._high_watermark if up_to is None else min(up_to, self.log_end_offset)
        return log_reads.fetch(
            self.segments,
            offset,
            max_bytes,
            limit=limit,
            log_end_offset=self.log_end_offset,
            at_least_one=at_least_one,
        )

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions with data in [from_offset, to_offset); to_offset: next_offset_bound of a fetch."""
        return log_reads.aborted_transactions(self.segments, from_offset, to_offset)

    def offset_for_time(self, timestamp: int, *, up_to: int | None = None) -> TimestampAndOffset | None:
        """The earliest record at or after timestamp (ms), as ListOffsets answers it; None where none is below up_to.

        EARLIEST_TIMESTAMP, LATEST_TIMESTAMP and MAX_TIMESTAMP as for PartitionLog. up_to: the high watermark (default)
        or the last stable offset.
        Raises BrokerError UNSUPPORTED_FOR_MESSAGE_FORMAT in a log of magic 0, CorruptBatch on damaged batches.
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
        if self._config.magic == 0:
            raise BrokerError(
                f"offsets of {self.name} cannot be searched by time: its message.format.version is "
                f"{self._config.message_format_version}",
                UNSUPPORTED_FOR_MESSAGE_FORMAT,
            )
        if timestamp == MAX_TIMESTAMP:
            found = log_reads.offset_of_largest_time(self.segments)
        else:
            found = log_reads.offset_for_time(self.segments, timestamp, self.log_start_offset)
        return found if found is not None and found.offset < limit else None

    def end_offset_for(self, leader_epoch: int) -> tuple[int, int]:
        """(leader epoch, end offset) as OffsetForLeaderEpoch answers it; (-1, -1) is undefined."""
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # ---- flushing

    def flush_rolled(self, executor: Executor | None = None) -> None:
        """Get all but the active segment on the disk; the recovery point moves to that one's base.

        With an executor, another thread waits for the disk, and the recovery point moves in a later call.
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
        """Wait for the other thread, and remember what it has done."""
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
        """Wait until everything is on the disk; the recovery point moves to the log's end."""
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
        """Flush, take a producer snapshot, trim the indexes: what a clean stop leaves. Nothing can be done after it."""
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
        """Let go of all files as they are, as a crash would; the next open has to recover."""
        if self._syncing is not None:
            self._syncing.finish()
        for segment in self.segments:
            segment.close_files()
        self._removal.close()
        self.is_closed = True

    # ---- cutting

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Cut off everything that ends at or above offset; False where that is nothing."""
        if offset < 0:
            raise OptionError(f"offset {offset} to truncate to is negative")
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
        """Remove all records: the log begins and ends at offset."""
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
        """Move the log start to before_offset, -1 for the high watermark; returns the log start.

        Raises BrokerError OFFSET_OUT_OF_RANGE above the high watermark. Files go with the next delete_old_segments().
        """
        offset = self._high_watermark if before_offset == -1 else before_offset
        if not 0 <= offset <= self._high_watermark:
            raise BrokerError(
                f"cannot move the log start of {self.name} to {offset}, its high watermark is {self._high_watermark}",
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
        """Remove segments below the log start and, with cleanup.policy=delete, those over retention (F-62).

        Returns their base offsets. The files keep `.deleted` names until delete_due_files() finds them due.
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
        """Remove `.deleted` files whose delay has passed (F-63)."""
        self._removal.remove_due(now_ms)

    # ---- cleaning

    def new_cleaned_segment(self, base_offset: int, *, now_ms: int) -> SegmentWriter:
        """An empty segment with `.cleaned` names, for a cleaner or a split to append to; leftovers of one go first."""
        return self._new_segment(base_offset, now_ms, ".cleaned")

    def replace_segments(self, old: Sequence[int], new: Sequence[int], *, now_ms: int) -> None:
        """Put `.cleaned` segments in the place of old ones (X-35); both by base offset, none of them the active one.

        Whatever step a crash stops at, the next open has either the old segments or the new ones.
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
