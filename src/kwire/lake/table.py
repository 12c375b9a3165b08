"""Interface of all formats: a table that is created, evolved, written to and cleaned.

    driver      table.prepare(schema) -> FilePlan          creates or evolves the table
    tasks       write_files(batches, plan) -> TaskFiles    no catalog is asked
    driver      table.commit(files, change)                once for each Mark; concurrent writers are retried

A commit that was made before commits nothing, and its files are deleted. Files of tasks whose commit never came are
orphans: find_orphans() and delete_orphans().
"""

from __future__ import annotations

import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from kwire.errors import OptionError, TableError, did_you_mean
from kwire.lake.arrow_columns import OP
from kwire.lake.data_files import FilePlan, WrittenFile
from kwire.lake.live_files import LiveFile
from kwire.lake.metrics import CommitCounts
from kwire.lake.offset_ranges import Spans, intersection, subtract, text_of
from kwire.lake.state import MAX_HOLES, OLD_CHECKPOINT, WRITE_AGAIN, Change, Mark, TableState

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "INDEX",
    "RECORD",
    "CommitConflict",
    "CommitRefused",
    "LakeTable",
    "Layout",
    "LoadedTable",
    "Orphan",
    "check_kept",
    "check_key",
    "check_merge_key",
    "check_order",
    "check_topic_ids",
    "sort_term",
    "unknown_column",
    "without_order",
]

RECORD = "kwire.record"
"""Property of a table by record type: the type's name, INDEX for the index of the tables."""
INDEX = "*"
ATTEMPTS = 12
FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 5.0

logger = logging.getLogger("kwire.lake")


class CommitRefused(TableError):
    """A commit that was not made, and will not be: the catalog refused it."""


class CommitConflict(Exception):
    """A commit failed because of a concurrent one. Never leaves this package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a table is created. An existing table keeps its own, and another one for it is refused, see check_layout.

    partition_by: columns and transforms, such as `days(timestamp)`. sort_by: columns, with a trailing ` desc` for the
    other order. properties: of the table.
    """

    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A file of a table's directory that no commit refers to."""

    path: str
    size_bytes: int
    modified_ms: int


