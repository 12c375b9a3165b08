"""The streaming reader of `kafka-log` and `kafka-live`: which offsets each micro-batch reads.

A query continues from the offsets of its checkpoint, picks up new partitions, and fails (or warns) on data loss. A
source adds an OffsetSource, which looks up partitions and offsets, and turns ranges of offsets into tasks and rows.
Planning does not import pyarrow.
Source: Spark's KafkaMicroBatchStream.
"""

from __future__ import annotations

import logging
import math
import pickle
import struct
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Generic, NoReturn, Protocol, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kwire.errors import KwireError
from kwire.identifiers import TopicPartition
from kwire.spark.offsets import Bounds, OffsetRange, render_offsets, render_partitions, report_data_loss, resolve_ranges
from kwire.spark.options.query import QueryOptions
from kwire.spark.plain_errors import plain_errors
from kwire.spark.process.worker import avoid_tcp_delays
from kwire.spark.streaming.micro_batch import has_enough_offsets, next_ranges, rate_limit
from kwire.spark.streaming.position import Json, Offsets, Position, TopicIds

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1 has neither read limits nor Trigger.AvailableNow for Python sources
    ReadLimit = ReadAllAvailable = None  # type: ignore[assignment, misc]

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Replaces Spark's interface where it does not exist."""


if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TASK", "InvalidStreamReader", "OffsetSource", "OffsetStreamReader"]

logger = logging.getLogger("kwire.spark")

TASK = "task"
"""The column of a reader that returns tasks."""


