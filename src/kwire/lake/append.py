"""Append logs to a table: from the offset that the table has of each partition to the end of the log.

A large partition is committed by itself, in several commits if need be; small ones share commits. An interrupted run
continues where the last commit ended, and a run that meets another one fails without a row twice. Offsets that the
table lacks before its last one are appended if asked.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from kwire.errors import KwireError, LogError, OptionError, TableError
from kwire.identifiers import TopicPartition, render_uuid
from kwire.lake.changes import Changes
from kwire.lake.data_files import write_files
from kwire.lake.dead_letters import DeadLetterTarget, unwrapped_schema
from kwire.lake.offset_ranges import Ranges, Spans, holes_of, intersection, subtract, text_of, union
from kwire.lake.record_tables import HISTORY, RecordTables
from kwire.lake.replay import (
    Chosen,
    check_chosen,
    files_with,
    holes_made,
    nothing_to_append,
    offsets_to_append,
    rows_without,
)
from kwire.lake.row_target import RowTarget
from kwire.lake.state import WRITE_AGAIN, Change, TableState
from kwire.lake.table import LakeTable, Layout, check_merge_key, check_topic_ids

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.log.reading.arrow import NullTimestamps
    from kwire.log.reading.readable_log import ReadableLog
    from kwire.log.reading.runs import Isolation
    from kwire.schemas.record_values import ValueDecoding

__all__ = [
    "Appended",
    "Missing",
    "ReadNotes",
    "RowOptions",
    "append_logs",
    "missing_offsets",
    "read_offsets",
    "topic_ids_of",
]

COMMIT_BYTES = 2 << 30  # Arrow memory of the rows of a commit, which are in memory only in part
MERGED_BYTES = 256 << 20  # with a merge key: they are merged in memory
SHARED_OFFSETS, SHARED_BYTES = 20_000, 256 << 20  # of the partitions that share a commit

logger = logging.getLogger("kwire.lake")


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """Result of an append of a partition, or into a hole of it or before its first offset.

    offsets: from start_offset to end_offset, exclusive; equal without any. problem: the offsets that the table still
    lacks: retention deleted them before they were appended, they are in no segment or not in the one that was named, or
    they are a hole that was not to be filled; and timestamps that are null. None if there is none. dead_letters: how
    many of the records are not in `rows`, and in the table of dead letters.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    rows: int
    problem: str | None = None
    dead_letters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions:
    """Which rows of a table the records of logs become. Picklable.

    columns: of records, () for all but headers. decoding: of values, as ValueDecoding.resolve() returns it; by default
    they are bytes. changes: of a database, which the decoded values are. merge_key: columns to replace rows by, as for
    a compacted topic; those of `changes`, if there are some. skip_missing: as of ReadableLog.read. records: a table for
    each record type of the values, without `decoding`; the table of the others is then their index.
    """

    isolation: Isolation = "read_committed"
    columns: tuple[str, ...] = ()
    decoding: ValueDecoding | None = None
    changes: Changes | None = None
    merge_key: tuple[str, ...] = ()
    skip_missing: bool = False
    records: RecordTables | None = None

    def __post_init__(self) -> None:
        """Raise OptionError for columns without the offset, what cannot be read, and what excludes each other."""
        if self.columns and "offset" not in self.read_columns():
            raise OptionError(f"columns: expected offset among them, got {', '.join(self.columns)}")
        if self.records is not None and (self.merge_key or self.changes is not None):
            raise OptionError(HISTORY)
        if self.changes is not None and self.changes.is_debezium and self.decoding is None:
            raise OptionError("changes: require a registry, which values are decoded with")
        if self.merge_key and self.decoding is not None and self.decoding.chosen.mode == "permissive":
            raise OptionError(
                "mode: with permissive, values that cannot be decoded are null, which deletes their keys from a table "
                "with a merge key; use deadletter or failfast"
            )

    def read_columns(self) -> tuple[str, ...]:
        """Return the columns of records that are read."""
        from kwire.log.reading.arrow import default_columns

        return default_columns(self.columns or None)

    @property
    def order_by(self) -> tuple[str, ...]:
        """Columns of the table that order the rows of a key; () if offsets do."""
        return () if self.changes is None else self.changes.order_columns

    def schema(self) -> pa.Schema:
        """Return the schema of the rows of read_offsets."""
        from kwire.log.reading.arrow import schema_of

        schema = schema_of(self.read_columns())
        return schema if self.decoding is None else self.decoding.schema_of(schema)

    def target(self, table: LakeTable, layout: Layout, dead_letters: DeadLetterTarget | None) -> RowTarget:
        """Return where the rows go. layout: of a new table. Raises OptionError."""
        return RowTarget(
            table=table,
            layout=layout,
            dead_letters=dead_letters,
            changes=self.changes,
            key=self.merge_key,
            order_by=self.order_by,
            records=self.records,
        )

    def table_schema(self, *, has_dead_letters: bool) -> pa.Schema:
        """Return the columns of a new table. Raises OptionError."""
        schema = unwrapped_schema(self.schema()) if has_dead_letters else self.schema()
        return schema if self.changes is None else self.changes.schema(schema)


