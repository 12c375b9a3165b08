"""Read the batch headers of a log: where it is cut, and the transactions on both sides.

    below the cut      kept
    above it           read as well: a marker there ends a transaction that has records below

A log is cut at a moment before the first batch with a later timestamp, at an offset before the batch that contains it.
So batches stay whole, and nothing that is kept is later than the moment, whatever order timestamps have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from kwire.errors import CorruptBatch, LogError
from kwire.identifiers import TopicPartition
from kwire.log.files.segment import Segment
from kwire.log.reading.partition_log import PartitionLog
from kwire.maintenance.restore.points import AtTime, RestorePoint
from kwire.records import ControlRecordType, parse_control_record, read_batches
from kwire.records.attributes import NO_TIMESTAMP
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.header_walk import HeaderWalk
from kwire.storage.store import StoredFile

__all__ = ["Marker", "Part", "ProducerTrace", "Survey", "read_parts", "survey_log"]

ADVANCE_BYTES = 1 << 20
NO_PRODUCER_ID = -1


class Marker(NamedTuple):
    """A transaction marker. timestamp: ms, of its broker."""

    offset: int
    timestamp: int
    is_commit: bool
    producer_epoch: int
    coordinator_epoch: int


class Part(NamedTuple):
    """A transaction's records in one partition, and its marker; None if the log ends before it.

    producer_epoch: of the records. last_offset: of the last one.
    """

    key: TopicPartition
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    marker: Marker | None


@dataclass(slots=True)
class ProducerTrace:
    """Transactions of a producer in one partition.

    is_open: whether a transaction is open at the cut. last_kept_ms: time of the last marker below the cut.
    first_cut_ms: time of the first marker above it. last_ms: time of the last marker in the source.
    """

    is_open: bool = False
    last_kept_ms: int | None = None
    first_cut_ms: int | None = None
    last_ms: int = -1


@dataclass(slots=True, kw_only=True)
class Survey:
    """A log and its cut.

    cut_offset: the log end offset after the cut. source_end: the log end offset before, cut to the high watermark of a
    copy. first_timestamp: the largest of the first batch, None without one. largest_timestamp: of the kept batches, -1
    without one. largest_producer_id: of the whole log. latest_epoch:
    the newest leader epoch of the whole log. kept_bytes: size of the kept batches. producers: the transactional ones.
    unread: the damage above the cut that ended the reading.
    """

    log: PartitionLog
    log_start_offset: int
    source_end: int
    cut_offset: int
    first_timestamp: int | None = None
    largest_timestamp: int = NO_TIMESTAMP
    largest_producer_id: int = NO_PRODUCER_ID
    latest_epoch: int = -1
    kept_bytes: int = 0
    has_timestamps: bool = True
    producers: dict[int, ProducerTrace] = field(default_factory=dict)
    unread: CorruptBatch | None = None

    @property
    def key(self) -> TopicPartition:
        """Topic and partition."""
        return self.log.topic, self.log.partition

    @property
    def name(self) -> str:
        """The partition's name: `orders-0`."""
        return f"{self.log.topic}-{self.log.partition}"


@dataclass(slots=True)
class HeaderReader:
    """Reads the headers of a log below an end offset.

    next_offset: where the reading ended. damage: what ended it, unless that was the end.
    """

    log: PartitionLog
    end_offset: int | None
    advance: Callable[[int], None] = lambda n: None
    next_offset: int = 0
    damage: CorruptBatch | None = None

    def __iter__(self) -> Iterator[tuple[StoredFile, BatchHeader]]:
        done = 0
        for segment in self.log.segments:
            with closing(segment.open()) as file:
                walk = HeaderWalk(file)
                self.next_offset = max(self.next_offset, segment.base_offset)
                for header in walk:
                    if header.base_offset < self.next_offset or not segment.is_inside(header):
                        self.damage = out_of_order(file, header, self.next_offset)
                        return
                    if self.end_offset is not None and header.last_offset >= self.end_offset:
                        return
                    self.next_offset = header.last_offset + 1
                    done += header.size_bytes
                    if done >= ADVANCE_BYTES:
                        self.advance(done)
                        done = 0
                    yield file, header
                self.damage = end_damage(segment, file, walk)
                if self.damage is not None:
                    return
        self.advance(done)
        if self.end_offset is not None:
            self.next_offset = max(self.next_offset, min(self.end_offset, self.log.log_end_offset))


def out_of_order(file: StoredFile, header: BatchHeader, next_offset: int) -> CorruptBatch:
    """Return the damage of a batch whose offsets do not follow those before it."""
    what = f"offsets {header.base_offset} to {header.last_offset} do not follow: expected {next_offset} or more"
    return CorruptBatch(what, header.position, (), file.url)


def end_damage(segment: Segment, file: StoredFile, walk: HeaderWalk) -> CorruptBatch | None:
    """Return the damage that ended a walk; None at the end of the batches, which recovery finds too (G-08)."""
    if walk.damage is not None:
        return None if segment.ends_in_zeros(file, walk.position) else walk.damage
    return segment.cut(file, walk.position, file.size())


