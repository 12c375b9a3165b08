"""Interface of a log to its readers, whether its batches are in files or come from a broker.

    LogSource      a mapping from (topic, partition) to logs
      ReadableLog    offsets, sizes, times; read(), read_arrow(), batches()
        pin()          a range of offsets, fixed when a read begins, as runs
          Run            stored batches in offset order: a segment file, or the batches of one Fetch response

`pin` is the primitive: all reading goes through it, so that files and clusters share it. `verify()` is there for users;
packages above import `kwire.maintenance.verify`.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from kwire.errors import CorruptBatch, LogError, did_you_mean
from kwire.extras import needing
from kwire.identifiers import TopicPartition
from kwire.log.files.file_names import Ignored
from kwire.log.files.offset_checks import check_offsets
from kwire.log.files.segment import Segment
from kwire.log.files.segment_batches import open_batches
from kwire.log.reading.runs import AbortedBatches, Isolation, PinnedRange, Run, check_bounds
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES, Batch, Record
from kwire.records.columns.reader import DEFAULT_MAX_BYTES
from kwire.storage.checkpoints import LeaderEpoch

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

    from kwire.log.files.damage import Damage
    from kwire.log.files.time_lookup import TimestampAndOffset

__all__ = ["LogSource", "ReadableLog"]

FIRST_SEARCH = 1000  # offsets in which aborted transactions are looked for at first


class ReadableLog(ABC):
    """The log of one partition. topic, partition: its identity."""

    topic: str
    partition: int

    @property
    @abstractmethod
    def url(self) -> str:
        """The path or URL of the partition, for messages."""

    @property
    @abstractmethod
    def source_url(self) -> str:
        """The path or URL of the logs that it is one of."""

    @abstractmethod
    def reopened(self) -> Self:
        """Return the same partition as it is now."""

    # ---- what is known without reading batches

    @property
    @abstractmethod
    def topic_id(self) -> uuid.UUID | None:
        """Topic id; None before Kafka 2.8. Raises LogError if it cannot be read."""

    @property
    @abstractmethod
    def leader_epochs(self) -> list[LeaderEpoch]:
        """Leader epochs of the log, oldest first; empty if they are unknown."""

    @property
    @abstractmethod
    def log_start_offset(self) -> int:
        """First available offset."""

    @property
    @abstractmethod
    def log_end_offset(self) -> int:
        """Offset of the next record, as far as it can be read."""

    @property
    @abstractmethod
    def high_watermark(self) -> int | None:
        """Offset below which all in-sync replicas have the records; None if it is unknown."""

    @property
    @abstractmethod
    def last_stable_offset(self) -> int:
        """Start of the oldest open transaction, or the log end offset."""

    @property
    def is_one_segment(self) -> bool:
        """Whether this is one segment of a log, named by its file: other offsets are elsewhere, and not deleted."""
        return False

    @property
    @abstractmethod
    def segment_count(self) -> int | None:
        """Number of segments; None if it is unknown."""

    @property
    @abstractmethod
    def size_bytes(self) -> int | None:
        """Size of the stored batches; None if it is unknown."""

    @property
    @abstractmethod
    def last_timestamp(self) -> int | None:
        """Largest timestamp in ms of the newest segment that has one; None without a timestamp, or if it is unknown."""

    @property
    @abstractmethod
    def damage(self) -> CorruptBatch | None:
        """Damage at the end of the log; None if it ends normally."""

    @abstractmethod
    def fingerprint(self) -> list[list[int]]:
        """Return values that change when the log does."""

    @abstractmethod
    def has_changed(self, again: Self) -> bool:
        """Return whether `again`, reopened later, shows that segments were rolled, deleted or replaced meanwhile."""

    @property
    @abstractmethod
    def is_deleted(self) -> bool:
        """Whether the partition has been deleted."""

    # ---- reading

    @abstractmethod
    def pin(
        self, start_offset: int = 0, end_offset: int | None = None, isolation: Isolation = "read_uncommitted"
    ) -> PinnedRange:
        """Fix a range of offsets for a read, cut to `bounds`, and open it as runs.

        Records deleted by retention before they are read are skipped, as consumers skip them.
        Raises OptionError for a wrong argument, LogError; the runs raise LogError and CorruptBatch.
        """

    def bounds(self, start_offset: int, end_offset: int | None, isolation: str) -> tuple[int, int]:
        """Return the range [start, end) of a read: within the log, and below the last stable offset for read_committed.

        Raises OptionError for an unknown isolation or a negative start.
        """
        check_bounds(start_offset, isolation, end_offset)
        end = self.last_stable_offset if isolation == "read_committed" else self.log_end_offset
        return max(start_offset, self.log_start_offset), end if end_offset is None else min(end, end_offset)

    @abstractmethod
    def offset_for_time(
        self, timestamp: int, *, isolation: Isolation = "read_uncommitted"
    ) -> TimestampAndOffset | None:
        """Find the earliest record at or after `timestamp` (ms), like Kafka's ListOffsets; None if there is none.

        Raises OptionError for what is no timestamp.
        """

    def verify(self) -> list[Damage]:
        """Find all damage of batches, indexes, snapshots and checkpoints, by file and position.

        Includes notes (`is_harmless`). Damaged bytes do not raise. Of a cluster, only the leader's batches can be seen.
        """
        from kwire.maintenance.verify import verify_logs

        return verify_logs(self).damages

    @abstractmethod
    def batches(self, start_offset: int = 0) -> Iterator[tuple[Segment, Batch]]:
        """Iterate over the batches from the one that contains start_offset on, with their segments.

        Control batches are included. Batches are neither verified nor decoded: see `batch.check()`, `batch.records()`.
        Raises OptionError for a negative start.
        """

    def read(
        self,
        start_offset: int = 0,
        end_offset: int | None = None,
        isolation: Isolation = "read_uncommitted",
        *,
        check_crc: bool = True,
        skip_missing: bool = False,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> Iterator[Record]:
        """Read the records of [start_offset, end_offset) in order, like a consumer: without control records.

        end_offset: exclusive; None reads to the log end offset, or to the last stable offset for read_committed.
        Records below log_start_offset are not returned.
        skip_missing: go on after offsets whose segment is missing, with a warning in the log `kwire.log`; with
            read_committed, transactions that may end there are left out.
        Raises CorruptBatch at a damaged batch, after the records before it (D-07); MissingOffsets where a segment is
        missing; LogError for missing or unreadable files; OptionError for a wrong argument.
        """
        pinned = self.pin(start_offset, end_offset, isolation)
        return chain.from_iterable(_record_lists(pinned, check_crc, skip_missing, max_decompressed_bytes))

    def read_arrow(
        self,
        start_offset: int = 0,
        end_offset: int | None = None,
        isolation: Isolation = "read_uncommitted",
        columns: Sequence[str] | None = None,
        *,
        check_crc: bool = True,
        skip_missing: bool = False,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        max_bytes: int = DEFAULT_MAX_BYTES,
        threads: int = 1,
    ) -> pa.RecordBatchReader:
        """Read the same records as Arrow batches with the columns of Spark's Kafka source.

        columns: names of kwire.records.columns.reader.COLUMNS, in this order; default: all but headers.
        max_bytes: of an Arrow batch, and of what is read of a file at once; more only where a single record
            or stored batch is larger.
        threads: decompress and decode in parallel; see ColumnReader for the memory.
        The returned reader raises the exceptions of read().
        """
        with needing("records as Arrow columns"):
            from kwire.log.reading.arrow import read_warning, record_columns

        wanted = record_columns(columns)
        return read_warning(
            self.pin(start_offset, end_offset, isolation),
            wanted,
            check_crc=check_crc,
            skip_missing=skip_missing,
            max_decompressed_bytes=max_decompressed_bytes,
            max_bytes=max_bytes,
            threads=threads,
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export all records as an Arrow stream, so that DuckDB, Polars and others read the log in place."""
        return self.read_arrow().__arrow_c_stream__(requested_schema)


