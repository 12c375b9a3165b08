"""The files of a task for tables by record type."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from kwire.errors import KwireError, TableError
from kwire.identifiers import TopicPartition
from kwire.lake.arrow_columns import offsets_of, rows_by_partition
from kwire.lake.data_files import BUFFER_BYTES, FilePlan, TaskFiles
from kwire.lake.dead_letters import LetterPlan, LetterWriter, RowWriter, place_of
from kwire.lake.known_offsets import KnownOffsets
from kwire.lake.offset_ranges import Spans, hull_of
from kwire.lake.state import Mark, TableState
from kwire.schemas.record_types import RecordSplitter

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.schemas.record_values import ValueDecoding
    from kwire.schemas.registry import Registry

__all__ = ["RecordFiles", "RecordPlan", "RecordWriter"]

logger = logging.getLogger("kwire.lake")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlan:
    """How tasks write rows of one record type. Picklable. state: of its table. dead: how dead letters are written."""

    record: str
    subject: str
    decoding: ValueDecoding
    plan: FilePlan
    state: TableState
    dead: LetterPlan | None

    def mark(self, mark: Mark | None) -> Mark | None:
        """Return the mark of a commit; None if the table has that micro-batch: its offsets then say what is new."""
        if mark is None or mark.batch <= self.state.batches.get(mark.query, -1):
            return None
        return replace(mark, is_strict=False)

    def known(self, mark: Mark | None) -> Spans:
        """Return the offsets whose rows the table has, not from earlier micro-batches of this query."""
        return self.state.foreign(self._query(mark))

    def known_rows(self, mark: Mark | None) -> Spans:
        """Return other offsets whose rows the table has, and whose dead letters are lost."""
        return self.state.foreign_rows(self._query(mark))

    def _query(self, mark: Mark | None) -> str | None:
        own = self.mark(mark)
        return None if own is None else own.query


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFiles:
    """What a task has written. files: by record type, with their plans. index: of rows without a type.

    spans: offsets of all rows. known_rows: number of rows of partitions that their tables had already.
    """

    files: Mapping[str, tuple[RecordPlan, TaskFiles]] = field(default_factory=dict)
    index: TaskFiles = field(default_factory=TaskFiles)
    spans: Spans = field(default_factory=dict)
    known_rows: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(written.rows for _, written in self.files.values())

    @property
    def dead_rows(self) -> Mapping[TopicPartition, int]:
        """Number of dead letters by partition."""
        counts = Counter[TopicPartition](self.index.dead_rows)
        for _, written in self.files.values():
            counts.update(written.dead_rows)
        return counts

    @property
    def newest_us(self) -> int | None:
        """Highest timestamp of a row."""
        return max((each.newest_us for _, each in self.files.values() if each.newest_us is not None), default=None)


class Plans(Protocol):
    """How tasks write rows of all record types. table: the name of the index. dead: for rows without a type."""

    @property
    def table(self) -> str: ...

    @property
    def registry(self) -> Registry:
        """The registry of the values' schemas."""
        ...

    @property
    def dead(self) -> LetterPlan | None: ...

    @property
    def records(self) -> Mapping[str, RecordPlan]: ...

    def subject_of(self, record: str, topic: str) -> str:
        """Return the subject of a record type of a topic."""
        ...

    def with_table(self, record: str, topic: str, known: Sequence[RecordPlan]) -> RecordPlan | KwireError:
        """Return the plan of a new type of a topic, whose table is created, or why not. known: other new ones."""
        ...


@dataclass(slots=True, kw_only=True)
class _OneTable:
    plan: RecordPlan
    known: KnownOffsets
    decode: Callable[[pa.RecordBatch], pa.RecordBatch]
    rows: RowWriter