class LakeTable(ABC):
    """A table; a context manager that closes it. name: its identifier or URL, for people."""

    name: str
    _counts: CommitCounts | None = None

    @property
    def counts(self) -> CommitCounts:
        """What commit() has committed through this object."""
        self._counts = self._counts or CommitCounts()
        return self._counts

    def close(self) -> None:  # noqa: B027 (Delta tables have no catalog)
        """Close the connections of its catalog. A table that is used again opens them anew."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    @abstractmethod
    def exists(self) -> bool:
        """Whether the table existed at the last refresh."""

    @property
    @abstractmethod
    def id(self) -> str | None:
        """Id that tells the table from others of its name, as of the last refresh; None if it does not exist."""

    @property
    @abstractmethod
    def properties(self) -> Mapping[str, str]:
        """The table's properties as of the last refresh; empty if it does not exist."""

    @abstractmethod
    def prepare(self, schema: pa.Schema, layout: Layout, *, key: Sequence[str] = ()) -> FilePlan:
        """Create the table or add what is new in the schema of rows; return how tasks write them.

        key: columns that rows are merged by; files are then read by merge() and are not part of the table.
        Raises TableError for types that do not fit and for another layout than the table's; OptionError for one that
        the format does not have.
        """

    @abstractmethod
    def check_layout(self, layout: Layout) -> None:
        """Raise TableError if the table, as of the last refresh, is divided or sorted otherwise than a layout says.

        A layout may leave either out.
        """

    @abstractmethod
    def state(self) -> TableState:
        """Return the offsets and micro-batches in the table as of the last refresh; empty if it does not exist."""

    def last_batch(self, query: str) -> int | None:
        """Return the last micro-batch of a query in the table."""
        return self.state().batches.get(query)

    @abstractmethod
    def refresh(self) -> None:
        """Load the table's current metadata. Raises TableError."""

    def refresh_known(self) -> None:
        """Load the current metadata of the same table as before, if there was one.

        Raises TableError if that was removed. Created again, it would have rows from the middle of a source.
        """
        known = self.id
        self.refresh()
        if known not in (None, self.id):
            raise self._removed()

    def _removed(self) -> TableError:
        return TableError("it was removed or replaced by another program while rows were written; run again", self.name)

    def check_record(self, layout: Layout) -> None:
        """Raise TableError if the table is by record type and the layout is not, or is of another type."""
        wanted, found = layout.properties.get(RECORD), self.properties.get(RECORD)
        if wanted == found:
            return
        remedy = "write with tableBy=record (--table-by record)" if wanted is None else "rename it"
        raise TableError(
            f"it exists and is {_division(found)} (property {RECORD}), and the rows are for {_division(wanted)}; "
            f"{remedy}, or choose another name",
            self.name,
        )

    @abstractmethod
    def has_commit(self, change: Change) -> bool:
        """Return whether a commit with this id is in the table; looks at recent ones."""

    @abstractmethod
    def add(self, files: Sequence[WrittenFile], change: Change, plan: FilePlan) -> None:
        """Commit files, once and without looking. Raises CommitConflict, TableError."""

    @abstractmethod
    def merge(self, rows: pa.Table, key: Sequence[str], deleted: pa.Table, change: Change, plan: FilePlan) -> None:
        """Replace or insert rows by key, and delete the keys of `deleted`. Raises CommitConflict, TableError."""

    @abstractmethod
    def read_staged(self, files: Sequence[WrittenFile], plan: FilePlan) -> Iterator[pa.Table]:
        """Return the rows of files that are not committed, file by file."""

    @abstractmethod
    def plan(self) -> FilePlan:
        """Return how tasks write files of the table as of the last refresh, without a change of it.

        Raises TableError for a table that kwire does not write.
        """

    @abstractmethod
    def live_files(self, wanted: Spans | None = None) -> list[LiveFile]:
        """Return the data files of the table as of the last refresh. wanted: only those that may have such offsets.

        Raises TableError for a table whose files this library cannot read.
        """

    @abstractmethod
    def read_live(self, files: Sequence[LiveFile], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Return the rows of data files that are not deleted, with the table's columns or some of them."""

    @abstractmethod
    def find_orphans(self, older_than_s: float) -> list[Orphan]:
        """Return files without a commit that have not changed for this time. Raises TableError."""

    @abstractmethod
    def delete_orphans(self, orphans: Sequence[Orphan]) -> None:
        """Delete orphans. Raises TableError."""

    @abstractmethod
    def expire(self, older_than_s: float, *, dry_run: bool = False) -> list[str]:
        """Delete files that only snapshots or versions need that are older; return them. dry_run: only return them.

        The table's offsets and micro-batches stay. Raises TableError.
        """

    def commit(
        self,
        files: Sequence[WrittenFile],
        change: Change,
        plan: FilePlan,
        *,
        key: Sequence[str] = (),
        order_by: Sequence[str] = (),
    ) -> bool:
        """Commit the files of all tasks; return False if it was done before.

        key: columns to merge by. order_by: with a key, columns that order its rows, instead of offsets.
        Raises TableError. The files are then deleted if the catalog refused the commit or could not be asked before it.
        They stay after a failure such as a timeout: the commit may have succeeded, or still succeed.
        """
        if files and not change.same_rows:
            change = replace(change, merge_key=tuple(key), order_by=tuple(order_by))
        wait_s = FIRST_WAIT_S
        latest: tuple[pa.Table, pa.Table] | None = None
        for attempt in range(ATTEMPTS):
            try:
                self.refresh()
            except TableError:
                if not attempt:
                    self.discard(files, plan)
                raise
            if attempt and self.has_commit(change):  # its response was lost
                break
            if self.id != plan.table_id:
                self.discard(files, plan)
                raise self._removed()
            if change.mark is not None and change.mark.is_done(self.last_batch(change.mark.query), self.name):
                self.discard(files, plan)
                self._check_repeated(change, change.mark)
                return False
            if change.is_repeated:
                raise TableError("it has gone back to before this batch while that ran; run again", self.name)
            self._check(files, change, plan)
            try:
                if key and files:
                    latest = latest or self._latest(files, plan, key, order_by)
                    rows = self._without_older(latest[0], key, order_by) if order_by else latest[0]
                    self.merge(rows, key, latest[1], change, plan)
                else:
                    self.add(files, change, plan)
                break
            except CommitConflict as conflict:
                self.counts.retries += 1
                logger.info("table %s: %s; attempt %d of %d", self.name, conflict, attempt + 1, ATTEMPTS)
                time.sleep(wait_s * random.uniform(0.5, 1.5))
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)
            except TableError as error:
                if isinstance(error, CommitRefused):
                    self.discard(files, plan)
                    raise
                if not self._has_commit_after(error, change):
                    raise
                break
        else:
            raise TableError(f"other writers have committed first {ATTEMPTS} times; try again", self.name)
        self.counts.commits += 1
        self.counts.files += len(files)
        self.counts.rows += sum(each.rows for each in files)
        self.counts.size_bytes += sum(each.size_bytes for each in files)
        if key:  # they were read and merged
            self.discard(files, plan)
        return True

    def _has_commit_after(self, error: TableError, change: Change) -> bool:
        """Return whether a commit whose request failed is in the table. Raises the error if that cannot be found."""
        try:
            self.refresh()
        except TableError as second:
            raise error from second
        return self.has_commit(change)

    def discard(self, files: Sequence[WrittenFile], plan: FilePlan) -> None:
        """Delete files that are not committed; what cannot be deleted stays an orphan."""
        for each in files:
            try:
                plan.delete(each.path)
            except OSError as error:
                logger.warning("table %s: %s stays as an orphan: %s", self.name, each.path, error)

    def _check(self, files: Sequence[WrittenFile], change: Change, plan: FilePlan) -> None:
        """Raise TableError, and delete the files, if rows would be lost, or be in the table twice."""
        state = self.state()
        try:
            goes_on = change.mark is not None and change.mark.query in state.batches  # its source compares ids
            if not change.overwrite and not goes_on:
                check_topic_ids(state, change.topic_ids, self.name)
            self._check_base(state, change)
            self._check_new_offsets(state, change)
            self._check_removed(change)
            if files and not change.overwrite and not change.same_rows:
                self._check_merged(state, change)
            self._check_holes(state, change)
        except TableError:
            self.discard(files, plan)
            raise

    def _check_repeated(self, change: Change, mark: Mark) -> None:
        """Raise TableError for rows of a micro-batch that the table has, at offsets that it lacks; warn if not strict.

        An engine repeats a micro-batch with the same offsets. From a checkpoint that is older than the table it plans
        the batch anew, up to the end that the topic has by then.
        """
        state = self.state()
        for (topic, partition), ranges in change.spans.items():
            new = subtract(ranges, state.rows_of((topic, partition)))
            if not new:
                continue
            what = f"batch {mark.batch} is in the table, without offsets {text_of(new)} of {topic}-{partition}"
            if mark.is_strict:
                raise TableError(f"{what}, which it has now: {OLD_CHECKPOINT}", self.name)
            logger.warning("table %s: %s; they were not written", self.name, what)

    def _check_base(self, state: TableState, change: Change) -> None:
        """Raise TableError if the table has gone back since rows were compared with its offsets."""
        for key, ranges in change.base.items():
            gone = subtract(ranges, state.rows_of(key))
            if gone:
                raise TableError(
                    f"it has gone back to an earlier version while rows were written, without offsets {text_of(gone)} "
                    f"of {key[0]}-{key[1]}; run again",
                    self.name,
                )

    def _check_new_offsets(self, state: TableState, change: Change) -> None:
        """Raise TableError if another writer has committed some of the offsets meanwhile."""
        if change.known is None:
            return
        for (topic, partition), ranges in change.spans.items():
            key = (topic, partition)
            late = intersection(subtract(state.spans.get(key, ()), change.known.get(key, ())), ranges)
            if late:
                raise TableError(
                    f"another writer has appended {topic}-{partition} from offset {late[0][0]} to {late[-1][1]}; run "
                    "again to continue from there",
                    self.name,
                )

    def _check_removed(self, change: Change) -> None:
        """Raise CommitRefused if another writer has changed the files that are to be replaced."""
        live = {each.path: each.deletes for each in self.live_files()} if change.removed else {}
        for each in change.removed:
            if live.get(each.path) != each.deletes:
                what = "deleted rows of" if each.path in live else "removed or rewritten"
                raise CommitRefused(
                    f"another writer has {what} {each.path} meanwhile, so it cannot be replaced; nothing was changed, "
                    "run again",
                    self.name,
                )

    def _check_merged(self, state: TableState, change: Change) -> None:
        """Raise TableError if the rows would replace later rows of a key, or be second ones."""
        check_merge_key(state, change.merge_key or (), self.name)
        check_order(state, change.order_by, self.name)
        for key, ranges in change.merged.items():
            rows, new = state.rows_of(key), subtract(ranges, state.rows_only.get(key, ()))
            if rows and new and new[0][0] < rows[-1][1]:
                raise TableError(
                    f"the rows of {key[0]}-{key[1]} begin at offset {new[0][0]}, before the table's offset "
                    f"{rows[-1][1]}, and would replace later rows by key; start the query at the table's offsets, as "
                    "'kwire lake offsets --format spark' prints them, or write the table again into a new one",
                    self.name,
                )

    def _check_holes(self, state: TableState, change: Change) -> None:
        """Raise TableError if a partition would have more holes than before, and more than the table keeps."""
        before, after = state.holes, state.after(change).holes
        for key in change.spans:
            count = len(after.get(key, ()))
            if count > max(MAX_HOLES, len(before.get(key, ()))):
                remedy = (
                    WRITE_AGAIN if state.merge_key else "append them with 'kwire lake append --fill', and run again"
                )
                raise TableError(
                    f"{key[0]}-{key[1]}: the table would have {count} holes, of offsets that it lacks, and keeps up to "
                    f"{MAX_HOLES}; {remedy}",
                    self.name,
                )

    def _without_older(self, rows: pa.Table, key: Sequence[str], order_by: Sequence[str]) -> pa.Table:
        """Return the rows that are not older than the table's row of their key. Raises TableError."""
        from kwire.lake.latest import without_older

        columns = [*key, *order_by, OP]
        return without_older(rows, self.read_live(self.live_files(), columns), key, order_by)

    def _latest(
        self, files: Sequence[WrittenFile], plan: FilePlan, key: Sequence[str], order_by: Sequence[str]
    ) -> tuple[pa.Table, pa.Table]:
        """Return what to merge. Raises TableError, and deletes the files, for rows that cannot be merged."""
        from kwire.lake.latest import latest_by_key

        try:
            return latest_by_key(self.read_staged(files, plan), key, plan.schema, self.name, order_by=order_by)
        except TableError:
            self.discard(files, plan)
            raise


