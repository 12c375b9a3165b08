"""The streaming reader of `kafka-log` and `kafka-live`: which offsets each micro-batch reads.

A query continues from the offsets of its checkpoint, picks up new partitions, and fails (or warns) on data loss. A
source adds an OffsetSource, which looks up partitions and offsets, and turns ranges of offsets into tasks and rows.
Planning imports neither numba nor pyarrow.
Source: Spark's KafkaMicroBatchStream.
"""

from __future__ import annotations

import logging
import math
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, NoReturn, Protocol, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kwire.errors import KwireError
from kwire.identifiers import TopicPartition
from kwire.spark.offsets import (
    LATEST,
    Bounds,
    GlobalOffset,
    NoMatch,
    OffsetLimit,
    OffsetRange,
    SpecificOffsets,
    resolve_ranges,
)
from kwire.spark.options.query import QueryOptions
from kwire.spark.streaming.micro_batch import has_enough_offsets, next_ranges, rate_limit
from kwire.spark.streaming.position import Json, Offsets, Position, TopicIds
from kwire.spark.worker import avoid_tcp_delays

if TYPE_CHECKING:
    pass

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1 has neither read limits nor Trigger.AvailableNow for Python sources
    ReadLimit = ReadAllAvailable = None  # type: ignore[assignment, misc]

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Replaces Spark's interface where it does not exist."""


__all__ = ["InvalidStreamReader", "OffsetSource", "OffsetStreamReader"]

logger = logging.getLogger("kwire.spark")


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


class OffsetStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow, Generic[S]):
    """Plans the micro-batches of one streaming query.

    Spark keeps one object per running query and calls it from one thread; workers get copies for read().
    """

    format_name: ClassVar[str]
    """The format, which checkpoints name."""

    def __init__(self, options: QueryOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns
        self._offset_source: S | None = None
        self._target: Position | None = None  # of Trigger.AvailableNow
        self._reported = Position({})
        self._is_first = self._is_first_planned = False  # the micro-batch that starts at initialOffset()
        self._last_due = -math.inf  # by time.monotonic()

    def __getstate__(self) -> dict[str, object]:
        return {"options": self.options, "columns": self.columns}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(**state)  # type: ignore[misc]
        avoid_tcp_delays()

    @abstractmethod
    def open_offset_source(self) -> S:
        """Create the offset source; called on the driver."""

    @abstractmethod
    def plan_tasks(self, ranges: Sequence[OffsetRange]) -> Sequence[InputPartition]:
        """Create the tasks that read ranges: equal tasks for equal ranges."""

    @property
    def offset_source(self) -> S:
        """The offset source, opened on first use."""
        if self._offset_source is None:
            self._offset_source = self.open_offset_source()
        return self._offset_source

    def initialOffset(self) -> Json:  # noqa: N802 (Spark's name)
        """Return where a query without a checkpoint starts.

        Spark does not store the result: it calls again when it plans the first micro-batch, and for every retry.
        """
        self._is_first, self._is_first_planned = True, False
        ranges = resolve_ranges(self.offset_source.bounds(), self.options)
        return self._position({(each.topic, each.partition): each.start for each in ranges}).render(self.format_name)

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

        start: end of the previous one. Spark 4.1 passes neither start nor limit.
        """
        if self._is_first_planned:
            self._is_first = self._is_first_planned = False
        if self._is_first and start is not None and _start_may_change(self.options.start, self.options.no_match):
            self._last_due = time.monotonic()
            return start  # an empty micro-batch stores the start, and later ones continue from it
        found = self._target if self._target is not None else self._latest()
        self._reported = found
        if start is None:
            return found.render(self.format_name)
        # deleted partitions are not in the end; next_ranges reports them as data loss
        begin = Position.parse(start, self.format_name)
        known_ids = {topic: known for topic, known in begin.topic_ids.items() if topic not in found.topic_ids}
        ids = found.topic_ids | known_ids
        begin = begin.without(begin.recreated(ids))
        latest = found.offsets
        if self._target is not None:  # may be older than the start
            latest = {key: max(offset, begin.offsets.get(key, offset)) for key, offset in latest.items()}
        new = [key for key in latest if key not in begin.offsets]
        known = {**(self.offset_source.earliest(new) if new else {}), **begin.offsets}
        known = {key: offset for key, offset in known.items() if key in latest}
        limits = self.options.limits
        if isinstance(limit, ReadAllAvailable) and self._target is None:
            return Position(latest, ids).render(self.format_name)
        waited_ms = (time.monotonic() - self._last_due) * 1000
        if self._target is None and not has_enough_offsets(limits, known, latest, waited_ms):
            return start
        self._last_due = time.monotonic()
        if limits.max_offsets is not None:
            latest = rate_limit(limits.max_offsets, known, latest)
        return Position(latest, ids).render(self.format_name)

    def reportLatestOffset(self) -> Json | None:  # noqa: N802
        """Return the latest offsets for the query's progress."""
        return self._reported.render(self.format_name) if self._reported.offsets else None

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Return the tasks of one micro-batch: equal tasks for equal offsets. Raises LogError for data loss."""
        begin, finish = Position.parse(start, self.format_name), Position.parse(end, self.format_name)
        if self._is_first:
            self._is_first_planned = True
            # An earlier run has planned this batch, and saw fewer partitions and smaller end offsets.
            known = begin.offsets.items()
            offsets = {key: min(offset, finish.offsets[key]) for key, offset in known if key in finish.offsets}
            begin = Position(offsets, begin.topic_ids)
        ranges = next_ranges(
            begin,
            finish,
            self.offset_source.earliest,
            self.offset_source.topic_ids,
            fail_on_data_loss=self.options.fail_on_data_loss,
        )
        return self.plan_tasks(ranges)

    def stop(self) -> None:
        """Close the offset source; the query has finish."""
        if self._offset_source is not None:
            self._offset_source.close()
            self._offset_source = None


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


def _start_may_change(start: OffsetLimit | None, no_match: NoMatch) -> bool:
    """Return whether records that arrive later change the offsets that a start resolves to."""
    match start:
        case None:
            return False
        case GlobalOffset(offset):
            return offset == LATEST
        case SpecificOffsets(offsets):
            return LATEST in offsets.values()
        case _:
            return no_match == "latest"