def survey_log(
    log: PartitionLog,
    point: RestorePoint,
    *,
    end_offset: int | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> Survey:
    """Find the cut of a log. end_offset: treat the log as ending there. advance: called with bytes read.

    Raises LogError for damage below the cut, and files that cannot be read.
    """
    time_ms = point.time_ms if isinstance(point, AtTime) else None
    offset = None if isinstance(point, AtTime) else point.offsets.get((log.topic, log.partition))
    start = log.log_start_offset
    survey = Survey(log=log, log_start_offset=start, source_end=start, cut_offset=start)
    reader, is_cut = HeaderReader(log, end_offset, advance), False
    open_now: set[int] = set()
    end = start
    for _, header in reader:
        later = (time_ms is not None and header.max_timestamp > time_ms) or (
            offset is not None and header.last_offset >= offset
        )
        if later and not is_cut:
            is_cut = True
            survey.cut_offset = max(start, header.base_offset if header.magic == 2 else end)
            if offset is not None:
                survey.cut_offset = max(start, min(survey.cut_offset, offset))
            mark_open(survey, open_now)
        end = header.last_offset + 1
        if survey.first_timestamp is None:
            survey.first_timestamp = header.max_timestamp
        survey.latest_epoch = max(survey.latest_epoch, header.leader_epoch)
        survey.largest_producer_id = max(survey.largest_producer_id, header.producer_id)
        if not is_cut:
            survey.kept_bytes += header.size_bytes
            survey.largest_timestamp = max(survey.largest_timestamp, header.max_timestamp)
            survey.has_timestamps = survey.has_timestamps and header.max_timestamp >= 0
        if header.is_transactional:
            follow(survey, open_now, header, is_cut)
    survey.source_end = max(start, reader.next_offset)
    if not is_cut:
        if reader.damage is not None:
            raise damaged(survey.name, reader.damage)
        survey.cut_offset = survey.source_end
        mark_open(survey, open_now)
    survey.unread = reader.damage
    epochs = log.leader_epochs
    survey.latest_epoch = max(survey.latest_epoch, epochs[-1].leader_epoch if epochs else -1)
    return survey


def damaged(name: str, damage: CorruptBatch) -> LogError:
    """Return the error for damage of a source."""
    return LogError(f"{name}: {damage.what}, at byte {damage.position}; run kwire log repair first", damage.file)


def mark_open(survey: Survey, open_now: set[int]) -> None:
    """Note the producers with a transaction that is open at the cut."""
    for producer_id in open_now:
        survey.producers.setdefault(producer_id, ProducerTrace()).is_open = True


def follow(survey: Survey, open_now: set[int], header: BatchHeader, is_cut: bool) -> None:
    """Note a transactional batch."""
    producer_id = header.producer_id
    trace = survey.producers.setdefault(producer_id, ProducerTrace())
    if not header.is_control:
        open_now.add(producer_id)
        return
    if producer_id in open_now:
        open_now.discard(producer_id)
        trace.last_ms = header.max_timestamp
        if not is_cut:
            trace.last_kept_ms = header.max_timestamp
        elif trace.first_cut_ms is None:
            trace.first_cut_ms = header.max_timestamp


@dataclass(slots=True)
class OpenPart:
    """A transaction that has no marker yet."""

    producer_epoch: int
    first_offset: int
    last_offset: int


def read_parts(survey: Survey, wanted: Callable[[int], bool]) -> Iterator[Part]:
    """Yield the transactions of the wanted producers in a log, in the order of their markers; open ones last."""
    open_now: dict[int, OpenPart] = {}
    for file, header in HeaderReader(survey.log, survey.source_end):
        if not header.is_transactional or not wanted(header.producer_id):
            continue
        now = open_now.get(header.producer_id)
        if not header.is_control:
            if now is None:
                open_now[header.producer_id] = OpenPart(header.producer_epoch, header.base_offset, header.last_offset)
            else:
                now.producer_epoch, now.last_offset = header.producer_epoch, header.last_offset
        elif now is not None:
            del open_now[header.producer_id]
            yield Part(survey.key, header.producer_id, *part_of(now), read_marker(survey, file, header))
    for producer_id, now in open_now.items():
        yield Part(survey.key, producer_id, *part_of(now), None)


def part_of(now: OpenPart) -> tuple[int, int, int]:
    """Return the fields of a Part."""
    return now.producer_epoch, now.first_offset, now.last_offset


def read_marker(survey: Survey, file: StoredFile, header: BatchHeader) -> Marker:
    """Read a transaction marker. Raises LogError if it is damaged."""
    data = file.pread(header.position, header.size_bytes)
    try:
        for batch in read_batches(data, position=header.position, file=file.url):
            batch.check()
            for record in batch.records():
                control = parse_control_record(record)
                return Marker(
                    header.base_offset,
                    header.max_timestamp,
                    control.type == ControlRecordType.COMMIT,
                    header.producer_epoch,
                    control.coordinator_epoch or 0,
                )
    except CorruptBatch as error:
        raise damaged(survey.name, error) from error
    # the cleaner empties markers of transactions without records; nothing depends on this one
    return Marker(header.base_offset, header.max_timestamp, True, header.producer_epoch, 0)