def _division(record: str | None) -> str:
    if record is None:
        return "a table of other rows"
    return "the index of tables by record type" if record == INDEX else f"the table of record type '{record}'"


Loaded = TypeVar("Loaded")


class LoadedTable(LakeTable, Generic[Loaded]):
    """A table through a library, which has loaded it as an object of its own."""

    _table: Loaded | None = None
    _state: tuple[object, TableState] | None = None  # with what it was read from

    @property
    def table(self) -> Loaded:
        """The library's table as of the last refresh. Raises TableError if it does not exist."""
        if self._table is None:
            self.refresh()
        if self._table is None:
            raise TableError("no such table", self.name)
        return self._table

    @property
    def exists(self) -> bool:
        """Whether the table existed at the last refresh."""
        return self._table is not None

    def state(self) -> TableState:
        """Return the offsets and micro-batches in the table as of the last refresh; empty if it does not exist."""
        if self._table is None:
            return TableState()
        version = self._state_version(self._table)
        if self._state is None or self._state[0] != version:
            self._state = version, self._read_state()
        return self._state[1]

    @abstractmethod
    def _state_version(self, table: Loaded) -> object:
        """Return what is equal for the same state."""

    @abstractmethod
    def _read_state(self) -> TableState:
        """Return the state of a table that exists."""


