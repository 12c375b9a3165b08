"""The streaming reader that all sources here share: which offsets a micro-batch takes, whatever it reads them from.

A query goes on from the offsets of its checkpoint, takes in partitions that are new, and fails (or warns) where data is
gone that it has not read. What a source has of its own: where partitions and their bounds are looked up (`Places`), and
how ranges of offsets become tasks and rows. Planning imports neither numba nor pyarrow.
Source: Spark's KafkaMicroBatchStream.
"""

from __future__ import annotations

import logging
import math
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kwire.errors import KwireError
from kwire.spark.options.offsets import LATEST, AtOffsets, Everywhere, Limit, NoMatch, OffsetRange
from kwire.spark.options.topics import TopicPartition
from kwire.spark.streaming.micro_batch import Limits, has_enough, next_ranges, rate_limit
from kwire.spark.streaming.position import Offsets, Position, TopicIds

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1: no read limits, no Trigger.AvailableNow for Python sources
    ReadLimit = ReadAllAvailable = None  # type: ignore[assignment, misc]

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in where Spark has no such interface."""


__all__ = ["LogStream", "Places", "RefusedStream", "StreamOptions"]

logger = logging.getLogger("kwire.spark")


class Places(Protocol):
    """Where the partitions of a query are, as they are at the moment of asking. Raises LogError, BrokerError."""

    def partitions(self) -> list[TopicPartition]:
        """The partitions that the query reads."""

    def start(self) -> list[OffsetRange]:
        """For each of them where a query without a checkpoint starts."""

    def earliest(self, keys: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """First offsets there are."""

    def latest(self, keys: Iterable[TopicPartition]) -> Offsets:
        """Offsets behind the last ones there are."""

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Ids of topics where they are known, as the last call of partitions, start or earliest saw them."""

    def close(self) -> None:
        """The query has ended."""


class StreamOptions(Protocol):
    """What this module needs to know of a query's options."""

    @property
    def limits(self) -> Limits:
        """How much a micro-batch takes."""

    @property
    def fail_on_data_loss(self) -> bool:
        """Whether data that is gone fails the query."""

    @property
    def start(self) -> Limit:
        """Where a query without a checkpoint starts."""

    @property
    def no_match(self) -> NoMatch:
        """What to do when nothing is as young as start asks."""


P = TypeVar("P", bound=Places)