def _record_lists(pinned: PinnedRange, check_crc: bool, skip_missing: bool, limit: int) -> Iterator[list[Record]]:
    for run in pinned.runs:
        try:
            yield from _records_of(run, pinned, check_crc, skip_missing, limit)
        except LogError:
            if not run.is_expired():
                raise


def _records_of(
    run: Run, pinned: PinnedRange, check_crc: bool, skip_missing: bool, limit: int
) -> Iterator[list[Record]]:
    start, end = pinned.start_offset, pinned.end_offset
    skip = AbortedBatches(())
    searched, ahead = start, FIRST_SEARCH
    reached = None
    batches = open_batches(run.segment, run.file, run.start_offset, max_decompressed_bytes=limit)
    for batch in check_offsets(run.segment, batches):
        reached = batch.next_offset
        if batch.last_offset < start:
            continue
        if batch.magic == 2 and batch.base_offset >= end:
            return
        if check_crc:
            batch.check()
        if run.aborted_in is not None and batch.is_transactional and not batch.is_control:
            if batch.next_offset > searched:  # in growing steps, since each looks at all aborted transactions in it
                searched, ahead = max(batch.next_offset, batch.base_offset + ahead), 2 * ahead
                found = run.aborted_in(batch.base_offset, min(searched, end), skip_missing=skip_missing)
                skip = AbortedBatches(found)
            if skip.has(batch):
                continue
        records = batch.record_lists(check_crc=check_crc, start_offset=start, end_offset=end)
        if batch.is_control:
            deque(records, 0)  # not returned, but malformed ones raise, as in read_arrow and in Kafka's consumer
        else:
            yield from records
    run.check_end(reached, end, skip_missing=skip_missing)


