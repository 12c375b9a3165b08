"""A topic as an Arrow dataset: what DuckDB, Polars, DataFusion and Ibis query, with filters and columns pushed down.

    TopicDataset    a topic, from the offsets that it had when the dataset was made
      TopicScanner    one query of it: columns, and a filter, which decides the ranges of offsets to read
      TopicFragment   a partition as a part of the dataset, for engines that read parts

Arrow's classes are subclassed because engines ask `isinstance`. No method of theirs may run: their C++ objects are
missing. Every public one is overridden here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kwire.errors import CorruptBatch, LogError, OptionError, UnsupportedVersion, did_you_mean
from kwire.log.files.time_lookup import MAX_TIMESTAMP, TimestampAndOffset
from kwire.log.reading.arrow import read_warning
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.reading.readable_log import ReadableLog
from kwire.log.reading.relisting import retry_on_change
from kwire.log.reading.runs import Isolation
from kwire.log.reading.segment_runs import check_end
from kwire.records.columns.reader import arrow_schema
from kwire.sql.matching import Matching, named_columns
from kwire.sql.parallel import run_parallel
from kwire.sql.values import ValueColumns
from kwire.storage.store import PARALLEL

T = TypeVar("T")
R = TypeVar("R")

__all__ = ["TopicDataset", "TopicFragment", "TopicScanner"]

# `count(*)` reads the first column, which costs nothing.
COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers", "topic", "timestampType")
# Some ten batches are in memory at a time, stored and decoded ones. Larger ones are not faster: these stay in
# the processor's cache.
BATCH_BYTES = 2 << 20
SMALLEST_PIECE = 100_000  # offsets; opening a partition twice costs more than reading this few


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """The records of a partition that a dataset has: offsets [start_offset, end_offset) of a log."""

    log: ReadableLog
    start_offset: int
    end_offset: int


class TopicDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """All partitions of a topic, or some of them, as a pyarrow.dataset.Dataset.

    The offsets are fixed when the dataset is made, so all queries of it see the same records; `reopened()` sees newer
    ones. Control records are never rows. Reading joins no group and commits nothing.

    topic: its name. ranges: the partitions with their offsets. schema: partition, offset, timestamp, key, value,
    headers, topic and timestampType, with the types of Spark's Kafka source, then what values were decoded to.
    rows_read: records of all scans so far, before filters; rows_planned: the offsets that they read, as far as it is
    known. error: what ended the last scan that failed; engines report only its
    text.
    """

    error: Exception | None

    def __init__(
        self,
        topic: str,
        logs: Iterable[ReadableLog],
        *,
        isolation: Isolation = "read_committed",
        values: ValueColumns | None = None,
        threads: int | None = None,
    ) -> None:
        """logs: the topic's partitions. isolation: read_committed leaves out records of aborted and open transactions.

        values: how keys and values are decoded; None leaves their bytes. threads: that read at once, one for each core
        by default. Raises LogError, BrokerError, OptionError.
        """
        self.topic = topic
        self._logs, self._isolation, self._values = list(logs), isolation, values or ValueColumns()
        self._asking = threading.Lock()  # logs of a cluster share a connection for all but reading
        self._threads = len(os.sched_getaffinity(0)) if threads is None else threads
        if self._threads < 1:
            raise OptionError(f"threads {threads} is out of range: at least 1")
        first = self._logs[0] if self._logs else None
        self._store = first.store if isinstance(first, PartitionLog) else None
        bounds = self._of_each(partial(retry_on_change, action=lambda log: log.bounds(0, None, isolation)), self._logs)
        self.ranges = [PartitionRange(log, *each) for log, each in zip(self._logs, bounds, strict=True)]
        self._schema = self._values.schema_of(arrow_schema(COLUMNS))
        self.rows_read, self.rows_planned, self.error, self._is_stopped = 0, 0, None, False

    def _of_each(self, ask: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
        """Return a function's result for each partition, for several at a time where they are in an object store."""
        if self._store is not None:
            return self._store.map(ask, items)
        with self._asking:
            return [ask(each) for each in items]

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def reopened(self) -> TopicDataset:
        """Return the dataset with the offsets of now."""
        return TopicDataset(
            self.topic,
            [log.reopened() for log in self._logs],
            isolation=self._isolation,
            values=self._values,
            threads=self._threads,
        )

    # ---- what engines call

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> TopicScanner:
        """Return a scan of these columns, all by default, of the rows for which `filter` is true.

        options: of Arrow's own scanners, which are about files; they change nothing here.
        Raises OptionError for an unknown column.
        """
        return TopicScanner(self, self.ranges, columns, filter)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[TopicFragment]:
        """Yield the partitions that may have rows for which `filter` is true."""
        kept = set(self.matching(filter).partitions([each.log.partition for each in self.ranges]))
        yield from (TopicFragment(self, each) for each in self.ranges if each.log.partition in kept)

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        """Yield the batches of `scanner`."""
        return self.scanner(**options).to_batches()

    def to_table(self, **options: Any) -> pa.Table:
        """Return the rows of `scanner` as a table."""
        return self.scanner(**options).to_table()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """Return the first rows of `scanner`."""
        return self.scanner(**options).head(num_rows)

    def count_rows(self, **options: Any) -> int:
        """Count the rows of `scanner`."""
        return self.scanner(**options).count_rows()

    def take(self, indices: Any, **options: Any) -> pa.Table:
        """Return rows by their numbers. Reads everything."""
        return self.to_table(**options).take(indices)

    def filter(self, expression: pc.Expression) -> ds.Dataset:
        """Return the rows for which a filter is true, read now, as a dataset in memory."""
        return ds.dataset(self.to_table(filter=expression))

    def sort_by(self, sorting: Any, **options: Any) -> ds.Dataset:
        """Return the rows, read now, in another order, as a dataset in memory."""
        return ds.dataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: ds.Dataset, keys: Any, **options: Any) -> ds.Dataset:
        """Return a join of the rows, read now, as a dataset in memory."""
        return ds.dataset(self.to_table().join(right_dataset.to_table(), keys, **options))

    def join_asof(self, right_dataset: ds.Dataset, on: str, by: Any, **options: Any) -> ds.Dataset:
        """Return an as-of join of the rows, read now, as a dataset in memory."""
        return ds.dataset(self.to_table().join_asof(right_dataset.to_table(), on, by, **options))

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Raise OptionError: a topic's columns have the types of its records."""
        raise OptionError("the schema of a topic cannot be replaced; cast columns in the query")

    @property
    def partition_expression(self) -> pc.Expression:
        """True: the dataset is not a part of another one."""
        return pc.scalar(True)

    def __reduce__(self) -> NoReturn:
        raise OptionError("a topic's dataset cannot be pickled: it has connections and open files")

    def __repr__(self) -> str:
        return f"TopicDataset({self.topic!r}, {len(self.ranges)} partitions)"

    # ---- reading

    def matching(self, filter: pc.Expression | None) -> Matching:
        """Return what a filter can match here."""
        if isinstance(filter, pa.Scalar):
            filter = pc.scalar(filter)
        return Matching(filter, self._schema, self.topic)

    def read(
        self, ranges: Sequence[PartitionRange], columns: Sequence[str], filter: pc.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of partitions for which `filter` is true, with these columns; several threads read."""
        needed = dict.fromkeys([*columns, *named_columns(filter, self._schema)])
        wanted = [name for name in self._schema.names if name in needed] or ["partition"]
        matching = self.matching(filter)
        earliest = None if filter is None else matching.earliest_time()
        kept = set(matching.partitions([each.log.partition for each in ranges]))
        left = [each for each in ranges if each.log.partition in kept and each.start_offset < each.end_offset]
        cuts = -(-self._threads // max(len(left), 1))
        self.rows_planned += sum(each.end_offset - each.start_offset for each in left)

        def pieces() -> Iterator[Iterator[pa.RecordBatch]]:
            for each, start in self._with_starts(left, earliest):
                found = matching.offset_ranges(each.log.partition, start, each.end_offset)
                self.rows_planned -= each.end_offset - each.start_offset - sum(end - begin for begin, end in found)
                for begin, end in found:
                    for piece in _pieces(begin, end, cuts):
                        yield self._read_piece(each.log, piece, wanted, list(columns), filter)

        return self._noting_errors(run_parallel(pieces(), self._threads))

    def stop(self) -> None:
        """End the scans of this dataset with an error, from another thread."""
        self._is_stopped = True

    def _noting_errors(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                if self._is_stopped:
                    raise LogError("the scan was stopped", self.topic)
                yield batch
        except CorruptBatch as error:
            self.error = _with_condition(error)
            raise self.error from None
        except Exception as error:
            self.error = error
            raise

    def _read_piece(
        self,
        log: ReadableLog,
        offsets: tuple[int, int],
        wanted: Sequence[str],
        columns: list[str],
        filter: pc.Expression | None,
    ) -> Iterator[pa.RecordBatch]:
        with self._asking:
            stored = self._values.stored_columns(wanted)
            pinned = log.pin(*offsets, self._isolation)
            check_end(pinned.end_offset, offsets[1], log.url)
            batches = read_warning(pinned, stored, skip_missing=False, max_bytes=BATCH_BYTES)
        for batch in self._values.decode(batches, wanted):
            self.rows_read += batch.num_rows
            rows = batch if filter is None else _filtered(batch, filter)
            if rows.num_rows:
                yield rows if rows.schema.names == columns else rows.select(columns)

    def _with_starts(
        self, ranges: Sequence[PartitionRange], earliest: int | None
    ) -> Iterator[tuple[PartitionRange, int]]:
        """Yield ranges with the first offset that may have a timestamp at or after `earliest` (ms)."""
        if earliest is None or earliest < 0:
            yield from ((each, each.start_offset) for each in ranges)
            return
        for i in range(0, len(ranges), PARALLEL):
            some = ranges[i : i + PARALLEL]
            yield from zip(some, self._of_each(partial(self._first_offset, earliest), some), strict=True)

    def _first_offset(self, earliest: int, each: PartitionRange) -> int:
        """Return the first offset that may have a timestamp at or after `earliest` (ms), as far as it is known.

        A segment without timestamps ends Kafka's search without a result. The largest timestamp tells whether there is
        none to find.
        """
        try:
            first, newest = retry_on_change(each.log, partial(self._times, earliest))
        except UnsupportedVersion:
            return each.start_offset
        if first is not None:
            return max(each.start_offset, first.offset)
        is_older = newest is not None and 0 <= newest.timestamp < earliest
        return each.end_offset if is_older else each.start_offset

    def _times(self, earliest: int, log: ReadableLog) -> tuple[TimestampAndOffset | None, TimestampAndOffset | None]:
        """Return the first record at or after `earliest` (ms), and without one, the newest record."""
        first = log.offset_for_time(earliest, isolation=self._isolation)
        return first, None if first is not None else log.offset_for_time(MAX_TIMESTAMP)


def _with_condition(error: CorruptBatch) -> CorruptBatch:
    """Return the error with a condition that leaves its batch out, if the batch's offsets are known."""
    if error.offsets is None:
        return error
    first, last = error.offsets
    what = f'{error.what}; the condition "offset" < {first} OR "offset" > {last} leaves it out'
    return CorruptBatch(what, error.position, error.path, error.file, error.offsets)


class TopicFragment:
    """A partition of a dataset, with the methods of pyarrow.dataset.Fragment that engines call."""

    def __init__(self, dataset: TopicDataset, part: PartitionRange) -> None:
        self._dataset, self._part = dataset, part

    @property
    def physical_schema(self) -> pa.Schema:
        """The columns."""
        return self._dataset.schema

    @property
    def partition_expression(self) -> pc.Expression:
        """What is true for all its rows."""
        return pc.field("partition") == pa.scalar(self._part.log.partition, pa.int32())

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **options: Any,
    ) -> TopicScanner:
        """Return a scan of the partition: see TopicDataset.scanner."""
        return TopicScanner(self._dataset, [self._part], columns, filter)

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        """Yield the batches of `scanner`."""
        return self.scanner(**options).to_batches()

    def to_table(self, **options: Any) -> pa.Table:
        """Return the rows of `scanner` as a table."""
        return self.scanner(**options).to_table()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """Return the first rows of `scanner`."""
        return self.scanner(**options).head(num_rows)

    def count_rows(self, **options: Any) -> int:
        """Count the rows of `scanner`."""
        return self.scanner(**options).count_rows()