class LogStream(DataSourceStreamReader, SupportsTriggerAvailableNow, Generic[P]):
    """Plans the micro-batches of one streaming query.

    Spark keeps one such object for a running query and asks it from one thread; workers get copies for read().
    """

    source: ClassVar[str]
    """The format, which checkpoints name."""

    def __init__(self, options: StreamOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns
        self._places: P | None = None
        self._target: Position | None = None  # of Trigger.AvailableNow
        self._seen = Position({})
        self._is_first = self._is_first_planned = False  # the micro-batch that begins at initialOffset()
        self._last_due = -math.inf  # by time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "columns": self.columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @abstractmethod
    def open(self) -> P:
        """What the query asks for partitions and offsets; on the driver."""

    @abstractmethod
    def tasks(self, ranges: Sequence[OffsetRange]) -> Sequence[InputPartition]:
        """The tasks that read some ranges; the same for the same ranges."""

    @property
    def places(self) -> P:
        """open(), once."""
        if self._places is None:
            self._places = self.open()
        return self._places

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Where a query without a checkpoint starts.

        Spark keeps no answer: it asks again when it plans the first micro-batch, and whenever that is run again.
        """
        self._is_first, self._is_first_planned = True, False
        return self._position({(each.topic, each.partition): each.start for each in self.places.start()}).render(
            self.source
        )

    def _position(self, offsets: Offsets) -> Position:
        return Position(offsets, self.places.topic_ids({topic for topic, _ in offsets}))

    def _latest(self) -> Position:
        return self._position(self.places.latest(self.places.partitions()))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """maxOffsetsPerTrigger or minOffsetsPerTrigger, so that Spark knows that there is one."""
        from pyspark.sql.streaming.datasource import ReadMaxRows, ReadMinRows

        limits = self.options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        return ReadAllAvailable() if limits.min_offsets is None else ReadMinRows(limits.min_offsets)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read up to what is there now, however long that takes."""
        self._target = self._latest()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """The end of the next micro-batch. start: of the last one's end; Spark 4.1 gives none and knows no limits."""
        if self._is_first_planned:
            self._is_first = self._is_first_planned = False
        if self._is_first and start is not None and moves_on(self.options.start, self.options.no_match):
            self._last_due = time.monotonic()
            return start  # an empty micro-batch: its end is kept, and all the others begin there
        found = self._target if self._target is not None else self._latest()
        self._seen = found
        if start is None:
            return found.render(self.source)
        begun = Position.parse(
            start, self.source
        )  # partitions that are gone are not in the end: next_ranges says what is lost
        known_ids = {topic: known for topic, known in begun.topic_ids.items() if topic not in found.topic_ids}
        ids = found.topic_ids | known_ids
        begun = begun.without(begun.recreated(ids))
        latest = found.offsets
        if self._target is not None:  # which may be older than where the query starts
            latest = {key: max(offset, begun.offsets.get(key, offset)) for key, offset in latest.items()}
        new = [key for key in latest if key not in begun.offsets]
        known = {**(self.places.earliest(new) if new else {}), **begun.offsets}
        known = {key: offset for key, offset in known.items() if key in latest}
        limits = self.options.limits
        if isinstance(limit, ReadAllAvailable) and self._target is None:
            return Position(latest, ids).render(self.source)
        waited_ms = (time.monotonic() - self._last_due) * 1000
        if self._target is None and not has_enough(limits, known, latest, waited_ms):
            return start
        self._last_due = time.monotonic()
        if limits.max_offsets is not None:
            latest = rate_limit(limits.max_offsets, known, latest)
        return Position(latest, ids).render(self.source)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """What the progress of the query shows as the newest offsets."""
        return self._seen.render(self.source) if self._seen.offsets else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of one micro-batch; the same for the same offsets. Raises LogError for data that is gone."""
        begun, ended = Position.parse(start, self.source), Position.parse(end, self.source)
        if self._is_first:
            self._is_first_planned = True
            # A run before this one has planned it, and has seen fewer partitions, and earlier ends of them.
            known = begun.offsets.items()
            offsets = {key: min(offset, ended.offsets[key]) for key, offset in known if key in ended.offsets}
            begun = Position(offsets, begun.topic_ids)
        ranges = next_ranges(
            begun,
            ended,
            self.places.earliest,
            self.places.topic_ids,
            fail_on_data_loss=self.options.fail_on_data_loss,
            report=lambda lost: logger.warning("%s", lost),
        )
        return self.tasks(ranges)

    def stop(self) -> None:
        """The query has ended."""
        if self._places is not None:
            self._places.close()
            self._places = None


class RefusedStream(DataSourceStreamReader):
    """Stands for a query that cannot start, and raises the reason at its first call.

    Where streamReader() itself raises, Spark's runner fails with an UnboundLocalError of its own, and shows that.
    Source: pyspark.sql.streaming.python_streaming_source_runner.main.
    """

    def __init__(self, reason: KwireError) -> None:
        self.reason = reason

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Raise the reason."""
        raise self.reason

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Raise the reason."""
        raise self.reason

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Raise the reason."""
        raise self.reason

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Raise the reason."""
        raise self.reason


def moves_on(start: Limit, no_match: NoMatch) -> bool:
    """Whether a start is another one when it is looked up later, since records have come meanwhile."""
    match start:
        case Everywhere(position):
            return position == LATEST
        case AtOffsets(offsets):
            return LATEST in offsets.values()
        case _:
            return no_match == "latest"
