"""Compare a table with the logs that it was written from, row by row, in bounded memory.

The rows of the logs are read in windows: offset and hash of up to WINDOW_ROWS rows, of one partition or of several
small ones. The data files that may have offsets of a window are then read once. Windows meet without a gap, so each
row of the table belongs to one of them; files that are ordered by offset are read once in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kwire.errors import TableError
from kwire.identifiers import MAX_OFFSET, TopicPartition
from kwire.lake.append import ReadNotes, RowOptions, read_offsets, topic_ids_of
from kwire.lake.arrow_columns import conform, offsets_of
from kwire.lake.offset_ranges import Ranges, Spans, intersection, union
from kwire.lake.row_hashes import are_comparable, row_hashes
from kwire.lake.table import LakeTable, check_topic_ids

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from kwire.log.reading.readable_log import ReadableLog
    from kwire.log.reading.runs import Isolation
    from kwire.schemas.record_values import ValueDecoding

__all__ = ["Compared", "Offsets", "compared_columns", "verify_table"]

WINDOW_ROWS = 2 << 20  # 40 bytes each
MAX_RANGES = 1000  # of a kind of difference in a partition
PLACE = ("topic", "partition", "offset")


@dataclass(slots=True)
class Offsets:
    """Offsets of rows. rows: their number. ranges: up to MAX_RANGES of them. is_cut: whether there are more."""

    rows: int = 0
    ranges: Ranges = ()
    is_cut: bool = False

    def add(self, ranges: Sequence[tuple[int, int]], rows: int) -> None:
        """Add rows. ranges: of their offsets."""
        self.rows += rows
        ranges = union(self.ranges, tuple(ranges))
        self.is_cut = self.is_cut or len(ranges) > MAX_RANGES
        self.ranges = ranges[:MAX_RANGES]


@dataclass(slots=True, kw_only=True)
class Compared:
    """A partition, in a log and in a table.

    rows: in the log. table_rows: in the table, at offsets that the log may have. missing: of the log and not in the
    table; a range spans offsets that have no record. doubled: more than once in the table. different: other values.
    extra: of the table and not in the log. before: rows of the table before the log's first offset, which are not
    compared. recorded: offsets that the table has by its own account, which append_logs does not append again.
    """

    topic: str
    partition: int
    rows: int = 0
    table_rows: int = 0
    missing: Offsets = field(default_factory=Offsets)
    doubled: Offsets = field(default_factory=Offsets)
    different: Offsets = field(default_factory=Offsets)
    extra: Offsets = field(default_factory=Offsets)
    before: Offsets = field(default_factory=Offsets)
    recorded: Ranges = ()

    @property
    def is_same(self) -> bool:
        """Whether the table has each row of the log once, and no other."""
        return not (self.missing.rows or self.doubled.rows or self.different.rows or self.extra.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """schema: topic, partition, offset and the columns that are compared. not_compared: others, with the reason."""

    schema: pa.Schema
    not_compared: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return [name for name in self.schema.names if name not in PLACE]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """How logs are read, as verify_table says."""

    columns: _Columns
    rows: RowOptions
    window_rows: int


@dataclass(slots=True)
class _Part:
    """Offsets [start, end) of a partition in a window, end without a limit in the last part of a log."""

    compared: Compared
    log_start: int
    start: int
    end: int
    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    counts: NDArray[np.int32]
    differs: NDArray[np.bool_]


def compared_columns(table: LakeTable, decoding: ValueDecoding | None = None) -> tuple[Sequence[str], Sequence[str]]:
    """Return the columns that verify_table compares, and those that it does not, with the reason."""
    columns = _columns(table, decoding)
    return columns.names, columns.not_compared


def verify_table(
    table: LakeTable,
    logs: Iterable[ReadableLog],
    *,
    isolation: Isolation = "read_committed",
    decoding: ValueDecoding | None = None,
    skip_missing: bool = False,
    window_rows: int = WINDOW_ROWS,
) -> Iterator[Compared]:
    """Compare a table, as of its last refresh, with logs that were opened after that; return each partition.

    decoding: of values, as the table was written with. skip_missing: as of ReadableLog.read. A table that is merged by
    key has not all rows: its missing ones are not looked for.
    Raises TableError for a table without the columns of offsets, or of another topic; the errors of logs and values.
    """
    reading = _Reading(
        columns=_columns(table, decoding),
        rows=RowOptions(isolation=isolation, decoding=decoding, skip_missing=skip_missing),
        window_rows=window_rows,
    )
    is_merged = bool(table.state().merge_key)
    window: list[_Part] = []
    size = 0
    for log in logs:
        check_topic_ids(table.state(), topic_ids_of([log], table.name), table.name)
        for part in _parts(log, table, reading):
            window.append(part)
            size += len(part.offsets)
            if size >= window_rows:
                yield from _done(table, window, reading.columns, is_merged=is_merged)
                window, size = [], 0
    yield from _done(table, window, reading.columns, is_merged=is_merged)


def _columns(table: LakeTable, decoding: ValueDecoding | None) -> _Columns:
    import pyarrow as pa

    from kwire.records.columns.reader import COLUMNS

    of_table = table.plan().schema
    for name in PLACE:
        if name not in of_table.names:
            raise TableError(
                f"it has no column '{name}', so its rows cannot be compared with those of a log", table.name
            )
    of_log = RowOptions(columns=COLUMNS, decoding=decoding).schema()
    fields, others = [], []
    for each in of_table:
        if each.name not in of_log.names:
            others.append(f"{each.name} (not of the log)")
            continue
        kind = of_log.field(each.name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if not are_comparable(kind, each.type):
            remedy = "; give --registry" if pa.types.is_struct(each.type) and decoding is None else ""
            others.append(f"{each.name} ({each.type} in the table, {kind} in the log{remedy})")
            continue
        is_text = pa.types.is_binary(kind) and not pa.types.is_binary(each.type)
        fields.append(pa.field(each.name, kind if is_text else each.type))
    return _Columns(schema=pa.schema(fields), not_compared=tuple(others))


def _parts(
    log: ReadableLog,
    table: LakeTable,
    reading: _Reading,
) -> Iterator[_Part]:
    """Read a log. The last part has no upper limit, so that rows after the end of the log are found."""
    from kwire.records.columns.reader import COLUMNS

    first = log.log_start_offset
    end = max(first, log.last_stable_offset if reading.rows.isolation == "read_committed" else log.log_end_offset)
    spans = table.state().spans.get((log.topic, log.partition), ())
    compared = Compared(topic=log.topic, partition=log.partition, recorded=spans)
    columns, decoding = reading.columns, reading.rows.decoding
    names = tuple(name for name in COLUMNS if name in columns.schema.names or (decoding and name == "value"))
    batches: Iterable[pa.RecordBatch] = ()
    if first < end:
        batches = read_offsets(log, (first, end), replace(reading.rows, columns=names), ReadNotes())
    offsets: list[NDArray[np.int64]] = []
    hashes: list[NDArray[np.uint64]] = []
    size = start = 0
    for batch in batches:
        if not len(batch):
            continue
        rows = conform(batch, columns.schema, table.name)
        offsets.append(rows.column("offset").to_numpy(zero_copy_only=False))
        hashes.append(row_hashes(rows, columns.names))
        size += len(rows)
        if size >= reading.window_rows:
            until = int(offsets[-1][-1]) + 1
            yield _part(compared, first, start, until, offsets, hashes)
            offsets, hashes, size, start = [], [], 0, until
    yield _part(compared, first, start, MAX_OFFSET, offsets, hashes)


def _part(
    compared: Compared,
    log_start: int,
    start: int,
    end: int,
    offsets: Sequence[NDArray[np.int64]],
    hashes: Sequence[NDArray[np.uint64]],
) -> _Part:
    import numpy as np

    all_offsets = np.concatenate([np.empty(0, np.int64), *offsets])
    all_hashes = np.concatenate([np.empty(0, np.uint64), *hashes])
    count = len(all_offsets)
    compared.rows += count
    return _Part(
        compared, log_start, start, end, all_offsets, all_hashes, np.zeros(count, np.int32), np.zeros(count, np.bool_)
    )


def _done(table: LakeTable, window: Sequence[_Part], columns: _Columns, *, is_merged: bool) -> Iterator[Compared]:
    """Read the table's rows of a window; return the partitions that end in it."""
    if not window:
        return
    parts = {(part.compared.topic, part.compared.partition): part for part in window}
    wanted: Spans = {key: ((part.start, part.end),) for key, part in parts.items()}
    for file in table.live_files(wanted):
        for batch in table.read_live([file], columns.schema.names):
            for key, ranges in offsets_of(batch).items():
                if intersection(wanted.get(key, ()), ranges):
                    _count(_rows_of(conform(batch, columns.schema, table.name), key), parts[key], columns.names)
    for part in window:
        _add_differences(part, is_merged=is_merged)
        if part.end == MAX_OFFSET:
            yield part.compared


