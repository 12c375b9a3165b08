"""Read one partition: its segments as one sequence of records.

State that brokers hold in memory is derived from files: the log start offset from `log-start-offset-checkpoint` or the
first segment, the log end offset from the tail of the last segment, open transactions from a producer snapshot and the
records after it. Reads extend to the log end offset, not to the checkpointed high watermark, which is seconds old by
design; a broker that starts on this directory alone would use its log end offset as the high watermark.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kwire.errors import CorruptBatch, LogError, Malformed
from kwire.log.files.file_names import (
    Ignored,
    PartitionFiles,
    SegmentFiles,
    decide_files,
    plain_segments,
)
from kwire.log.files.producer_snapshot import parse_producer_snapshot
from kwire.log.files.segment import Segment
from kwire.log.files.segment_batches import segment_batches
from kwire.log.files.time_lookup import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    TimestampAndOffset,
    find_max_timestamp,
    find_timestamp,
)
from kwire.log.files.transaction_index import AbortedTransaction
from kwire.log.files.transactions import aborted_transactions, open_transactions
from kwire.log.reading.readable_log import Isolation, PinnedRange, ReadableLog
from kwire.log.reading.relisting import retry_on_change
from kwire.log.reading.segment_runs import open_runs
from kwire.records import Batch
from kwire.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    LeaderEpoch,
    parse_leader_epochs,
    parse_partition_metadata,
)
from kwire.storage.open_store import open_store
from kwire.storage.store import Entry, Store, StoredFile, parent_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kwire.log.files.damage import Damage

T = TypeVar("T")
MEASURED = (".log", ".log.swap")  # files of segments, whose sizes and times matter


class SegmentSpan(NamedTuple):
    """Offsets and size of a segment. next_base: None for the active one. name: of the `.log` file."""

    base_offset: int
    next_base: int | None
    size_bytes: int
    name: str


class PartitionLog(ReadableLog):
    """The log of one partition, as of one listing of its directory. Created by LogDirectory.

    topic, partition: its identity. store, directory: the location of its files. Growth of the active segment is visible
    in log_end_offset, last_stable_offset and reads; segments rolled later are visible after reopened().
    """

    def __init__(
        self,
        store: Store,
        directory: str,
        topic: str,
        partition: int,
        *,
        log_start_checkpoint: int | None = None,
        high_watermark_checkpoint: int | None = None,
        only_base_offset: int | None = None,
    ) -> None:
        """directory: path in the store. only_base_offset: use this segment only."""
        self.store, self.directory = store, directory
        self.topic, self.partition = topic, partition
        self._log_start_checkpoint = log_start_checkpoint
        self._high_watermark_checkpoint = high_watermark_checkpoint
        self.only_base_offset = only_base_offset

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic!r}, {self.partition}, {self.url!r})"

    @property
    def url(self) -> str:
        """The path or URL of the partition's directory."""
        return self.store.url_of(self.directory)

    @property
    def source_url(self) -> str:
        """The path or URL of the store that has the directory."""
        return self.store.url

    def reopened(self) -> PartitionLog:
        """Return the same partition with a new listing, which has later segments and no deleted ones."""
        return PartitionLog(
            self.store,
            self.directory,
            self.topic,
            self.partition,
            log_start_checkpoint=self._log_start_checkpoint,
            high_watermark_checkpoint=self._high_watermark_checkpoint,
            only_base_offset=self.only_base_offset,
        )

    def sibling(self, topic: str, partition: int) -> PartitionLog:
        """Return another partition of the same log directory, without its checkpoints; its files may be missing.

        Raises LogError if the parent directory cannot be opened.
        """
        store = self.store
        if not self.directory:
            parent = parent_of(store.url)
            if parent is None:
                raise LogError("has no parent directory", store.url)
            store = open_store(parent[0], store.options)
        return PartitionLog(store, f"{topic}-{partition}", topic, partition)

    # ---- files

    @cached_property
    def listing(self) -> dict[str, Entry]:
        """The files of the directory, by name. Raises LogError if it cannot be listed."""
        return {entry.name: entry for entry in self.store.list(self.directory) if not entry.is_directory}

    @cached_property
    def entries(self) -> Mapping[str, Entry | None]:
        """The files of the directory, with entries for those of MEASURED at least; the listing if that was read before.

        Asking for the sizes of all files would take most of the time of planning with many small segments.
        """
        return self.listing if "listing" in self.__dict__ else self.store.list_files(self.directory, MEASURED)

    @property
    def is_fully_listed(self) -> bool:
        """Whether entries has the sizes and times of all files."""
        return self.__dict__.get("listing") is self.entries

    @cached_property
    def _files(self) -> PartitionFiles:
        def next_offset(name: str, base_offset: int) -> int:
            files = SegmentFiles(base_offset=base_offset, names={"log": name})
            return self._segment(files, None).end().next_offset

        files = decide_files(self.entries, next_offset)
        if self.only_base_offset is not None:
            files.segments = [each for each in files.segments if each.base_offset == self.only_base_offset]
        return files

    def _segment(self, files: SegmentFiles, next_base: int | None) -> Segment:
        entry = self.entries[files.names["log"]]
        assert entry is not None, "a segment's file has one of the endings MEASURED"
        return Segment(
            self.store,
            self.directory,
            files,
            next_base=next_base,
            size_bytes=entry.size_bytes,
            modified_ms=entry.modified_ms,
        )

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments that a broker would load, by base offset. Raises LogError if the directory cannot be listed."""
        found = self._files.segments
        next_bases = [*(each.base_offset for each in found[1:]), None]
        return [self._segment(files, base) for files, base in zip(found, next_bases, strict=False)]

    def segment_spans(self) -> list[SegmentSpan]:
        """Return what planning needs of each segment. Takes a third of the time of creating segments.

        Raises LogError if the directory cannot be listed.
        """
        entries = self.entries
        found = None if self.only_base_offset is not None else plain_segments(entries)
        if found is None or "segments" in self.__dict__:
            return [
                SegmentSpan(each.base_offset, each.next_base, each.size_bytes, each.name_of("log"))
                for each in self.segments
            ]
        spans, next_base = [], None
        for base, name in reversed(found):
            entry = entries[name]
            assert entry is not None, "a segment's file has one of the endings MEASURED"
            spans.append(SegmentSpan(base, next_base, entry.size_bytes, name))
            next_base = base
        spans.reverse()
        return spans

    @property
    def segment_count(self) -> int:
        """Number of segments."""
        return len(self.segments)

    @property
    def ignored(self) -> list[Ignored]:
        """Files in this directory that are not part of the log, with reasons."""
        return self._files.ignored

    @property
    def size_bytes(self) -> int:
        """Total size of the `.log` files, as listed."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def last_timestamp(self) -> int | None:
        """Largest timestamp in ms of the newest segment that has one: nearly always the newest record's."""
        for segment in reversed(self.segments):
            with segment.open() as file:
                largest = segment.largest_timestamp(file)
            if largest != -1:
                return largest
        return None

    def fingerprint(self) -> list[list[int]]:
        """Return values that change when the log does."""
        return [[segment.base_offset, segment.size_bytes] for segment in self.segments] + [[self.log_start_offset]]

    def has_changed(self, again: PartitionLog) -> bool:
        """Return whether a new listing differs in files, sizes or times, as far as this one has them."""
        try:
            return self.entries != (again.listing if self.is_fully_listed else again.entries)
        except LogError:
            return True

    @property
    def is_deleted(self) -> bool:
        """Whether the directory was removed, or renamed because its topic was deleted."""
        if not self.directory:
            return False
        try:
            return all(entry.name != self.directory for entry in self.store.list("") if entry.is_directory)
        except LogError:
            return False

    @property
    def directory_bytes(self) -> int:
        """Total size of the files in the directory, as listed."""
        return sum(entry.size_bytes for entry in self.listing.values())

    def path_of(self, name: str) -> str:
        """Return the path of a file in this directory, relative to the store."""
        return f"{self.directory}/{name}" if self.directory else name

    def url_of(self, name: str) -> str:
        """Return the path or URL of a file in this directory."""
        return self.store.url_of(self.path_of(name))

    def open_file(self, name: str) -> StoredFile:
        """Open a file in this directory. Raises LogError."""
        return self.store.open(self.path_of(name))

    def read_file(self, name: str) -> bytes:
        """Read a whole small file in this directory. Raises LogError."""
        return self.store.read_all(self.path_of(name))

    def has_file(self, name: str) -> bool:
        """Return whether the listing contains a file."""
        return name in self.entries

    @property
    def file_names(self) -> list[str]:
        """Names of the files in this directory, as listed."""
        return list(self.listing)

    @property
    def snapshots(self) -> dict[int, str]:
        """Names of the producer snapshots, by offset."""
        return self._files.snapshots

    def _parse_file(self, name: str, parse: Callable[[bytes], T]) -> T | None:
        """Parse a small file, None if it is missing. Raises LogError if it is invalid."""
        try:
            return parse(self.read_file(name)) if name in self.entries else None
        except Malformed as error:
            raise LogError(str(error), self.url_of(name)) from error

    @cached_property
    def topic_id(self) -> uuid.UUID | None:
        """Topic id in partition.metadata; None without that file (before Kafka 2.8). Raises LogError if invalid."""
        return self._parse_file(PARTITION_METADATA, parse_partition_metadata)

    @cached_property
    def leader_epochs(self) -> list[LeaderEpoch]:
        """Entries of leader-epoch-checkpoint, oldest first; empty without it. Raises LogError if it is invalid."""
        return self._parse_file(LEADER_EPOCHS, parse_leader_epochs) or []

    # ---- offsets

    @property
    def log_start_offset(self) -> int:
        """First available offset: the checkpoint's, or the first segment's base offset if that is higher."""
        return self.start_of(self.segments[0].base_offset if self.segments else 0)

    def start_of(self, first_base_offset: int) -> int:
        """Return the first available offset of a log whose first segment has this base offset."""
        return max(first_base_offset, self._log_start_checkpoint or 0)

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record, found in the tail of the last segment; batches are not verified."""
        end = self.segments[-1].end().next_offset if self.segments else 0
        return max(end, self.log_start_offset)  # G-09: a log that ends below its start restarts there

    @property
    def is_one_segment(self) -> bool:
        """Whether this is one segment of a log, named by its file: other offsets are elsewhere, and not deleted."""
        return self.only_base_offset is not None

    @property
    def damage(self) -> CorruptBatch | None:
        """Damage at the end of the active segment; None if it ends normally."""
        return self.segments[-1].end().damage if self.segments else None

    @property
    def high_watermark(self) -> int | None:
        """High watermark in replication-offset-checkpoint, up to five seconds old; None without an entry."""
        return self._high_watermark_checkpoint

    @property
    def last_stable_offset(self) -> int:
        """Start of the oldest open transaction, or the log end offset (P-06, which serves as high watermark here)."""
        if not self.segments:
            return self.log_end_offset
        open_now = open_transactions(self.segments, self._files.snapshots, self._snapshot, self.log_start_offset)
        first = min(open_now.values(), default=None)
        return self.log_end_offset if first is None else max(first, self.log_start_offset)

    def _snapshot(self, offset: int) -> dict[int, int] | None:
        """Return the transactions open at offset by its producer snapshot; None without a valid one."""
        name = self._files.snapshots.get(offset)
        try:
            producers = None if name is None else self._parse_file(name, parse_producer_snapshot)
        except LogError:
            return None  # F-42: use an older one, or the log
        if producers is None:
            return None
        return {
            each.producer_id: each.current_transaction_first_offset
            for each in producers
            if each.current_transaction_first_offset >= 0
        }

    def aborted_transactions(
        self, start_offset: int = 0, end_offset: int | None = None, *, may_walk: bool = True
    ) -> list[AbortedTransaction]:
        """Return aborted transactions with records in [start_offset, end_offset); default: to the last stable offset.

        Their first_offset may be cut to start_offset. may_walk=False raises `transactions.NeedsWalk` if `.txnindex`
        files and producer snapshots are not sufficient.
        """
        end = self.last_stable_offset if end_offset is None else end_offset
        start = max(start_offset, self.log_start_offset)
        if start >= end:
            return []
        return aborted_transactions(self.segments, start, end, snapshot=self._snapshot, may_walk=may_walk)

    def segments_between(self, start_offset: int, end_offset: int) -> list[Segment]:
        """Return the segments that may contain offsets in [start_offset, end_offset)."""
        return [
            segment
            for segment in self.segments
            if segment.base_offset < end_offset and (segment.next_base is None or segment.next_base > start_offset)
        ]

    def offset_for_time(
        self, timestamp: int, *, isolation: Isolation = "read_uncommitted"
    ) -> TimestampAndOffset | None:
        """Find the earliest record at or after `timestamp` (ms), like Kafka's ListOffsets; None if there is none.

        LATEST_TIMESTAMP (-1), EARLIEST_TIMESTAMP (-2) and MAX_TIMESTAMP (-3) stand for the log end offset (the last
        stable offset for read_committed), the log start offset, and the first record with the largest timestamp.
        Raises CorruptBatch if the records in question are damaged.
        """
        start, end = self.bounds(0, None, isolation)
        if timestamp == EARLIEST_TIMESTAMP:
            return TimestampAndOffset(start, -1)
        if timestamp == LATEST_TIMESTAMP:
            return TimestampAndOffset(end, -1)
        if timestamp == MAX_TIMESTAMP:
            found = find_max_timestamp(self.segments)
        elif self.segments and self.segments[-1].end().magic == 0:
            return None  # brokers respond UNSUPPORTED_FOR_MESSAGE_FORMAT to magic 0
        else:
            found = find_timestamp(self.segments, timestamp, start)
        return found if found is not None and found.offset < end else None

    def verify(self) -> list[Damage]:
        """Find all damage of batches, indexes, snapshots and checkpoints, by file and position.

        Includes notes (`is_harmless`). Damaged bytes do not raise.
        """
        from kwire.log.verify import context_of, verify_log

        return verify_log(self, context_of(self)).damages

    # ---- records

    def pin(
        self, start_offset: int = 0, end_offset: int | None = None, isolation: Isolation = "read_uncommitted"
    ) -> PinnedRange:
        """Fix a range of offsets for a read, and open its segments as runs: see ReadableLog.pin."""

        def pinned(log: PartitionLog) -> PinnedRange:
            start, end = log.bounds(start_offset, end_offset, isolation)
            aborted = log.aborted_transactions(start, end) if isolation == "read_committed" else ()
            return PinnedRange(start_offset=start, end_offset=end, runs=open_runs(log, start, end, aborted))

        return retry_on_change(self, pinned)

    def batches(self, start_offset: int = 0) -> Iterator[tuple[Segment, Batch]]:
        """Iterate over the batches from the one that contains start_offset on, with their segments.

        Control batches are included. Batches are neither verified nor decoded: see `batch.check()`, `batch.records()`.
        Raises CorruptBatch for bytes that are not a batch, LogError for missing or unreadable files.
        """
        for segment in self.segments:
            if segment.next_base is None or segment.next_base > start_offset:
                for batch in segment_batches(segment, start_offset):
                    yield segment, batch
