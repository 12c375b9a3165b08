"""Read one partition: its segments as one sequence of records.

State that brokers hold in memory is derived from files: the log start offset from `log-start-offset-checkpoint` or the
first segment, the log end offset from the tail of the last segment, open transactions from a producer snapshot and the
records after it. Reads extend to the log end offset, not to the checkpointed high watermark, which is seconds old by
design; a broker that starts on this directory alone would use its log end offset as the high watermark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial

from kwire.errors import CorruptBatch, LogError, Malformed, MissingOffsets
from kwire.identifiers import MAX_OFFSET, TopicPartition
from kwire.internal_topics.names import METADATA_TOPIC
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
from kwire.log.files.transactions import AbortedSearch, open_transactions
from kwire.log.reading.missing_segments import missing_after
from kwire.log.reading.partition_listing import PartitionListing
from kwire.log.reading.readable_log import ReadableLog
from kwire.log.reading.relisting import retry_on_change
from kwire.log.reading.runs import Isolation, Missing, PinnedRange, Run, check_bounds, check_timestamp
from kwire.log.reading.segment_runs import is_expired, open_segments
from kwire.records import Batch
from kwire.storage.checkpoints import CLEANER_OFFSETS, parse_offset_checkpoint
from kwire.storage.open_store import open_store
from kwire.storage.store import Store, parent_of

logger = logging.getLogger("kwire.log")


class PartitionLog(PartitionListing, ReadableLog):
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
        super().__init__(store, directory, topic, partition, only_base_offset=only_base_offset)
        self._log_start_checkpoint = log_start_checkpoint
        self._high_watermark_checkpoint = high_watermark_checkpoint
        self._stable_until: tuple[int, int] | None = None  # a log end offset, and the last stable offset of that log

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic!r}, {self.partition}, {self.url!r})"

    def reopened(self) -> PartitionLog:
        """Return the same partition with a new listing: see PartitionListing.reopened."""
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

    @property
    def size_bytes(self) -> int:
        """Total size of the `.log` files, as listed."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def segment_count(self) -> int:
        """Number of segments."""
        return len(self.segments)

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
        """Start of the oldest open transaction, or the log end offset (P-06, which serves as high watermark here).

        Kept until the log grows: without a snapshot of its producers, all batches are walked.
        """
        end = self.log_end_offset
        if not self.segments:
            return end
        if self._stable_until is None or self._stable_until[0] != end:
            open_now = open_transactions(self.segments, self._files.snapshots, self._snapshot, self.log_start_offset)
            first = min(open_now.values(), default=None)
            self._stable_until = end, end if first is None else max(first, self.log_start_offset)
        return self._stable_until[1]

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

    def aborted_transactions(self, start_offset: int = 0, end_offset: int | None = None) -> list[AbortedTransaction]:
        """Return aborted transactions with records in [start_offset, end_offset); default: to the last stable offset.

        Their first_offset may be cut to start_offset.
        Raises MissingOffsets if the end of a transaction may be in a segment that is missing.
        """
        end = self.last_stable_offset if end_offset is None else end_offset
        start = max(start_offset, self.log_start_offset)
        if start >= end:
            return []
        return self.aborted_search(start).within(start, end)

    def aborted_search(self, start_offset: int, *, skip_missing: bool = False) -> AbortedSearch:
        """Return a search of aborted transactions that begins at an offset. skip_missing: as in AbortedIn."""

        def missing_after(segment: Segment) -> int | None:
            missing = self.missing_after(segment, start_offset, None, MAX_OFFSET)
            if missing is None:
                return None
            (_, end), error = missing
            what = f"a transaction with records before them may end in them: {error.what}"
            if not skip_missing:
                raise MissingOffsets(what, error.file)
            logger.warning("%s: %s; its records are left out", error.file, what)
            return end

        return AbortedSearch(self.segments, start_offset, missing_after)

    def offset_for_time(
        self, timestamp: int, *, isolation: Isolation = "read_uncommitted"
    ) -> TimestampAndOffset | None:
        """Find the earliest record at or after `timestamp` (ms), like Kafka's ListOffsets; None if there is none.

        LATEST_TIMESTAMP (-1), EARLIEST_TIMESTAMP (-2) and MAX_TIMESTAMP (-3) stand for the log end offset (the last
        stable offset for read_committed), the log start offset, and the first record with the largest timestamp.
        Raises CorruptBatch if the records in question are damaged.
        """
        check_timestamp(timestamp)
        start, end = self.bounds(0, None, isolation)
        if timestamp == EARLIEST_TIMESTAMP:
            return TimestampAndOffset(start, -1)
        if timestamp == LATEST_TIMESTAMP:
            return TimestampAndOffset(end, -1)
        if timestamp == MAX_TIMESTAMP:
            record = find_max_timestamp(self.segments)
        elif self.segments and self.segments[-1].end().magic == 0:
            return None  # brokers respond UNSUPPORTED_FOR_MESSAGE_FORMAT to magic 0
        else:
            record = find_timestamp(self.segments, timestamp, start)
        return record if record is not None and record.offset < end else None

    # ---- records

    def pin(
        self, start_offset: int = 0, end_offset: int | None = None, isolation: Isolation = "read_uncommitted"
    ) -> PinnedRange:
        """Fix a range of offsets for a read, and open its segments as runs: see ReadableLog.pin."""

        def pinned(log: PartitionLog) -> PinnedRange:
            start, end = log.bounds(start_offset, end_offset, isolation)
            lookup = AbortedLookup(log) if isolation == "read_committed" else None
            return PinnedRange(
                topic=log.topic,
                partition=log.partition,
                start_offset=start,
                end_offset=end,
                runs=_runs(log, start, end, lookup),
            )

        return retry_on_change(self, pinned)

    def batches(self, start_offset: int = 0) -> Iterator[tuple[Segment, Batch]]:
        """Iterate over the batches from the one that contains start_offset on, with their segments.

        Control batches are included. Batches are neither verified nor decoded: see `batch.check()`, `batch.records()`.
        Raises CorruptBatch for bytes that are not a batch, LogError for missing or unreadable files, OptionError for a
        negative start.
        """
        check_bounds(start_offset)
        for segment in self.segments:
            if segment.next_base is None or segment.next_base > start_offset:
                for batch in segment_batches(segment, start_offset):
                    yield segment, batch

    def missing_after(
        self, segment: Segment, start_offset: int, reached: int | None, end_offset: int
    ) -> Missing | None:
        """Return what is missing of offsets [start_offset, end_offset) after a segment: see missing_segments."""
        return missing_after(self, segment, reached, start_offset, end_offset, self._is_known_as_compacted)

    def _is_known_as_compacted(self) -> bool:
        """Return whether files of the log directory say that the log was compacted, or may be."""
        from kwire.log.topics.topic_metadata import TopicMetadata

        if self.topic == METADATA_TOPIC:
            return False
        try:
            metadata_log = self.sibling(METADATA_TOPIC, 0)
        except LogError:
            return False  # a partition's directory alone
        if (self.topic, self.partition) in _cleaned(metadata_log.store):
            return True
        return bool(TopicMetadata(metadata_log).is_compacted(self.topic))