class OffsetSource(Protocol):
    """Looks up the partitions of a query and their offsets. Methods raise LogError and BrokerError."""

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that the query reads."""

    def bounds(self) -> Mapping[TopicPartition, Bounds]:
        """Return the available offsets of the query's partitions."""

    def earliest(self, keys: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the first available offsets."""

    def latest(self, keys: Iterable[TopicPartition]) -> Offsets:
        """Return the last available offsets + 1."""

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Return the known ids of topics, as of the last call of partitions, bounds or earliest."""

    def close(self) -> None:
        """Release connections."""


S = TypeVar("S", bound=OffsetSource)


@plain_errors
class OffsetStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow, Generic[S]):
    """Plans the micro-batches of one streaming query.

    Spark keeps one object per running query and calls it from one thread; workers get copies for read().
    returns_tasks: read() returns the task itself, pickled, and not its rows.
    """

    format_name: ClassVar[str]
    """The format, which checkpoints name."""

    def __init__(self, options: QueryOptions, columns: tuple[str, ...], *, returns_tasks: bool = False) -> None:
        self.options, self.columns, self.returns_tasks = options, columns, returns_tasks
        self._offset_source: S | None = None
        self._target: Position | None = None  # of Trigger.AvailableNow
        self._reported = Position({})
        self._initial: Json | None = None  # what initialOffset() returned last, until the first micro-batch is complete
        self._last_end: Position | None = None  # Spark 4.1 passes no start to latestOffset
        self._absent: set[TopicPartition] = set()
        self._last_due = -math.inf  # by time.monotonic()

    def __getstate__(self) -> dict[str, object]:
        return {"options": self.options, "columns": self.columns, "returns_tasks": self.returns_tasks}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(**state)  # type: ignore[misc]
        avoid_tcp_delays()

    @abstractmethod
    def open_offset_source(self) -> S:
        """Create the offset source; called on the driver."""

    @abstractmethod
    def plan_tasks(self, ranges: Sequence[OffsetRange]) -> Sequence[InputPartition]:
        """Create the tasks that read ranges: equal tasks for equal ranges."""

    @abstractmethod
    def rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task; called in a worker."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of one task, or the task; called in a worker. Raises the errors of rows."""
        return iter([_row_of(partition)]) if self.returns_tasks else self.rows(partition)

    @property
    def offset_source(self) -> S:
        """The offset source, opened on first use."""
        if self._offset_source is None:
            self._offset_source = self.open_offset_source()
        return self._offset_source

    def initialOffset(self) -> Json:  # noqa: N802 (Spark's name)
        """Return where a query without a checkpoint starts.

        Spark does not store the result: it calls again when it plans the first micro-batch, and for every retry. The
        end of that micro-batch therefore has the start as well.
        """
        offsets = self._resolve_start()
        if self._initial is None:
            logger.info("a query without a checkpoint starts at %s", render_offsets(offsets))
        self._initial = self._position(offsets).render(self.format_name)
        return self._initial

    def _resolve_start(self) -> Offsets:
        ranges = resolve_ranges(self.offset_source.bounds(), self.options)
        return {(each.topic, each.partition): each.start for each in ranges}

    def _position(self, offsets: Offsets) -> Position:
        return Position(offsets, self.offset_source.topic_ids({topic for topic, _ in offsets}))

    def _latest(self) -> Position:
        return self._position(self.offset_source.latest(self.offset_source.partitions()))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return maxOffsetsPerTrigger or minOffsetsPerTrigger as Spark's read limit."""
        from pyspark.sql.streaming.datasource import ReadMaxRows, ReadMinRows

        limits = self.options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        return ReadAllAvailable() if limits.min_offsets is None else ReadMinRows(limits.min_offsets)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take the latest offsets as the end of this run."""
        self._target = self._latest()

    def latestOffset(self, start: Json | None = None, limit: ReadLimit | None = None) -> Json:  # noqa: N802
        """Return the end of the next micro-batch.

        start: end of the previous one. Spark 4.1 passes neither start nor limit. Raises LogError for deleted
        partitions, before Spark stores the micro-batch: the query continues when they are available again.
        """
        if start is None:
            return self._latest_without_start().render(self.format_name)
        begin = Position.parse(start, self.format_name)
        end = self._end_after(begin, limit)
        if start == self._initial:
            return replace(end, first_start=begin.offsets).render(self.format_name)
        self._initial = None
        is_same = (end.offsets, end.topic_ids) == (begin.offsets, begin.topic_ids)
        return start if is_same else end.render(self.format_name)

    def _end_after(self, start: Position, limit: ReadLimit | None) -> Position:
        end = self._target if self._target is not None else self._latest()
        self._reported = end
        known_ids = {topic: known for topic, known in start.topic_ids.items() if topic not in end.topic_ids}
        ids = end.topic_ids | known_ids
        begin = start.without(start.recreated(ids))
        latest = end.offsets | self._absent_offsets(begin, end)
        if self._target is not None:  # may be older than the start
            latest = {key: max(offset, begin.offsets.get(key, offset)) for key, offset in latest.items()}
        new = [key for key in latest if key not in begin.offsets]
        known = {**(self.offset_source.earliest(new) if new else {}), **begin.offsets}
        known = {key: offset for key, offset in known.items() if key in latest}
        limits = self.options.limits
        if isinstance(limit, ReadAllAvailable) and self._target is None:
            return Position(latest, ids)
        waited_ms = (time.monotonic() - self._last_due) * 1000
        if self._target is None and not has_enough_offsets(limits, known, latest, waited_ms):
            return start
        self._last_due = time.monotonic()
        if limits.max_offsets is not None:
            latest = rate_limit(limits.max_offsets, known, latest)
        return Position(latest, ids)

    def _latest_without_start(self) -> Position:
        """Return the end of the next micro-batch in Spark 4.1, which asks for the initial offset after the first one.

        It passes no start, so the first end of each run has the start of a new query: only micro-batch 0 uses it.
        """
        self._initial = None
        last, first_start = self._last_end, None
        if last is None:
            with suppress(KwireError):  # a query with a checkpoint may have start options that are no longer valid
                first_start = self._resolve_start()
        latest = self._reported = self._latest()
        begin = last or Position({})
        begin = begin.without(begin.recreated(latest.topic_ids))
        end = Position(latest.offsets | self._absent_offsets(begin, latest), begin.topic_ids | latest.topic_ids)
        if last is not None and (end.offsets, end.topic_ids) == (last.offsets, last.topic_ids):
            return last
        self._last_end = replace(end, first_start=first_start)
        return self._last_end

    def _absent_offsets(self, begin: Position, latest: Position) -> Offsets:
        """Return the offsets of partitions that are no longer found, to continue there when they are visible again.

        Partitions of a topic can be invisible for a moment, to an account that loses the right Describe for example. A
        topic without an id is not kept, because it could be another one when it comes back; but an empty list of
        partitions replaces nothing, as in Spark's source (SPARK-41375). Raises LogError with failOnDataLoss true.
        """
        absent = {key: offset for key, offset in begin.offsets.items() if key not in latest.offsets}
        if absent and self.options.fail_on_data_loss:
            (topic, partition), offset = min(absent.items())
            report_data_loss(
                f"{render_partitions(absent)} not found, deleted or not visible to this query, which has read "
                f"{topic}-{partition} up to offset {offset}",
                "continue with the other partitions",
                fail=True,
            )
        kept = {key: offset for key, offset in absent.items() if key[0] in begin.topic_ids or not latest.offsets}
        if kept.keys() - self._absent:
            logger.warning(
                "%s not found, deleted or not visible to this query; failOnDataLoss is false: the query will keep "
                "the offsets, and continue there if they are found again",
                render_partitions(kept),
            )
        self._absent = set(kept)
        return kept

    def reportLatestOffset(self) -> Json | None:  # noqa: N802
        """Return the latest offsets for the query's progress."""
        return self._reported.render(self.format_name) if self._reported.offsets else None

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Return the tasks of one micro-batch: equal tasks for equal offsets. Raises LogError for data loss."""
        begin, finish = Position.parse(start, self.format_name), Position.parse(end, self.format_name)
        if start == self._initial:
            begin = _start_of_first(begin, finish)
        self._last_end = finish
        ranges = next_ranges(
            begin,
            finish,
            self.offset_source.earliest,
            self.offset_source.topic_ids,
            fail_on_data_loss=self.options.fail_on_data_loss,
        )
        return self.plan_tasks(ranges)

    def stop(self) -> None:
        """Close the offset source; the query has finished."""
        if self._offset_source is not None:
            self._offset_source.close()
            self._offset_source = None


@plain_errors
class InvalidStreamReader(DataSourceStreamReader):
    """The reader of a query whose options are invalid: raises the error at its first call.

    If streamReader() itself raises, Spark's runner fails with an UnboundLocalError and reports that instead.
    Source: pyspark.sql.streaming.python_streaming_source_runner.main.
    """

    def __init__(self, error: KwireError) -> None:
        self.error = error

    def _fail(self, *args: object, **kwargs: object) -> NoReturn:
        raise self.error

    initialOffset = latestOffset = partitions = read = _fail  # noqa: N815 (Spark's names)


def _row_of(task: InputPartition) -> pa.RecordBatch:
    import pyarrow as pa

    data = pickle.dumps(task)
    offsets = pa.py_buffer(struct.pack("=ii", 0, len(data)))
    # pa.array() imports pandas where it is installed, which takes more than half a second of CPU
    array = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(data)])
    return pa.RecordBatch.from_arrays([array], names=[TASK])


def _start_of_first(begin: Position, end: Position) -> Position:
    """Return the start of the first micro-batch: of the run that planned it, which may have had other start options.

    begin: what the options resolve to now.
    """
    if end.first_start is not None:
        return Position(end.first_start)
    # The checkpoint is one of Spark's Kafka source, which keeps the start in a file that Python sources cannot read.
    return Position(
        {key: min(offset, end.offsets[key]) for key, offset in begin.offsets.items() if key in end.offsets},
        begin.topic_ids,
    )