class RecordWriter:
    """Divides the rows of a task by record type, decodes them, and writes them to files of their tables."""

    def __init__(self, plans: Plans, mark: Mark | None, task: int) -> None:
        self._plans, self._mark, self._task = plans, mark, task
        self._splitter = RecordSplitter(plans.registry)
        self._tables: dict[str, _OneTable] = {}
        self._unfit: dict[str, str] = {}
        self._others = set[str]()
        self._letters = None if plans.dead is None else LetterWriter(plans.dead, mark, task)
        self._spans = Spans()
        self._known_rows = Counter[TopicPartition]()

    def add(self, batch: pa.RecordBatch) -> None:
        """Write rows, whose values are bytes.

        Raises TableError, also for a row without a type and nowhere to put it; DecodeError, RegistryError, OptionError.
        """
        if not len(batch):
            return
        self._spans = hull_of([self._spans, offsets_of(batch)])
        split = self._splitter.split(batch)
        if split.errors:
            self._bury(batch, split.errors)
        for record, indexes in split.by_record.items():
            rows = batch.take(indexes)
            table = self._table(record, rows)
            if table is None:
                self._bury(rows, dict.fromkeys(range(len(rows)), self._unfit[record]))
                continue
            self._warn_of_subjects(table.plan, rows)
            (new,) = table.known.new_rows([rows])
            if len(new) < len(rows):
                self._known_rows.update(rows_by_partition(rows))
                self._known_rows.subtract(rows_by_partition(new))
            if len(new):
                table.rows.add(table.decode(new))
        while sum(each.rows.size_bytes for each in self._tables.values()) > BUFFER_BYTES:
            max(self._tables.values(), key=lambda each: each.rows.size_bytes).rows.flush()

    def _table(self, record: str, rows: pa.RecordBatch) -> _OneTable | None:
        """Return the table of rows; None without one, and somewhere else to put them. Raises the reason otherwise."""
        if record in self._unfit:
            return None
        if record not in self._tables:
            plan: RecordPlan | KwireError | None = self._plans.records.get(record)
            if plan is None:
                topic = str(rows.column("topic")[0].as_py())
                plan = self._plans.with_table(record, topic, [each.plan for each in self._tables.values()])
            if isinstance(plan, KwireError):
                if self._letters is None:
                    raise plan
                self._unfit[record] = str(plan)
                return None
            known = KnownOffsets(known=plan.known(self._mark), mode="skip", table=plan.plan.table)
            rows = RowWriter(plan.plan, plan.dead, mark=self._mark, known=plan.known_rows(self._mark), task=self._task)
            self._tables[record] = _OneTable(plan=plan, known=known, decode=plan.decoding.decoder(), rows=rows)
        return self._tables[record]

    def _warn_of_subjects(self, plan: RecordPlan, rows: pa.RecordBatch) -> None:
        """Warn of topics whose subject of a record type is another one than that its values are read with."""
        for topic in map(str, rows.column("topic").unique().to_pylist()):
            subject = self._plans.subject_of(plan.record, topic)
            if subject != plan.subject and subject not in self._others:
                self._others.add(subject)
                logger.warning(
                    "table %s: values of topic '%s' are read as subject '%s' has them, without fields that only '%s' "
                    "has; append the topic to other tables to have these",
                    *(plan.plan.table, topic, plan.subject, subject),
                )

    def _bury(self, batch: pa.RecordBatch, errors: Mapping[int, str]) -> None:
        if self._letters is None:
            row = min(errors)
            raise TableError(
                f"{place_of(batch, row)}: {errors[row]}; to go on without such records, name a table or topic for dead "
                "letters",
                self._plans.table,
            )
        self._letters.add_rows(batch, errors, self._plans.table)

    def close(self) -> RecordFiles:
        """Complete the files and return them. Raises TableError."""
        files = {record: (each.plan, each.rows.close()) for record, each in self._tables.items()}
        for _, written in files.values():
            self._known_rows.update(written.known_rows)
        index = TaskFiles()
        if self._letters is not None:
            index = TaskFiles(dead=self._letters.close(), dead_rows=dict(self._letters.counts))
        return RecordFiles(files=files, index=index, spans=self._spans, known_rows=dict(self._known_rows))

    def discard(self) -> None:
        """Delete all files."""
        for each in self._tables.values():
            each.rows.discard()
        if self._letters is not None:
            self._letters.discard()
