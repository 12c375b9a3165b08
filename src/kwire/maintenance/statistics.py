"""Statistics of topics, from batch headers and columns: the data of the log report.

    headers   bytes, batches and records by codec and magic; control and transactional batches
    columns   keys, tombstones, headers, sizes, records over time, offsets with a record

Memory is bounded: distinct keys, producers and time buckets are counted exactly up to a limit, and the result says
if a limit was reached. Long keys are stored as their first bytes and a digest.
"""

from __future__ import annotations

import hashlib
import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.errors import DecodeError, LogError
from kwire.extras import needing
from kwire.log.reading.readable_log import ReadableLog
from kwire.log.reading.relisting import TRIES, retry_on_change
from kwire.log.reading.runs import PinnedRange, Run
from kwire.records import ControlRecordType, parse_control_record, read_batches
from kwire.records.attributes import CODEC_MASK
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.header_walk import HeaderWalk

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Int64s = npt.NDArray[np.int64]

__all__ = ["CodecCount", "KeyCount", "PartitionStatistics", "Timeline", "TopicStatistics", "count_topics"]

MAX_KEYS = 100_000
MAX_PRODUCERS = 100_000
MAX_BUCKETS = 20_000
DENSITY_BINS = 120
MAX_STRETCHES = 3
SHORT_KEY_BYTES = 48

# widths of a timeline's buckets in ms: 10 ms ... 1 s ... 1 min ... 1 h ... 1 d, 7 d, 30 d, a year, a century.
BUCKET_LADDER_MS = (
    *(10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000),
    *(86_400_000, 604_800_000, 2_592_000_000, 31_536_000_000, 3_153_600_000_000),
)


@dataclass(slots=True)
class CodecCount:
    """Batches of one codec. payload_bytes: keys, values and headers before compression."""

    batches: int = 0
    records: int = 0
    stored_bytes: int = 0
    payload_bytes: int = 0

    @property
    def ratio(self) -> float | None:
        """Payload bytes per stored byte; below 1 if headers and framing outweigh compression."""
        return self.payload_bytes / self.stored_bytes if self.stored_bytes else None