L = TypeVar("L", bound=ReadableLog)


class LogSource(Mapping[TopicPartition, L], Generic[L]):
    """Logs by (topic, partition), sorted.

    url: where they are. ignored: what is not read although it is there, with reasons.
    """

    url: str
    partitions: dict[TopicPartition, L]
    ignored: list[Ignored]

    def __getitem__(self, key: TopicPartition) -> L:
        """Return the log of (topic, partition). Raises LogError, naming those that exist, for a missing one."""
        try:
            return self.partitions[key]
        except (KeyError, TypeError):
            given: object = key  # logs["orders"] is easily written
            if not isinstance(given, tuple) or len(given) != 2:
                expected = f"expected a topic and a partition, such as logs['orders', 0], got {given!r}"
                raise LogError(expected, self.url) from None
            topic, partition = key
            there = [p for t, p in self.partitions if t == topic]
            what = f"available partitions: {there}" if there else f"available topics: {', '.join(self.topics)[:500]}"
            raise LogError(f"no partition {partition!r} of topic {topic!r}; {what}", self.url) from None

    def __contains__(self, key: object) -> bool:
        return key in self.partitions

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, {len(self)} partitions)"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export all records, partition by partition, as an Arrow stream for DuckDB, Polars and others."""
        with needing("records as Arrow columns"):
            import pyarrow as pa

            from kwire.log.reading.arrow import default_columns, schema_of

        batches = chain.from_iterable(log.read_arrow() for log in self.values())
        reader = pa.RecordBatchReader.from_batches(schema_of(default_columns(None)), batches)
        return reader.__arrow_c_stream__(requested_schema)

    @property
    def topics(self) -> list[str]:
        """Names of the topics, sorted, internal topics included."""
        return list(self._by_topic)

    @cached_property
    def _by_topic(self) -> dict[str, list[L]]:
        """The partitions of each topic, which do not change after construction."""
        by_topic: dict[str, list[L]] = {topic: [] for topic in sorted({topic for topic, _ in self.partitions})}
        for (topic, _), log in self.partitions.items():
            by_topic[topic].append(log)
        return by_topic

    @abstractmethod
    def reopened(self) -> Self:
        """Return the same logs as they are now."""

    def topic(self, name: str, **options: Any) -> ds.Dataset:
        """Return all partitions of a topic as one Arrow dataset, which DuckDB, Polars and others query.

        options: of kwire.sql.TopicDataset. Its offsets are those of now. Needs the extra `sql` or `arrow`.
        Raises LogError, naming similar topics, for a missing one.
        """
        with needing("topics as tables"):
            from kwire.sql.dataset import TopicDataset

        return TopicDataset(name, [log.reopened() for log in self.of_topic(name)], **options)

    def of_topic(self, name: str) -> list[L]:
        """Return the partitions of a topic. Raises LogError, naming similar topics, for a missing one."""
        if name not in self._by_topic:
            raise LogError(f"no topic {name!r}{did_you_mean(name, self.topics)}", self.url)
        return list(self._by_topic[name])

    def verify(self) -> list[Damage]:
        """Find all damage, worst first, including notes (`is_harmless`)."""
        from kwire.maintenance.verify import verify_logs

        return verify_logs(self).damages

    def close(self) -> None:
        """Release what is open, such as connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