def append_logs(
    table: LakeTable,
    logs: Sequence[ReadableLog],
    *,
    layout: Layout,
    rows: RowOptions | None = None,
    fill: bool = False,
    chosen: Chosen | None = None,
    commit_bytes: int = COMMIT_BYTES,
    dead_letters: DeadLetterTarget | None = None,
) -> Iterator[Appended]:
    """Append the records of logs; return a row for each partition as it is done.

    rows: what records become. fill: also append what the table lacks before its first offset and in its holes, with a
    row for each. chosen: append these offsets, as far as the table lacks them, and no others, with a row for each
    range; or replace their rows, in one commit for each range.
    commit_bytes: approximate size of the records in a commit. dead_letters: a table or topic for records that cannot be
    decoded, by a decoding that is_wrapped, or stored.
    A topic whose id cannot be compared with the table's is named in a warning of the logger kwire.lake.
    Raises LogError, CorruptBatch, BrokerError, ConnectionFailed for the logs; DecodeError, RegistryError for values;
    TableError, OptionError for the table. Partitions before the one with an error are then in the table.
    """
    rows = rows or RowOptions()
    if commit_bytes < 1:
        raise OptionError(f"commit_bytes {commit_bytes}: expected 1 or more")
    replaces = chosen is not None and chosen.replace
    if chosen is not None and rows.merge_key:
        raise OptionError("rows of chosen offsets would replace later ones by key; append new offsets only")
    if chosen is not None and rows.records is not None:
        raise OptionError("chosen offsets cannot be written to tables by record type; append what is missing (fill)")
    if replaces and (rows.skip_missing or rows.changes is not None or dead_letters is not None):
        raise OptionError(
            "rows cannot be replaced with skip_missing, which would delete some, nor with changes or dead_letters"
        )
    if chosen is not None and fill:
        raise OptionError("fill and chosen offsets exclude each other: both say what to append")
    limit = min(commit_bytes, MERGED_BYTES) if rows.merge_key else commit_bytes
    target = rows.target(table, layout, dead_letters)
    schema = rows.table_schema(has_dead_letters=dead_letters is not None)
    appender = _Appender(table, target, schema, rows, limit)
    waiting, keys, warned = list[_New](), set[TopicPartition](), set[str]()
    has_new = False
    table.refresh()
    target.recover()
    for log in logs:
        if (log.topic, log.partition) in keys:  # another log of a partition that waits: it continues after that one
            yield from appender.append(waiting)
            waiting, keys = [], set()
        keys.add((log.topic, log.partition))
        try:
            if not waiting:
                table.refresh()
                target.check_layout()
            if chosen is None:
                missing = missing_offsets(
                    table, log, rows.isolation, fill=fill, merge_key=rows.merge_key, warned=warned
                )
            else:
                missing = _chosen_offsets(table, log, rows.isolation, chosen, warned)
        except KwireError:
            yield from appender.append(waiting)
            raise
        for each in missing:
            new = _New(log=log, start=each.start, end=each.end, lost=each.problem, replaces=replaces)
            if waiting and sum(map(len, waiting)) + len(new) > SHARED_OFFSETS:
                yield from appender.append(waiting)
                waiting = []
            waiting.append(new)
            has_new = has_new or len(new) > 0
    if chosen is not None and waiting and not has_new:
        raise nothing_to_append(table.name, chosen)
    yield from appender.append(waiting)


