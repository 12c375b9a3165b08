"""State of a table's sources: the offsets of each partition, and the micro-batches of each query.

    Iceberg     the summary of a snapshot: kwire.offsets and kwire.batch of this commit, kwire.state of all commits
    Delta Lake  kwire.offsets and kwire.state in the commit's information, and transaction identifiers (txn actions)

Both formats store this in the same commit as the rows, so a table never has one without the other.

A sink sees rows, not what its source has read. Offsets without a row (of transaction markers, compaction or a filter)
therefore look like lost ones. Micro-batches of one query follow each other, so the offsets between two of them are
complete; those before the first one of a query are a hole, until somebody commits them.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kwire.errors import TableError
from kwire.identifiers import TopicPartition
from kwire.lake.live_files import LiveFile
from kwire.lake.offset_ranges import (
    Ranges,
    Spans,
    holes_of,
    intersection,
    parse_spans,
    render_spans,
    subtract,
    union,
)

__all__ = ["MAX_HOLES", "OLD_CHECKPOINT", "WRITE_AGAIN", "Change", "Mark", "TableState"]

MAX_QUERIES = 10_000  # of a table's state; the oldest are forgotten
MAX_HOLES = 100  # of a partition
WRITE_AGAIN = "rows of a hole would replace later ones by key; write the table again into a new one"
OLD_CHECKPOINT = (
    "the checkpoint is older than the table; restore a newer checkpoint, or start with a new one at the table's "
    "offsets, which 'kwire lake offsets --format spark' prints for option startingOffsets"
)
NO_QUERY = ""  # the writer of offsets that no query has committed
NUMBERS = 4  # of the last commits that are kept: several writers may know different ones


def _new_number() -> int:
    """Return a number of a commit: the time and random bits, in 62 bits as a version of Delta Lake."""
    return time.time_ns() // 1_000_000 << 21 | random.getrandbits(21)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Identifies a commit, which is made once.

    query: stable id of the query or application. batch: number, which increases. is_strict: an earlier batch than the
    table's last one is an error, since a checkpoint older than the table would lose rows; otherwise it is skipped.
    """

    query: str
    batch: int
    is_strict: bool = True

    def is_done(self, last: int | None, table: str) -> bool:
        """Return whether a commit was made. last: batch of this query in the table, of that name.

        Raises TableError for a checkpoint that is too old.
        """
        if last is None or last < self.batch:
            return False
        if last > self.batch and self.is_strict:
            raise TableError(
                f"batch {self.batch} precedes batch {last}, which this query has committed: {OLD_CHECKPOINT}", table
            )
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Effect of a commit besides adding files.

    id: unique, to find the commit if its response is lost. spans: offsets that the table has after it. overwrite:
    remove all earlier rows. known: the table's offsets when its rows were compared with them; offsets of `spans` that
    the table has got since are an error. None: they are not compared. merged: offsets of rows that are merged by key,
    below the table's last ones an error: they would replace later rows. topic_ids: of topics of `spans`, where they are
    known. merge_key, order_by: as of TableState, None and () for a commit without rows; set by LakeTable.commit.
    is_exact: offsets between those of `spans` are not complete, also if the query has committed before. removed: files
    that the new ones replace; one that another writer has changed meanwhile is an error. same_rows: the new ones have
    the same rows. lost: offsets that the table has no more; keeps_rows: of which it has the rows, and another table
    lost their dead letters. records: as of TableState, those that change: to higher ones, unless rows are the same.
    number_of: the name of the number of this commit among them. base: offsets whose rows the table had when others were
    compared with them; is_repeated: so it had the batch of `mark`, and nothing was written. Without them at the commit,
    it has gone back, which is an error.
    """

    id: str
    mark: Mark | None = None
    spans: Spans = field(default_factory=dict)
    overwrite: bool = False
    known: Spans | None = None
    merged: Spans = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    merge_key: tuple[str, ...] | None = None
    order_by: tuple[str, ...] = ()
    is_exact: bool = False
    removed: Sequence[LiveFile] = ()
    same_rows: bool = False
    lost: Spans = field(default_factory=dict)
    keeps_rows: bool = False
    records: Mapping[str, int] = field(default_factory=dict)
    number_of: str | None = None
    base: Spans = field(default_factory=dict)
    is_repeated: bool = False
    number: int = field(default_factory=_new_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """Offsets and micro-batches that a table has.

    batches: the last one by query, the most recent query last. writers: the query that has committed a partition's last
    offset, NO_QUERY for others. rolled_back: queries whose later batches the table had and has no more, until they
    commit again. merge_key: columns that rows were merged by, () if rows were appended, None before the first row of
    kwire. order_by: columns that order the rows of a key, () if offsets do.
    topic_ids: of the topics that the offsets are of, as Kafka's tools print them, where a log had one. records: numbers
    of commits by name, see kwire.lake.counterparts. rows_only: offsets that are not in `spans`, since the table of dead
    letters has lost theirs, and whose rows the table has.
    """

    spans: Spans = field(default_factory=dict)
    batches: Mapping[str, int] = field(default_factory=dict)
    writers: Mapping[TopicPartition, str] = field(default_factory=dict)
    rolled_back: frozenset[str] = frozenset()
    merge_key: tuple[str, ...] | None = None
    order_by: tuple[str, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    records: Mapping[str, int] = field(default_factory=dict)
    rows_only: Spans = field(default_factory=dict)

    @property
    def holes(self) -> Spans:
        """Offsets that the table lacks between offsets that it has."""
        return {key: holes for key, ranges in self.spans.items() if (holes := holes_of(ranges))}

    def foreign(self, query: str | None) -> Spans:
        """Return the offsets that a query must not commit again.

        It may commit those before its own: rows of a join, for example, come later than others. Without a record of
        writers, a query that the table knows is taken for the one that wrote.
        """
        return self._of_others(self.spans, query)

    def foreign_rows(self, query: str | None) -> Spans:
        """Return the offsets of `rows_only` whose rows a query must not commit again, as of foreign()."""
        return self._of_others(self.rows_only, query)

    def _of_others(self, spans: Spans, query: str | None) -> Spans:
        by_default = query if query in self.batches else None
        return {key: ranges for key, ranges in spans.items() if query is None or query != self._writer(key, by_default)}

    @property
    def rows(self) -> Spans:
        """The offsets whose rows the table has."""
        return {key: self.rows_of(key) for key in {*self.spans, *self.rows_only}}

    def rows_of(self, key: TopicPartition) -> Ranges:
        """Return the offsets of a partition whose rows the table has."""
        return union(self.spans.get(key, ()), self.rows_only.get(key, ()))

    def numbers_of(self, name: str) -> tuple[int, ...]:
        """Return the numbers of the last commits of a name, the newest first; 0 for those that there are none of."""
        return tuple(self.records.get(each, 0) for each in _number_names(name))

    def _writer(self, key: TopicPartition, default: str | None) -> str | None:
        return self.writers.get(key, default)

    def after(self, change: Change) -> TableState:
        """Return the state after a commit."""
        batches, query = dict(self.batches), NO_QUERY
        if change.mark is not None:
            query = change.mark.query
            batches.pop(query, None)
            batches[query] = change.mark.batch
        spans: Spans = {} if change.overwrite else dict(self.spans)
        writers = {} if change.overwrite else dict(self.writers)
        rows_only: Spans = {} if change.overwrite else dict(self.rows_only)
        own = query if query in self.batches else None
        for key, ranges in change.spans.items():
            before, kept = spans.get(key, ()), rows_only.get(key, ())
            rows = union(before, kept)
            follows = query in self.batches and query not in self.rolled_back
            if follows and not change.is_exact:  # its batches follow each other
                ranges = union(ranges, tuple((_end_before(rows, start), start) for start, _ in ranges))
            if change.mark is not None and self._writer(key, own) == query:  # continues, and does not read them again
                ranges = subtract(ranges, kept)
            spans[key], rows_only[key] = union(before, ranges), subtract(kept, ranges)
            if not rows or union(rows, ranges)[-1][1] > rows[-1][1]:
                writers[key] = query
        for key, ranges in change.lost.items():
            if change.keeps_rows:
                rows_only[key] = union(rows_only.get(key, ()), intersection(spans.get(key, ()), ranges))
            spans[key] = subtract(spans.get(key, ()), ranges)
        spans, rows_only = ({key: ranges for key, ranges in each.items() if ranges} for each in (spans, rows_only))
        rolled_back = self.rolled_back - {query}
        if change.lost and not change.keeps_rows:  # an engine may repeat the batches that had them
            rolled_back, batches = rolled_back | batches.keys(), {}
        records = dict(self.records)
        for name, number in change.records.items():  # of two writers, the slower one may know an earlier commit
            records[name] = number if change.same_rows else max(number, records.get(name, 0))
        if change.number_of is not None:
            numbers = (change.number, *self.numbers_of(change.number_of))
            records |= zip(_number_names(change.number_of), numbers, strict=False)
        keeps_key = change.merge_key is None and not change.overwrite
        return TableState(
            spans=spans,
            batches=dict(list(batches.items())[-MAX_QUERIES:]),
            writers={key: writer for key, writer in writers.items() if key in spans or key in rows_only},
            rolled_back=rolled_back,
            topic_ids={**({} if change.overwrite else self.topic_ids), **change.topic_ids},
            merge_key=self.merge_key if keeps_key else change.merge_key,
            order_by=self.order_by if keeps_key else change.order_by,
            records=records,
            rows_only=rows_only,
        )

    def without_later(self, later: Mapping[str, int]) -> TableState:
        """Return the state of a table that has gone back. later: the last batches that it had before."""
        gone = {query for query, batch in later.items() if batch > self.batches.get(query, -1)}
        return replace(self, rolled_back=self.rolled_back | gone)

    def render(self) -> str:
        """Return the state as JSON."""
        writers: dict[str, dict[str, list[int]]] = {}
        for (topic, partition), query in sorted(self.writers.items()):
            writers.setdefault(query, {}).setdefault(topic, []).append(partition)
        state = {"offsets": json.loads(render_spans(self.spans)), "batches": dict(self.batches), "writers": writers}
        if self.merge_key is not None:
            state["mergeKey"] = self.merge_key
        if self.order_by:
            state["orderBy"] = self.order_by
        if self.topic_ids:
            state["topicIds"] = dict(self.topic_ids)
        if self.rolled_back:
            state["rolledBack"] = sorted(self.rolled_back)
        if self.records:
            state["records"] = dict(self.records)
        if self.rows_only:
            state["rowsOnly"] = json.loads(render_spans(self.rows_only))
        return json.dumps(state, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str, table: str) -> TableState:
        """Parse render()'s JSON. Raises TableError."""
        try:
            document = json.loads(text)
            batches = {str(query): int(batch) for query, batch in document["batches"].items()}
            writers = {
                (str(topic), int(partition)): str(query)
                for query, topics in document["writers"].items()
                for topic, partitions in topics.items()
                for partition in partitions
            }
            spans = parse_spans(json.dumps(document["offsets"]), table)
            merge_key = document.get("mergeKey")
            topic_ids = {str(topic): str(topic_id) for topic, topic_id in document.get("topicIds", {}).items()}
            return cls(
                spans=spans,
                batches=batches,
                writers=writers,
                rolled_back=frozenset(str(query) for query in document.get("rolledBack", ())),
                merge_key=None if merge_key is None else tuple(str(name) for name in merge_key),
                order_by=tuple(str(name) for name in document.get("orderBy", ())),
                topic_ids=topic_ids,
                records={str(record): int(number) for record, number in document.get("records", {}).items()},
                rows_only=parse_spans(json.dumps(document.get("rowsOnly", {})), table),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise TableError(f"kwire.state cannot be read: {text[:100]!r}", table) from None

    def starting_offsets(self) -> str:
        """Return where a new query continues, as option startingOffsets of Spark's Kafka sources has it."""
        by_topic: dict[str, dict[str, int]] = {}
        for (topic, partition), ranges in sorted(self.spans.items()):
            by_topic.setdefault(topic, {})[str(partition)] = ranges[-1][1]
        return json.dumps(by_topic, separators=(",", ":"))


def _number_names(name: str) -> list[str]:
    """Return the names that the numbers of the last commits are stored by, the newest first."""
    return [name, *(f"{name}*{age}" for age in range(1, NUMBERS))]


def _end_before(ranges: tuple[tuple[int, int], ...], start: int) -> int:
    """Return the end of the last range that ends at an offset or before; the offset itself without one."""
    return max((end for _, end in ranges if end <= start), default=start)