def _rows_of(rows: pa.RecordBatch, key: TopicPartition) -> pa.RecordBatch:
    """Return the rows of a partition."""
    import pyarrow.compute as pc

    return rows.filter(pc.and_(pc.equal(rows.column("topic"), key[0]), pc.equal(rows.column("partition"), key[1])))


def _count(rows: pa.RecordBatch, part: _Part, names: Sequence[str]) -> None:
    """Count the rows of a table."""
    import numpy as np
    import pyarrow.compute as pc

    rows = rows.filter(pc.is_valid(rows.column("offset")))
    offsets = rows.column("offset").to_numpy(zero_copy_only=False)
    is_before = (offsets < part.log_start) & (offsets >= part.start)
    part.compared.before.add(_ranges_of(offsets[is_before]), int(is_before.sum()))
    is_within = (offsets >= max(part.start, part.log_start)) & (offsets < part.end)
    within, hashes = offsets[is_within], row_hashes(rows, names)[is_within]
    part.compared.table_rows += len(within)
    places = np.searchsorted(part.offsets, within)
    is_known = places < len(part.offsets)
    is_known[is_known] = part.offsets[places[is_known]] == within[is_known]
    part.compared.extra.add(_ranges_of(within[~is_known]), int((~is_known).sum()))
    places, hashes = places[is_known], hashes[is_known]
    np.add.at(part.counts, places, 1)
    part.differs[places[part.hashes[places] != hashes]] = True


def _ranges_of(offsets: NDArray[np.int64]) -> Ranges:
    """Return offsets as ranges."""
    import numpy as np

    if not len(offsets):
        return ()
    offsets = np.unique(offsets)
    breaks = np.flatnonzero(np.diff(offsets) > 1)
    starts, ends = offsets[[0, *(breaks + 1)]], offsets[[*breaks, len(offsets) - 1]] + 1
    return tuple(zip(starts[: MAX_RANGES + 1].tolist(), ends[: MAX_RANGES + 1].tolist(), strict=True))


def _add_differences(part: _Part, *, is_merged: bool) -> None:
    """Add what was found of the rows of a part. The offsets between two rows of a log have no record."""
    import numpy as np

    kinds = [(part.compared.doubled, part.counts > 1), (part.compared.different, part.differs)]
    if not is_merged:
        kinds.append((part.compared.missing, part.counts == 0))
    for kind, is_found in kinds:
        rows = np.flatnonzero(is_found)
        ranges = [(int(part.offsets[start]), int(part.offsets[end - 1]) + 1) for start, end in _ranges_of(rows)]
        kind.add(ranges, len(rows))