@dataclass(slots=True)
class ReadNotes:
    """Offsets and timestamps that read_offsets could not read from a range.

    lost: what retention has deleted meanwhile. skipped: offsets without a segment. The table still lacks both.
    null_timestamps: made when the first one is met, since the driver of a Spark job has no use for pyarrow.
    """

    lost: list[tuple[int, int]] = field(default_factory=list)
    skipped: list[tuple[int, int]] = field(default_factory=list)
    null_timestamps: NullTimestamps | None = None

    def of_null_timestamps(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return batches, and count their timestamps that are null."""
        from kwire.log.reading.arrow import NullTimestamps

        counted = self.null_timestamps = self.null_timestamps or NullTimestamps()
        for batch in batches:
            counted.add(batch)
            yield batch

    @property
    def lacking(self) -> Ranges:
        """Offsets that the table still lacks."""
        return union(tuple(self.lost + self.skipped))

    @property
    def problems(self) -> list[str]:
        """Texts for a report, one for each problem."""
        problems = [_lost(*each) for each in self.lost]
        if self.skipped:
            problems.append(f"skipped offsets {text_of(union(tuple(self.skipped)))}, which are in no segment")
        if self.null_timestamps is not None and self.null_timestamps.problem is not None:
            problems.append(self.null_timestamps.problem)
        return problems


@dataclass(slots=True, kw_only=True)
class _New:
    """The offsets [start, end) of a log that a table does not have.

    rows: read so far. dead: of them those that are dead letters. lost: a problem. replaces: rows that the
    table has. notes: of reading them.
    """

    log: ReadableLog
    start: int
    end: int
    lost: str | None
    replaces: bool = False
    rows: int = 0
    dead: int = 0
    notes: ReadNotes = field(default_factory=ReadNotes)

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def key(self) -> TopicPartition:
        """The partition."""
        return self.log.topic, self.log.partition

    def done(self, start: int, end: int) -> Ranges:
        """Return the offsets of [start, end) that the table has after they were read."""
        return subtract(((start, end),), self.notes.lacking)

    def appended(self) -> Appended:
        """Return the result."""
        problems = [self.lost, *self.notes.problems] if self.lost else self.notes.problems
        return Appended(
            topic=self.log.topic,
            partition=self.log.partition,
            start_offset=self.start,
            end_offset=self.end,
            rows=self.rows - self.dead,
            problem="; ".join(problems) or None,
            dead_letters=self.dead,
        )


@dataclass(frozen=True, slots=True)
class _Appender:
    """Appends to a target, as append_logs says. table: that has the offsets. schema: of the target's rows."""

    table: LakeTable
    target: RowTarget
    schema: pa.Schema
    rows: RowOptions
    commit_bytes: int

    def append(self, parts: Sequence[_New]) -> Iterator[Appended]:
        """Append partitions, in one commit if possible."""
        is_shared = sum(len(new) > 0 for new in parts) > 1 and not any(new.replaces for new in parts)
        is_done = is_shared and self._append_together(parts)
        for new in parts:
            if new.replaces:
                self._replace(new)
            elif not is_done:
                self._append(new)
            yield new.appended()

    def _append_together(self, parts: Sequence[_New]) -> bool:
        """Return False, with nothing appended, if that is too much, or if a log or value has an error."""
        plan = self.target.prepare(self.schema)
        limit = min(SHARED_BYTES, self.commit_bytes)
        limited = _Limited((batch for new in parts for batch in self._read(new, new.start)), limit)
        try:
            written = plan.write(limited)
        except TableError:
            raise
        except KwireError:
            is_whole = False
        else:
            is_whole = not limited.is_cut
            if not is_whole:
                self.target.discard([written], plan)
        if not is_whole:
            for new in parts:
                new.rows, new.notes = 0, ReadNotes()
            return False
        for new in parts:
            new.dead = written.dead_rows.get(new.key, 0)
            new.rows -= written.known_rows.get(new.key, 0)
        spans = Spans()
        for new in parts:
            if done := new.done(new.start, new.end) if len(new) else ():
                spans[new.key] = union(spans.get(new.key, ()), done)
        if spans:
            topic_ids = topic_ids_of((new.log for new in parts if new.key in spans), self.table.name)
            self.target.commit([written], self._change(spans, topic_ids), plan)
        return True

    def _append(self, new: _New) -> None:
        start = new.start
        while start < new.end:
            plan = self.target.prepare(self.schema)
            limited = _Limited(self._read(new, start), self.commit_bytes)
            rows = new.rows
            written = plan.write(limited)
            until = limited.next_offset if limited.is_cut else new.end
            if done := new.done(start, until):
                topic_ids = topic_ids_of([new.log], self.table.name)
                self.target.commit([written], self._change({new.key: done}, topic_ids), plan)
            new.dead += written.dead_rows.get(new.key, 0)
            new.rows, start = rows + written.rows + sum(written.dead_rows.values()), until

    def _replace(self, new: _New) -> None:
        """Write offsets in place of the rows that the table has there, in one commit."""
        plan = self.table.prepare(self.schema, self.target.layout)
        wanted = ((new.start, new.end),)
        known = self.table.state().spans
        has_rows = bool(self.table.state().rows_of(new.key))
        removed = files_with(self.table, new.key, wanted) if has_rows else []
        kept = rows_without(self.table, removed, new.key, wanted)
        written = write_files(chain(kept, self._read(new, new.start)), plan)
        if new.notes.lost:  # a commit would remove rows that there is nothing in place of
            self.table.discard(written.files, plan)
            raise LogError(f"{new.notes.problems[0]}, so no rows were replaced", new.log.url)
        self.table.commit(
            written.files,
            Change(
                id=uuid.uuid4().hex,
                spans={new.key: wanted},
                known=known,
                topic_ids=topic_ids_of([new.log], self.table.name),
                removed=removed,
            ),
            plan,
        )

    def _change(self, spans: Spans, topic_ids: Mapping[str, str]) -> Change:
        merged = spans if self.rows.merge_key and not self.rows.order_by else Spans()
        return Change(id=uuid.uuid4().hex, spans=spans, known={}, merged=merged, topic_ids=topic_ids)

    def _read(self, new: _New, start: int) -> Iterator[pa.RecordBatch]:
        if start < new.end:
            for batch in read_offsets(new.log, (start, new.end), self.rows, new.notes):
                new.rows += len(batch)
                yield batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Offsets [start, end) of a log that a table does not have. problem: others that it will not get, and why."""

    start: int
    end: int
    problem: str | None = None


def _chosen_offsets(
    table: LakeTable, log: ReadableLog, isolation: str, chosen: Chosen, warned: set[str]
) -> list[Missing]:
    """Return the chosen offsets of a log that are to be written. Raises OptionError, TableError."""
    key = log.topic, log.partition
    wanted = union(chosen.offsets.get(key, ()))
    check_merge_key(table.state(), (), table.name)
    _check_topic(table.state(), log, table.name, warned)
    end = log.last_stable_offset if isolation == "read_committed" else log.log_end_offset
    check_chosen(key, wanted, log.log_start_offset, end)
    left, problem = (wanted, None) if chosen.replace or not wanted else offsets_to_append(table, key, wanted)
    problems = [problem] if problem else []
    if holes := holes_made(table, key, wanted):
        problems.append(f"the table lacks offsets {text_of(holes)} now; append them with --fill (fill=True)")
    text = "; ".join(problems) or None
    if wanted and not left:  # an interrupted run has appended them, and continues with other partitions
        return [Missing(start=wanted[-1][1], end=wanted[-1][1], problem=text)]
    return [Missing(start=start, end=until, problem=text) for start, until in left]


def missing_offsets(
    table: LakeTable,
    log: ReadableLog,
    isolation: str,
    *,
    fill: bool = False,
    merge_key: Sequence[str] = (),
    warned: set[str] | None = None,
) -> list[Missing]:
    """Return the offsets of a log that a table, as of its last refresh, does not have: those after the table's end.

    fill: before them those of holes, and those before the table's first one. merge_key: of the rows to come. warned:
    topics that a warning has named, since their ids are not known; those of this call are added. Raises TableError for
    a log of another topic than the table's, for one that ends before the table's offset, for a hole of a table that is
    merged by key, and for such a table without a key.
    """
    state = table.state()
    check_merge_key(state, merge_key, table.name)
    _check_topic(state, log, table.name, set() if warned is None else warned)
    end = log.last_stable_offset if isolation == "read_committed" else log.log_end_offset
    first = log.log_start_offset
    ranges, rows = state.spans.get((log.topic, log.partition), ()), state.rows_of((log.topic, log.partition))
    if rows and rows[-1][1] > end and not log.is_one_segment:
        raise TableError(
            f"{log.topic}-{log.partition} ends at offset {end}, before the table's offset {rows[-1][1]}; this is "
            "another log than the one that was appended",
            table.name,
        )
    if not ranges:  # whatever the log has
        return [Missing(start=first, end=max(first, end))]
    known = ranges[-1][1]
    holes, problems = holes_of(ranges), []
    if fill or log.is_one_segment:  # a table may begin where its first query did: not a hole of other logs
        holes = union(((first, ranges[0][0]),), holes)
    left = intersection(holes, ((first, end),))
    if log.is_one_segment:
        holes = left
    without_rows = subtract(holes, state.rows_only.get((log.topic, log.partition), ()))
    if without_rows and fill and merge_key:
        raise TableError(
            f"{log.topic}-{log.partition}: the table lacks offsets {text_of(without_rows)}; {WRITE_AGAIN}", table.name
        )
    if left and not fill:
        remedy = WRITE_AGAIN if merge_key and without_rows else "append them with --fill (fill=True)"
        problems.append(f"the table lacks offsets {text_of(left)}; {remedy}")
    if known < first:
        problems.append(_before_segment(known, first) if log.is_one_segment else _lost(known, first))
    missing = []
    for start, until in holes if fill else ():
        lost = _lost(start, min(first, until)) if start < first else None
        missing.append(Missing(start=min(max(start, first), until), end=until, problem=lost))
    start = max(known, first)
    return [*missing, Missing(start=start, end=max(start, end), problem="; ".join(problems) or None)]


def topic_ids_of(logs: Iterable[ReadableLog], table: str) -> dict[str, str]:
    """Return the ids of the topics of logs, as far as they have some. Raises LogError, and TableError for two."""
    topic_ids: dict[str, str] = {}
    for log in logs:
        if log.topic_id is not None:
            topic_id = render_uuid(log.topic_id)
            if topic_ids.setdefault(log.topic, topic_id) != topic_id:
                raise TableError(
                    f"the logs of topic '{log.topic}' have two topic ids, {topic_ids[log.topic]} and {topic_id}: they "
                    "are of two topics of that name; append the partitions of one of them, as with --partition",
                    table,
                )
    return topic_ids


def _check_topic(state: TableState, log: ReadableLog, table: str, warned: set[str]) -> None:
    """Raise TableError if a log is of another topic than a table's offsets; warn if that cannot be found out."""
    topic_ids = topic_ids_of([log], table)
    check_topic_ids(state, topic_ids, table)
    is_known = topic_ids and log.topic in state.topic_ids
    if is_known or (log.topic, log.partition) not in state.spans or log.topic in warned:
        return
    warned.add(log.topic)
    if topic_ids:
        logger.warning(
            "table %s: it has offsets of topic '%s' without a topic id; they are taken for those of id %s",
            *(table, log.topic, topic_ids[log.topic]),
        )
    else:
        logger.warning(
            "table %s: the log of topic '%s' has no topic id (partition.metadata), which would tell it from a topic "
            "that was deleted and created again",
            *(table, log.topic),
        )


def read_offsets(
    log: ReadableLog, offsets: tuple[int, int], rows: RowOptions, notes: ReadNotes
) -> Iterator[pa.RecordBatch]:
    """Yield the records at offsets [start, end) as rows, before their changes. notes: receives what they are not.

    Raises LogError for a log that is shorter than that, and the errors of logs and values.
    """
    from kwire.log.reading.arrow import read_pinned

    start, end = offsets
    pinned = log.pin(start, end, rows.isolation)
    if pinned.end_offset < end:
        raise LogError(
            f"the log ends at offset {pinned.end_offset}; it had offset {end - 1} when the run began", log.url
        )
    if pinned.start_offset > start:
        notes.lost.append((start, min(pinned.start_offset, end)))
    read = read_pinned(pinned, rows.read_columns(), skip_missing=rows.skip_missing, skipped=notes.skipped)
    batches = notes.of_null_timestamps(read)
    yield from batches if rows.decoding is None else rows.decoding.decode(batches)


def _lost(start: int, end: int) -> str:
    return f"retention deleted offsets {start} to {end - 1} before they were appended"


def _before_segment(start: int, end: int) -> str:
    return (
        f"offsets {start} to {end - 1} are not in this segment file; the table lacks them until --fill (fill=True) "
        "appends them from others or from the partition's directory"
    )


class _Limited:
    """Batches up to a size. is_cut: whether there are more, from next_offset on."""

    def __init__(self, batches: Iterable[pa.RecordBatch], max_bytes: int) -> None:
        self._batches, self._max_bytes = batches, max_bytes
        self.is_cut, self.next_offset = False, 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        size = 0
        for batch in self._batches:
            if size >= self._max_bytes:
                self.is_cut = True
                return
            if len(batch):
                self.next_offset = batch.column("offset")[-1].as_py() + 1
            size += batch.nbytes
            yield batch