def _cleaned(store: Store) -> dict[TopicPartition, int]:
    """Return the cleaner's checkpoint; empty if it is missing or cannot be read."""
    try:
        return parse_offset_checkpoint(store.read_all(CLEANER_OFFSETS))
    except (LogError, Malformed):
        return {}


class AbortedLookup:
    """Looks up aborted transactions when their batches are read: most topics have none, and need no search."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self._search: AbortedSearch | None = None

    def __call__(self, start_offset: int, end_offset: int, *, skip_missing: bool = False) -> list[AbortedTransaction]:
        """Return those with data in [start_offset, end_offset): see AbortedIn. Raises CorruptBatch, LogError."""

        def find(log: PartitionLog) -> list[AbortedTransaction]:
            search, self._search = self._search, None  # one that fails is not used again
            if search is None or log is not self._log or not search.start <= start_offset <= search.reached:
                search = log.aborted_search(start_offset, skip_missing=skip_missing)
            found = search.within(start_offset, end_offset)
            self._log, self._search = log, search
            return found

        return retry_on_change(self._log, find)


def _runs(log: PartitionLog, start: int, end: int, aborted_in: AbortedLookup | None) -> Iterator[Run]:
    for now, segment, file, offset in open_segments(log, start, end):
        missing_after = partial(now.missing_after, segment, offset)
        yield Run(segment, file, offset, aborted_in, missing_after, partial(is_expired, now, segment))