@dataclass(slots=True)
class Timeline:
    """Records and payload bytes by time: a sparse histogram that coarsens instead of growing.

    buckets: start in ms -> [records, payload bytes]. untimed: records without a timestamp (-1).
    """

    width_ms: int = BUCKET_LADDER_MS[0]
    buckets: dict[int, list[int]] = field(default_factory=dict)
    untimed: int = 0
    first_ms: int | None = None
    last_ms: int | None = None

    def add(self, times_ms: Int64s, payload_bytes: Int64s) -> None:
        """Count records with these timestamps; -1 for no timestamp."""
        import numpy as np

        timed = times_ms != -1
        self.untimed += len(times_ms) - int(timed.sum())
        times_ms, payload_bytes = times_ms[timed], payload_bytes[timed]
        if not len(times_ms):
            return
        low, high = int(times_ms.min()), int(times_ms.max())
        self.first_ms = low if self.first_ms is None else min(self.first_ms, low)
        self.last_ms = high if self.last_ms is None else max(self.last_ms, high)
        while True:
            starts, index, records = np.unique(times_ms // self.width_ms, return_inverse=True, return_counts=True)
            if len(starts) <= MAX_BUCKETS or self.width_ms == BUCKET_LADDER_MS[-1]:
                break
            self.coarsen()
        sizes = np.bincount(index, weights=payload_bytes)
        for start, n, size in zip(starts.tolist(), records.tolist(), sizes.tolist(), strict=True):
            bucket = self.buckets.setdefault(start * self.width_ms, [0, 0])
            bucket[0] += n
            bucket[1] += int(size)
        while len(self.buckets) > MAX_BUCKETS and self.width_ms != BUCKET_LADDER_MS[-1]:
            self.coarsen()

    def coarsen(self) -> None:
        """Coarsen to the next width."""
        self.width_ms = BUCKET_LADDER_MS[BUCKET_LADDER_MS.index(self.width_ms) + 1]
        self.buckets = _rebucket(self.buckets, self.width_ms)

    def stretches(self, most_bars: int) -> tuple[list[Stretch], int]:
        """Return the periods of a chart with their bars: usually one, more if there are long gaps between records.

        Returns (stretches by time, number of records outside them). Outside are records far from all others that are
        less than 1 % (one record from 1970 would make a chart of a day unreadable), or beyond the MAX_STRETCHES
        largest.
        """
        parts = _split_at_gaps(sorted(self.buckets))
        weights = [sum(self.buckets[start][0] for start in part) for part in parts]
        total = sum(weights)
        ranked = sorted(range(len(parts)), key=lambda i: -weights[i])[:MAX_STRETCHES]
        drawn = sorted(i for rank, i in enumerate(ranked) if rank == 0 or weights[i] >= total * 0.01)
        stretches = [self._stretch(parts[i], most_bars) for i in drawn]
        return stretches, total - sum(weights[i] for i in drawn)

    def _stretch(self, starts: Sequence[int], most_bars: int) -> Stretch:
        low, high = starts[0], starts[-1]
        width = _nice_width(self.width_ms, low, high, most_bars)
        merged = _rebucket({start: self.buckets[start] for start in starts}, width)
        first, last = low // width * width, high // width * width
        return Stretch(width, [(start, *merged.get(start, (0, 0))) for start in range(first, last + 1, width)])


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bars of equal width without gaps: (start in ms, records, payload bytes)."""

    width_ms: int
    bars: list[tuple[int, int, int]]


def _rebucket(buckets: dict[int, list[int]], width_ms: int) -> dict[int, list[int]]:
    merged: dict[int, list[int]] = {}
    for start, (records, size) in buckets.items():
        bucket = merged.setdefault(start // width_ms * width_ms, [0, 0])
        bucket[0] += records
        bucket[1] += size
    return merged


def _split_at_gaps(starts: Sequence[int]) -> list[Sequence[int]]:
    """Split sorted bucket starts wherever one gap makes up more than four fifths of a part."""
    if not starts:
        return []
    waiting, done = [starts], []
    while waiting:
        part = waiting.pop()
        gap, i = max(((b - a, i) for i, (a, b) in enumerate(itertools.pairwise(part), 1)), default=(0, 0))
        if gap * 5 > (part[-1] - part[0]) * 4 > 0 and len(part) > 2:
            waiting += [part[i:], part[:i]]
        else:
            done.append(part)
    return done


# usual units of time in ms; multiples of the ladder's widths, so that buckets never split
_STEPS_MS = sorted(
    step * unit
    for unit, steps in (
        (1, (10, 20, 50, 100, 200, 500)),
        (1_000, (1, 2, 5, 10, 20, 30)),
        (60_000, (1, 2, 5, 10, 20, 30)),
        (3_600_000, (1, 2, 3, 6, 12)),
        (86_400_000, (1, 2, 7, 14, 28, 91, 182, 365, 730, 3650, 36500)),
    )
    for step in steps
)


def _nice_width(multiple_of_ms: int, low: int, high: int, most: int) -> int:
    """Return the smallest step of which at most `most` (3 or more) cover [low, high]; any width beyond a century."""
    for step in _STEPS_MS:
        if step % multiple_of_ms == 0 and high // step - low // step < most:
            return step
    least = (high - low) // (most - 2) + 1  # bars may begin before low and end after high
    return -(-least // multiple_of_ms) * multiple_of_ms


@dataclass(slots=True)
class KeyCount:
    """Record counts by key.

    counts: records by identity: the key itself up to SHORT_KEY_BYTES, else its first bytes and a digest. uncounted:
    records with keys after the first MAX_KEYS distinct ones; 0 means that all counts are exact.
    """

    null: int = 0
    empty: int = 0
    counts: Counter[tuple[bytes, bytes]] = field(default_factory=Counter)
    uncounted: int = 0

    @property
    def complete(self) -> bool:
        """Whether all keys were counted."""
        return not self.uncounted

    @property
    def distinct(self) -> int:
        """Number of distinct keys; a lower bound unless `complete`."""
        return len(self.counts)

    def top(self, n: int) -> list[tuple[bytes, bool, int]]:
        """Return the n keys with the most records: (first bytes, whether cut, records)."""
        # ties are sorted by key: equal reports for equal logs
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:n]
        return [(head, bool(digest), count) for (head, digest), count in ranked]

    def add(self, keys: pa.Array) -> None:
        """Count a column of keys."""
        import pyarrow.compute as pc

        self.null += keys.null_count
        counted = pc.value_counts(keys)
        for key, n in zip(counted.field("values"), counted.field("counts").to_pylist(), strict=True):
            if not key.is_valid:
                continue
            raw = key.as_py()
            if not raw:
                self.empty += n
            identity = (raw, b"") if len(raw) <= SHORT_KEY_BYTES else (raw[:SHORT_KEY_BYTES], _digest(raw))
            if identity in self.counts or len(self.counts) < MAX_KEYS:
                self.counts[identity] += n
            else:
                self.uncounted += n


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=16).digest()


@dataclass(slots=True)
class PartitionStatistics:
    """One partition. Offsets in [log_start_offset, log_end_offset) have a data or a control record, or are holes."""

    partition: int
    log_start_offset: int = 0
    log_end_offset: int = 0
    last_stable_offset: int | None = None
    segments: int | None = 0
    stored_bytes: int = 0
    records: int = 0
    control_records: int = 0
    density: list[int] = field(default_factory=lambda: [0] * DENSITY_BINS)
    unread: list[str] = field(default_factory=list)

    @property
    def span(self) -> int:
        """Offsets between log start and log end."""
        return self.log_end_offset - self.log_start_offset

    @property
    def holes(self) -> int:
        """Offsets without a record: compacted, or never used (of transactions)."""
        return max(self.span - self.records - self.control_records, 0)

    def bins(self) -> list[tuple[int, int, int]]:
        """Return at most DENSITY_BINS equal parts of the span: [(from offset, to offset, offsets with a record)]."""
        starts = range(self.log_start_offset, self.log_end_offset, self._bin_width)
        return [
            (start, min(start + self._bin_width, self.log_end_offset), n)
            for start, n in zip(starts, self.density, strict=False)
        ]

    @property
    def _bin_width(self) -> int:
        return max(-(-self.span // DENSITY_BINS), 1)

    def add_offsets(self, offsets: Int64s) -> None:
        """Count offsets that have a record (data or control) in `density`."""
        import numpy as np

        inside = (offsets >= self.log_start_offset) & (offsets < self.log_end_offset)
        bins = (offsets[inside] - self.log_start_offset) // self._bin_width
        for i, n in enumerate(np.bincount(bins, minlength=DENSITY_BINS).tolist()):
            self.density[i] += n


@dataclass(slots=True)
class TopicStatistics:
    """Statistics of a topic, filled by `count_topics`.

    records: data records, including those of aborted transactions. committed_records: records for read_committed; None
    without transactions. undecided_records: at or after the last stable offset of their partition.
    """

    topic: str
    partitions: list[PartitionStatistics] = field(default_factory=list)
    codecs: dict[str, CodecCount] = field(default_factory=dict)
    magics: Counter[int] = field(default_factory=Counter)
    timestamp_types: Counter[int] = field(default_factory=Counter)
    timeline: Timeline = field(default_factory=Timeline)
    keys: KeyCount = field(default_factory=KeyCount)
    records: int = 0
    batches: int = 0
    empty_batches: int = 0
    stored_bytes: int = 0
    tombstones: int = 0
    empty_values: int = 0
    with_headers: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    header_bytes: int = 0
    largest_value_bytes: int = 0
    largest_batch_bytes: int = 0
    commits: int = 0
    aborts: int = 0
    other_control: int = 0
    transactional_records: int = 0
    committed_records: int | None = None
    undecided_records: int = 0
    producers: set[int] = field(default_factory=set)

    @property
    def payload_bytes(self) -> int:
        """Keys, values and headers before compression."""
        return self.key_bytes + self.value_bytes + self.header_bytes

    @property
    def ratio(self) -> float | None:
        """Payload bytes per stored byte."""
        return self.payload_bytes / self.stored_bytes if self.stored_bytes else None

    @property
    def holes(self) -> int:
        """Offsets without a record in all partitions."""
        return sum(p.holes for p in self.partitions)

    @property
    def unread(self) -> list[str]:
        """Unreadable parts, one line each."""
        return [line for p in self.partitions for line in p.unread]


COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers", "_corrupt")
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


def count_topics(logs: Sequence[ReadableLog], advance: Callable[[int], None]) -> list[TopicStatistics]:
    """Read every record of the partitions and count. advance: called with bytes of `.log` files as they are read.

    Unreadable parts are listed in `unread`. Raises LogError for missing files.
    """
    topics: dict[str, TopicStatistics] = {}
    counted: dict[str, list[ReadableLog]] = {}
    for log in logs:
        topic = topics.get(log.topic) or TopicStatistics(log.topic)
        topic_and_log = _count_partition(log, topic, advance)
        if topic_and_log is not None:
            topics[log.topic], log = topic_and_log
            counted.setdefault(log.topic, []).append(log)
    for topic in topics.values():
        if topic.transactional_records or topic.commits or topic.aborts:
            _count_committed(topic, counted[topic.topic])
    return list(topics.values())


def _count_partition(
    log: ReadableLog, topic: TopicStatistics, advance: Callable[[int], None]
) -> tuple[TopicStatistics, ReadableLog] | None:
    """Add one partition to a topic. Returns the topic and the listing that was read; None for a deleted partition.

    A running broker may delete files during the count. The partition is then counted again from a new listing.
    """
    log = log.reopened()
    before = pickle.dumps(topic)
    for tries_left in reversed(range(TRIES)):
        error: LogError | None = None
        counted = 0
        try:
            counted = _count_runs(log, topic, advance)
        except LogError as raised:
            error = raised
        if error is None and not topic.partitions[-1].unread:
            return topic, log
        if log.is_deleted:
            return None
        again = log.reopened()
        if not tries_left or not log.has_changed(again):
            break
        advance(-counted)
        topic, log = pickle.loads(before), again
    if error is not None:
        raise error
    return topic, log


def _count_runs(log: ReadableLog, topic: TopicStatistics, advance: Callable[[int], None]) -> int:
    """Count one partition; returns the bytes passed to `advance`."""
    with needing("statistics of logs"):
        from kwire.log.reading.arrow import RangeReader

    pinned = log.pin()
    start, end = pinned.start_offset, pinned.end_offset
    into = PartitionStatistics(log.partition, start, end, segments=log.segment_count)
    topic.partitions.append(into)
    reader = RangeReader(COLUMNS, topic=log.topic, partition=log.partition, offsets=(start, end), mode="PERMISSIVE")
    counted = 0
    for run in pinned.runs:
        headers = _RunHeaders(run, start, end)
        headers.count_into(topic, into)
        for rows in reader.read_run(run):
            _count_rows(rows, headers, topic, into)
        headers.count_records_into(topic)
        advance(headers.size_bytes)
        counted += headers.size_bytes
    return counted


class _RunHeaders:
    """Batch headers of one run as arrays, which match a column of offsets to its batches in one step.

    size_bytes: of the batches.
    """

    def __init__(self, run: Run, start_offset: int, end_offset: int) -> None:
        import numpy as np

        headers = [
            header
            for header in HeaderWalk(run.file)
            if header.last_offset >= start_offset and (header.magic < 2 or header.stored_offset < end_offset)
        ]
        self._file, self._headers = run.file, headers
        self.size_bytes = sum(header.size_bytes for header in headers)
        self._last_offsets = np.array([h.last_offset for h in headers], dtype=np.int64)
        self._records = np.zeros(len(headers), dtype=np.int64)
        self._payload = np.zeros(len(headers), dtype=np.float64)

    def count_into(self, topic: TopicStatistics, into: PartitionStatistics) -> None:
        """Add what the headers alone show to the counts."""
        import numpy as np

        for header in self._headers:
            codec = topic.codecs.setdefault(_codec(header), CodecCount())
            codec.batches += 1
            codec.stored_bytes += header.size_bytes
            topic.batches += 1
            topic.stored_bytes += header.size_bytes
            into.stored_bytes += header.size_bytes
            topic.largest_batch_bytes = max(topic.largest_batch_bytes, header.size_bytes)
            if header.producer_id >= 0 and len(topic.producers) < MAX_PRODUCERS:
                topic.producers.add(header.producer_id)
        control = [header for header in self._headers if header.is_control]
        if control:
            offsets = np.concatenate([np.arange(h.stored_offset, h.last_offset + 1) for h in control])
            offsets = offsets[(offsets >= into.log_start_offset) & (offsets < into.log_end_offset)]
            into.control_records += len(offsets)
            into.add_offsets(offsets)
            self._count_markers(control, topic, into)

    def _count_markers(self, control: list[BatchHeader], topic: TopicStatistics, into: PartitionStatistics) -> None:
        for header in control:
            data = self._file.pread(header.position, header.size_bytes)
            try:
                for batch in read_batches(data, position=header.position, file=self._file.url):
                    kinds = [parse_control_record(record).type for record in batch.records()]
                    topic.commits += kinds.count(ControlRecordType.COMMIT)
                    topic.aborts += kinds.count(ControlRecordType.ABORT)
                    topic.other_control += sum(kind > ControlRecordType.COMMIT for kind in kinds)
            except DecodeError as error:
                into.unread.append(str(error))

    def match(self, offsets: Int64s, payload_bytes: Int64s) -> None:
        """Count data records, by their offsets, for the batches they are in."""
        import numpy as np

        if len(self._headers):
            n = len(self._headers)
            index = np.minimum(np.searchsorted(self._last_offsets, offsets), n - 1)
            self._records += np.bincount(index, minlength=n)
            self._payload += np.bincount(index, weights=payload_bytes, minlength=n)

    def count_records_into(self, topic: TopicStatistics) -> None:
        """Add the matched records and their payload to the counts by codec and magic."""
        for header, records, payload in zip(self._headers, self._records.tolist(), self._payload.tolist(), strict=True):
            codec = topic.codecs[_codec(header)]
            codec.records += records
            codec.payload_bytes += int(payload)
            topic.magics[header.magic] += records
            if header.is_transactional and not header.is_control:
                topic.transactional_records += records
            if not records and not header.is_control:
                topic.empty_batches += 1


def _codec(header: BatchHeader) -> str:
    codec = header.attributes & CODEC_MASK
    return CODEC_NAMES[codec] if codec < len(CODEC_NAMES) else f"unknown ({codec})"


def _count_rows(rows: pa.RecordBatch, headers: _RunHeaders, topic: TopicStatistics, into: PartitionStatistics) -> None:
    """Count the rows of an Arrow batch with the columns COLUMNS."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    corrupt = rows.column("_corrupt")
    if corrupt.null_count < len(corrupt):
        into.unread += corrupt.drop_null().to_pylist()
        rows = rows.filter(pc.is_null(corrupt))
    keys, values, nested = rows.column("key"), rows.column("value"), rows.column("headers")
    key_bytes, value_bytes, header_bytes = _lengths(keys), _lengths(values), _header_bytes(nested)
    payload = key_bytes + value_bytes + header_bytes
    offsets = rows.column("offset").to_numpy()
    times_ms = rows.column("timestamp").cast(pa.int64()).to_numpy() // 1000

    headers.match(offsets, payload)
    into.records += rows.num_rows
    into.add_offsets(offsets)
    topic.records += rows.num_rows
    topic.keys.add(keys)
    topic.timeline.add(times_ms, payload)
    kinds, counts = np.unique(rows.column("timestampType").to_numpy(), return_counts=True)
    topic.timestamp_types.update(dict(zip(kinds.tolist(), counts.tolist(), strict=True)))
    topic.tombstones += values.null_count
    topic.empty_values += int((value_bytes == 0).sum()) - values.null_count
    topic.with_headers += int((_counts(nested) > 0).sum())
    topic.key_bytes += int(key_bytes.sum())
    topic.value_bytes += int(value_bytes.sum())
    topic.header_bytes += int(header_bytes.sum())
    topic.largest_value_bytes = max(topic.largest_value_bytes, int(value_bytes.max(initial=0)))


def _lengths(column: pa.Array) -> Int64s:
    """Return the size of each key or value; null is 0."""
    import numpy as np
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.binary_length(column), 0), dtype=np.int64)