def check_topic_ids(state: TableState, topic_ids: Mapping[str, str], table: str) -> None:
    """Raise TableError for a topic of another id than the one whose offsets a table has."""
    for topic, topic_id in topic_ids.items():
        known = state.topic_ids.get(topic, topic_id)
        if topic_id != known:
            raise TableError(
                f"topic '{topic}' has id {topic_id}, and the table has offsets of id {known}: the topic was deleted "
                "and created again, or is one of another cluster, and its records have the same offsets as other ones; "
                "append it to another table",
                table,
            )


def check_merge_key(state: TableState, key: Sequence[str], table: str) -> None:
    """Raise TableError for rows that are merged by another key than the table's rows, or only one of them by a key."""
    if state.merge_key is None or set(key) == set(state.merge_key):
        return
    if not state.merge_key:
        raise TableError(
            "rows were appended to it without a key, so it may have several rows of one, which merging "
            f"({', '.join(key)}) would not remove; merge into another table",
            table,
        )
    if key:
        raise TableError(
            f"it has the latest row by key ({', '.join(state.merge_key)}), and merging by ({', '.join(key)}) would "
            "leave other rows of a key; merge by the same columns, or into another table",
            table,
        )
    raise TableError(
        f"it has the latest row by key ({', '.join(state.merge_key)}), and appended rows would be second ones; "
        "merge them by the same columns (--merge-key, merge_key, option mergeKey), or append to another table",
        table,
    )