class TopicScanner(ds.Scanner):  # type: ignore[misc]  # pyarrow has no types
    """A query of a dataset: rows are read as they are asked for, and no further than that."""

    def __init__(
        self,
        dataset: TopicDataset,
        ranges: Sequence[PartitionRange],
        columns: Sequence[str] | Mapping[str, pc.Expression] | None,
        filter: pc.Expression | None,
    ) -> None:
        """Raise OptionError for columns that the dataset does not have."""
        if isinstance(filter, pa.Scalar):  # DataFusion reduces WHERE TRUE to one, which Arrow's own scanners refuse
            filter = pc.scalar(filter)
        self._dataset, self._ranges, self._filter = dataset, ranges, filter
        names = dataset.schema.names
        if isinstance(columns, Mapping):
            raise OptionError("columns: expected names; expressions are for the query that reads the dataset")
        self._columns = names if columns is None else list(columns)
        for name in self._columns:
            if name not in names:
                available = did_you_mean(str(name), names) or f"; available: {', '.join(names)}"
                raise OptionError(f"columns: unknown column {name!r}{available}")

    @property
    def dataset_schema(self) -> pa.Schema:
        """The columns of the dataset."""
        return self._dataset.schema

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.schema([self._dataset.schema.field(name) for name in self._columns])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Raises CorruptBatch, LogError, BrokerError, DecodeError."""
        return self._dataset.read(self._ranges, self._columns, self._filter)

    def scan_batches(self) -> Iterator[ds.TaggedRecordBatch]:
        """Raise LogError: no engine that was tried asks for batches with their fragments."""
        raise LogError("batches with their fragments are not supported; use to_batches", self._dataset.topic)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a reader, which asks for a batch when it needs one."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Return all rows as a table."""
        return pa.Table.from_batches(list(self.to_batches()), self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        taken: list[pa.RecordBatch] = []
        left = num_rows
        batches = self.to_batches()
        while left > 0 and (batch := next(batches, None)) is not None:
            taken.append(batch.slice(0, left))
            left -= taken[-1].num_rows
        return pa.Table.from_batches(taken, self.projected_schema)

    def count_rows(self) -> int:
        """Count the rows, without their columns."""
        return sum(batch.num_rows for batch in self._dataset.read(self._ranges, ["partition"], self._filter))

    def take(self, indices: Any) -> pa.Table:
        """Return rows by their numbers. Reads everything."""
        return self.to_table().take(indices)

    def __reduce__(self) -> NoReturn:
        raise OptionError("a scan of a topic cannot be pickled: it has connections and open files")


def _filtered(batch: pa.RecordBatch, filter: pc.Expression) -> pa.RecordBatch:
    """Return the rows for which a filter is true. Raises OptionError for one that Arrow cannot evaluate."""
    try:
        return batch.filter(filter.cast(pa.bool_()))  # NULL alone has the type null
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise OptionError(f"filter {str(filter)[:200]}: Arrow cannot evaluate it: {error}") from None


def _pieces(start: int, end: int, count: int) -> list[tuple[int, int]]:
    """Cut a range of offsets into at most `count` pieces, for as many threads."""
    count = max(1, min(count, (end - start) // SMALLEST_PIECE))
    step = -(-(end - start) // count)
    return [(each, min(each + step, end)) for each in range(start, end, step)]