def _counts(lists: pa.Array) -> Int64s:
    """Return the number of entries of each list; null is 0."""
    import numpy as np
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(pc.list_value_length(lists), 0), dtype=np.int64)


def _header_bytes(headers: pa.Array) -> Int64s:
    """Return the size of all header keys and values of each record."""
    import numpy as np

    flat = headers.flatten()
    sizes = _lengths(flat.field("key").cast("binary")) + _lengths(flat.field("value"))
    ends = np.cumsum(_counts(headers))
    total = np.concatenate([[0], np.cumsum(sizes)])
    return np.asarray(total[ends] - np.concatenate([[0], total[ends][:-1]]), dtype=np.int64)


def _count_committed(topic: TopicStatistics, logs: Sequence[ReadableLog]) -> None:
    """Count the topic's records under read_committed; a second pass, over offsets only."""
    committed = 0
    for log, into in zip(logs, topic.partitions, strict=True):
        try:
            stable, visible, undecided = retry_on_change(log.reopened(), _committed_of)
        except DecodeError as error:
            into.unread.append(str(error))
            return
        into.last_stable_offset = stable
        committed += visible
        topic.undecided_records += undecided
    topic.committed_records = committed


def _committed_of(log: ReadableLog) -> tuple[int, int, int]:
    """Return the last stable offset, the committed records below it and the number of records from it on."""
    stable = log.last_stable_offset
    return stable, _count_offsets(log.pin(0, stable, "read_committed")), _count_offsets(log.pin(stable))


def _count_offsets(pinned: PinnedRange) -> int:
    with needing("statistics of logs"):
        from kwire.log.reading.arrow import read_pinned

    return sum(rows.num_rows for rows in read_pinned(pinned, ["offset"], mode="DROPMALFORMED"))