def check_order(state: TableState, order_by: Sequence[str], table: str) -> None:
    """Raise TableError for rows that are ordered otherwise than those that were merged into a table before."""
    if state.merge_key and tuple(order_by) != state.order_by:
        before, now = (", ".join(names) or "offsets" for names in (state.order_by, order_by))
        raise TableError(
            f"its rows were ordered by {before}, and these are by {now}; set option orderBy as before, or merge into "
            "another table",
            table,
        )


def check_kept(option: str, wanted: Sequence[str], found: Sequence[str], table: str) -> None:
    """Raise TableError if an option of the layout says something else than an existing table has.

    option: partitionBy or sortBy. wanted, found: its terms, in one spelling. The order of those to divide by is free.
    """
    is_partitioning = option == "partitionBy"
    if not wanted or (sorted(wanted) == sorted(found) if is_partitioning else list(wanted) == list(found)):
        return
    verb = "partitioned" if is_partitioning else "sorted"
    has = f"{verb} by {', '.join(found)}" if found else f"not {verb}"
    flag = " (--partition-by, partition_by)" if is_partitioning else ""
    raise TableError(
        f"it exists and is {has}, and option {option}{flag} says {', '.join(wanted)}, which is for a new table; leave "
        "the option out, or choose another table",
        table,
    )


def check_key(key: Sequence[str], schema: pa.Schema) -> None:
    """Raise OptionError unless the columns of a key exist and can be compared."""
    from pyarrow import types

    for name in key:
        if name not in schema.names:
            raise OptionError(f"Option 'mergeKey': unknown column '{name}'; available: {', '.join(schema.names)}")
        if types.is_nested(schema.field(name).type):
            raise OptionError(f"Option 'mergeKey': column '{name}' is nested; merge by one of its fields")


def unknown_column(option: str, name: str, columns: Sequence[str]) -> OptionError:
    """Return the error of an option that names a column that is none of `columns`."""
    available = ", ".join(columns)
    return OptionError(
        f"Option '{option}': unknown column '{name}'{did_you_mean(name, columns)}; available: {available}"
    )


def sort_term(term: str) -> tuple[str, str]:
    """Return the column of a term of Layout.sort_by, and ascending or descending. Raises OptionError."""
    column, _, order = term.strip().partition(" ")
    orders = {"": "ascending", "asc": "ascending", "desc": "descending"}
    if order.strip().lower() not in orders:
        raise OptionError(f"Option 'sortBy': expected a column, with asc or desc after it, got '{term}'")
    return column, orders[order.strip().lower()]


def without_order(column: str, kind: str) -> OptionError:
    """Return the error of sorting by a column of a type that has no order."""
    return OptionError(
        f"Option 'sortBy': column '{column}' is of type {kind}, which has no order; sort by another column"
    )
