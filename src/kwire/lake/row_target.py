"""Where rows go: a table, or a table for each record type; and dead letters beside them.

driver   RowTarget.prepare()             creates or evolves tables
tasks    plan.write()                    files, without a catalog unless there is a new record type
driver   RowTarget.commit(), discard()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from kwire.errors import OptionError
from kwire.lake.changes import Changes
from kwire.lake.data_files import FilePlan, TaskFiles, write_all
from kwire.lake.dead_letters import (
    DeadLetterPlan,
    DeadLetterTarget,
    LetterPlan,
    RowWriter,
    commit_dead_letters,
    prepare_dead_letters,
    recover_letters,
)
from kwire.lake.offset_ranges import joined
from kwire.lake.record_files import RecordFiles
from kwire.lake.record_tables import HISTORY, RecordPlans, RecordTables
from kwire.lake.state import Change, Mark, TableState
from kwire.lake.table import LakeTable, Layout

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RowTarget", "TablePlan", "TargetPlan", "Written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """How tasks write the rows of one table. Picklable. state: of the table when it was prepared.

    repeats: also rows that the table has.
    """

    plan: FilePlan
    state: TableState
    dead: LetterPlan | None = None
    changes: Changes | None = None
    key: tuple[str, ...] = ()
    repeats: bool = False

    @property
    def table(self) -> str:
        """The table's name."""
        return self.plan.table

    def write(self, batches: Iterable[pa.RecordBatch], *, mark: Mark | None = None, task: int = 0) -> TaskFiles:
        """Write the rows of one task, as kwire.lake.dead_letters.RowWriter."""
        known = {} if self.repeats else self.state.foreign_rows(None if mark is None else mark.query)
        writer = RowWriter(self.plan, self.dead, changes=self.changes, mark=mark, key=self.key, known=known, task=task)
        return write_all(writer, batches)


TargetPlan: TypeAlias = TablePlan | RecordPlans
"""How tasks write rows."""
Written: TypeAlias = TaskFiles | RecordFiles
"""What a task has written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTarget:
    """A table, or with `records` the index of tables by record type. layout: of a new table.

    key: columns to merge by. order_by: columns that order the rows of a key, instead of offsets. repeats: whether rows
    at offsets that the table has are written again.
    """

    table: LakeTable
    layout: Layout
    dead_letters: DeadLetterTarget | None = None
    changes: Changes | None = None
    key: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    records: RecordTables | None = None
    repeats: bool = False

    def __post_init__(self) -> None:
        """Raise OptionError for options that tables by record type do not have."""
        if self.records is not None and (self.key or self.changes is not None):
            raise OptionError(HISTORY)

    def prepare(self, schema: pa.Schema) -> TargetPlan:
        """Create the tables, or add new columns. schema: of a new table; of rows, for tables by record type.

        Raises OptionError, TableError, RegistryError, InvalidSchema.
        """
        if self.records is not None:
            return self.records.prepare(self.table, schema, self.dead_letters)
        plan = self.table.prepare(schema, self.layout, key=self.key)
        dead = None if self.dead_letters is None else prepare_dead_letters(self.dead_letters, self.table, plan)
        return TablePlan(
            plan=plan,
            state=self.table.state(),
            dead=dead,
            changes=self.changes,
            key=self.key,
            repeats=self.repeats,
        )

    def recover(self, *, is_dry_run: bool = False) -> None:
        """Give up the offsets of the table, as of its last refresh, whose rows or dead letters other tables lack.

        For who reads its offsets before prepare(). is_dry_run: only warn of them. Raises TableError.
        """
        if self.records is not None:
            self.records.recover(self.table, self.dead_letters, is_dry_run=is_dry_run)
        elif self.table.exists and isinstance(self.dead_letters, LakeTable):
            self.dead_letters.refresh()
            recover_letters(self.table, self.dead_letters, is_dry_run=is_dry_run)

    def check_layout(self) -> None:
        """Raise TableError if the table has another layout; tables by record type are checked by prepare()."""
        if self.records is None:
            self.table.check_layout(self.layout)

    def commit(self, written: Sequence[Written], change: Change, plan: TargetPlan) -> bool:
        """Commit what tasks have written, dead letters first; return False if it was done before. Raises TableError."""
        if isinstance(plan, RecordPlans):
            assert self.records is not None
            return self.records.commit(self.table, self.dead_letters, _of_records(written), change, plan)
        tasks = _of_one(written)
        change = replace(change, base=joined(change.base, {} if plan.repeats else plan.state.rows_only))
        if self.dead_letters is not None and plan.dead is not None:
            dead = [file for each in tasks for file in each.dead]
            records = commit_dead_letters(self.dead_letters, dead, change, plan.state, plan.dead)
            change = replace(change, records=records)
        files = [file for each in tasks for file in each.files]
        return self.table.commit(files, change, plan.plan, key=self.key, order_by=self.order_by)

    def discard(self, written: Sequence[Written], plan: TargetPlan) -> None:
        """Delete files that are not committed."""
        if isinstance(plan, RecordPlans):
            assert self.records is not None
            self.records.discard(_of_records(written), plan)
            return
        tasks = _of_one(written)
        self.table.discard([file for each in tasks for file in each.files], plan.plan)
        if isinstance(self.dead_letters, LakeTable) and isinstance(plan.dead, DeadLetterPlan):
            self.dead_letters.discard([file for each in tasks for file in each.dead], plan.dead.plan)

    def tables(self, written: Sequence[Written], plan: TargetPlan) -> Iterator[LakeTable]:
        """Return the tables of the rows, one after the other, and the index; those of record types are then closed."""
        yield self.table
        if isinstance(plan, RecordPlans):
            assert self.records is not None
            for record in sorted({*plan.records, *(name for each in _of_records(written) for name in each.files)}):
                with self.records.open(self.records.table_of(record)) as table:
                    yield table


def _of_records(written: Sequence[Written]) -> list[RecordFiles]:
    return [each for each in written if isinstance(each, RecordFiles)]


def _of_one(written: Sequence[Written]) -> list[TaskFiles]:
    return [each for each in written if isinstance(each, TaskFiles)]
