"""A table for each record type of topics whose values have several, and an index of these tables.

    sales.events                            the index: a row for each type, and the offsets that all tables have
    sales.events_com__example__Order        the rows of the type com.example.Order

    driver   RecordTables.prepare()     the index, and the tables of the types that it has
    tasks    RecordPlans.write()        divides rows by type, and creates the table of a new one
    driver   RecordTables.commit()      each table with its files, and the index last

Each table has the micro-batch's mark and the offsets of its commits. If the driver is killed between two of them, the
index lacks the offsets, so they are read again, and tables that have them already skip them.

The index knows these tables, see kwire.lake.counterparts: if one was dropped, or has gone back, it gives up the offsets
that this table lacks, and they are read again. So are those that a table has given up, whose dead letters are lost.

Each of these tables has the property kwire.record, the name of its type. Other tables of that name are not written to.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kwire.errors import InvalidSchema, KwireError, OptionError, TableError
from kwire.lake.counterparts import Counterpart
from kwire.lake.data_files import FilePlan, TaskFiles, write_all, write_files
from kwire.lake.dead_letters import (
    DeadLetterPlan,
    DeadLetterTarget,
    LetterPlan,
    commit_dead_letters,
    give_up_lost_letters,
    prepare_dead_letters,
    recover_letters,
    unwrapped_schema,
)
from kwire.lake.metrics import CommitCounts
from kwire.lake.offset_ranges import Spans, overlap, union
from kwire.lake.record_files import RecordFiles, RecordPlan, RecordWriter
from kwire.lake.state import Change, Mark, TableState
from kwire.lake.table import INDEX, RECORD, LakeTable, Layout
from kwire.schemas.record_types import RecordTypes

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.schemas.choice import SchemaChoice
    from kwire.schemas.record_values import ValueDecoding
    from kwire.schemas.registry import Registry

__all__ = ["HISTORY", "UNFIT", "RecordPlans", "RecordTables", "suffix_of"]

MAX_TABLES = 100
MAX_SUFFIX = 180  # characters; with a table's name below what file systems and catalogs take

logger = logging.getLogger("kwire.lake")

HISTORY = "tables by record type have the history of their type; they cannot be merged by key or have changes"
UNFIT = (OptionError, InvalidSchema)
WORD = re.compile(r"[0-9A-Za-z]")
ESCAPED = re.compile(r"_x[0-9A-F]{4,6}(?![0-9A-Za-z])")  # or what would be one, with the next character escaped


def suffix_of(record: str) -> str:
    """Return a record type's name as part of a table's: ASCII letters, digits and `_`, different for each type.

    A dot becomes `__`. Other characters become `_xHHHH_` with their code in hexadecimal, as in names of XML; so does a
    `_` that would be taken for part of one of these. Raises OptionError for a name that is too long.
    """
    parts = []
    for position, character in enumerate(record):
        neighbours = record[position - 1 : position] if position else "", record[position + 1 : position + 2]
        is_plain = all(WORD.fullmatch(each) for each in neighbours) and not ESCAPED.match(record, position)
        if WORD.fullmatch(character) or (character == "_" and is_plain):
            parts.append(character)
        else:
            parts.append("__" if character == "." else f"_x{ord(character):04X}_")
    suffix = "".join(parts)
    if len(suffix) > MAX_SUFFIX:
        raise OptionError(
            f"record type '{record[:60]}...' has a name of {len(suffix)} characters as part of a table's, the limit is "
            f"{MAX_SUFFIX}"
        )
    return suffix


def index_schema() -> pa.Schema:
    """Return the columns of an index."""
    import pyarrow as pa

    return pa.schema([("record", pa.string()), ("table", pa.string()), ("subject", pa.string())])


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPlans:
    """How tasks write rows of all record types. Picklable. plan, state: of the index. records: by type."""

    tables: RecordTables
    plan: FilePlan
    state: TableState
    dead: LetterPlan | None
    schema: pa.Schema
    records: Mapping[str, RecordPlan]

    @property
    def table(self) -> str:
        """The name of the index."""
        return self.plan.table

    @property
    def registry(self) -> Registry:
        """The registry of the values' schemas."""
        return self.tables.types.registry

    def write(self, batches: Iterable[pa.RecordBatch], *, mark: Mark | None = None, task: int = 0) -> RecordFiles:
        """Write the rows of one task, whose values are bytes. mark: of the micro-batch. task: part of file names.

        Raises TableError, OptionError, RegistryError, DecodeError; all files are then deleted.
        """
        return write_all(RecordWriter(self, mark, task), batches)

    def subject_of(self, record: str, topic: str) -> str:
        """Return the subject of a record type of a topic."""
        return self.tables.types.subject_of(record, topic)

    def with_table(self, record: str, topic: str, known: Sequence[RecordPlan]) -> RecordPlan | KwireError:
        """Return the plan of a new type, whose table is created; or why there can be none of the type.

        topic: that has it. known: other new ones. Raises TableError for too many tables, OptionError, RegistryError.
        """
        subject = self.subject_of(record, topic)
        try:
            decoding = self.tables.decoding(record, subject)
        except UNFIT as error:
            return error
        new = [each.record for each in known if each.record not in self.records]
        self.tables.check([*self.records, *new, record])
        return self.tables.prepare_record(record, subject, decoding, self.schema, self.dead)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTables:
    """The tables of all record types. Picklable.

    name: of the index, which tables' names begin with. open: returns a table by name. layout: of a new table. limit: of
    the number of tables. has_dead_letters: whether there is a target for rows that have no type or cannot be decoded.
    """

    name: str
    open: Callable[[str], LakeTable] = field(repr=False)
    types: RecordTypes
    layout: Layout
    limit: int = MAX_TABLES
    has_dead_letters: bool = False

    @classmethod
    def of(
        cls,
        choice: SchemaChoice,
        name: str,
        open: Callable[[str], LakeTable],
        layout: Layout,
        *,
        limit: int | None,
        has_dead_letters: bool,
    ) -> RecordTables:
        """Open the registry of a choice, and return the tables of its record types. Raises OptionError, RegistryError.

        choice: of schemas, see RecordTypes. name, open, layout, has_dead_letters: as of this class. limit: of the
        number of tables, None for MAX_TABLES.
        """
        return cls(
            name=name,
            open=open,
            types=RecordTypes.of(choice),
            layout=layout,
            limit=MAX_TABLES if limit is None else limit,
            has_dead_letters=has_dead_letters,
        )

    def __post_init__(self) -> None:
        """Raise OptionError for a mode that requires dead letters."""
        if self.types.choice.mode == "deadletter" and not self.has_dead_letters:
            raise OptionError("mode: deadletter requires a table or topic for dead letters, with tables by record type")

    def table_of(self, record: str) -> str:
        """Return the name of a type's table. Raises OptionError for a name that is too long."""
        return f"{self.name.rstrip('/')}_{suffix_of(record)}"

    def decoding(self, record: str, subject: str) -> ValueDecoding:
        """Return how values of a type are decoded.

        Raises UNFIT if there can be no table of the type: its name is too long, or its schema has no Arrow type;
        RegistryError.
        """
        self.table_of(record)
        return self.types.decoding(record, subject, is_wrapped=self.has_dead_letters)

    def check(self, records: Iterable[str]) -> None:
        """Raise TableError for more tables than the limit, and for two that some file systems cannot tell apart."""
        seen: dict[str, str] = {}
        for record in records:
            other = seen.setdefault(self.table_of(record).lower(), record)
            if other != record:
                raise TableError(
                    f"record types '{other}' and '{record}' differ in upper and lower case only, so their tables have "
                    "one name in some catalogs and file systems; rename one of them",
                    self.name,
                )
        if len(seen) > self.limit:
            newest = list(seen.values())[-1]
            raise TableError(
                f"record type '{newest}' would be number {len(seen)}, and the limit is {self.limit} tables; raise it "
                "with option maxTables (--max-tables, max_tables) if the topic has more types",
                self.name,
            )

    def prepare(self, index: LakeTable, schema: pa.Schema, dead_letters: DeadLetterTarget | None) -> RecordPlans:
        """Create the index, and prepare the tables of its types. schema: of rows, whose values are bytes.

        Raises OptionError, TableError, RegistryError, InvalidSchema.
        """
        check_rows(schema)
        plan = index.prepare(index_schema(), Layout(properties={RECORD: INDEX}))
        index.refresh_known()  # a table that was created just now cannot be read yet
        dead = None if dead_letters is None else prepare_dead_letters(dead_letters, index, plan)
        state = index.state()
        subjects = read_index(index)
        self.check(subjects)
        for record, subject in subjects.items():
            if not self.types.is_subject_of(record, subject):
                raise OptionError(
                    f"subject: the index {self.name} has subject '{subject}' for record type '{record}', which "
                    f"'{self.types.subject}' does not give; name the strategy of the tables, or write to others"
                )
        letters = dead_letters if isinstance(dead_letters, LakeTable) else None
        records = {
            record: self.prepare_record(record, subject, self.decoding(record, subject), schema, dead, letters)
            for record, subject in subjects.items()
        }
        state = self._give_up(index, state, {record: each.state for record, each in records.items()}, plan)
        return RecordPlans(tables=self, plan=plan, state=state, dead=dead, schema=schema, records=records)

    def recover(self, index: LakeTable, dead_letters: DeadLetterTarget | None, *, is_dry_run: bool = False) -> None:
        """Give up the offsets of an index, as of its last refresh, whose rows or dead letters a table lacks.

        For who reads the offsets of the index before prepare(). is_dry_run: only warn of them. Raises TableError.
        """
        if index.properties.get(RECORD) != INDEX:  # prepare() refuses others
            return
        letters = dead_letters if isinstance(dead_letters, LakeTable) else None
        if letters is not None:
            letters.refresh()
            recover_letters(index, letters, is_dry_run=is_dry_run)
        states = self._states(index, letters, is_dry_run=is_dry_run)
        if is_dry_run:
            self._others(index.state(), states)
        else:
            self._give_up(index, index.state(), states, index.plan())

    def _states(self, index: LakeTable, letters: LakeTable | None, *, is_dry_run: bool) -> dict[str, TableState]:
        """Return the states of the tables of an index, after they gave up what `letters` lack."""
        states = {}
        for record in read_index(index):
            with self.open(self.table_of(record)) as table:
                table.refresh()
                if letters is not None and table.exists:
                    recover_letters(table, letters, is_dry_run=is_dry_run)
                states[record] = table.state()
        return states

    def _others(self, state: TableState, states: Mapping[str, TableState]) -> tuple[Spans, dict[str, int]]:
        """Return what lost_offsets() finds, with a warning for each table that was dropped or has gone back."""
        lost, others = lost_offsets(state, states)
        for record in others.keys() & lost.keys():
            logger.warning(
                "table %s is not as its index knows it: it was dropped, or has gone back to an earlier version. The "
                "index gives up the offsets that it lacks; 'kwire lake append --fill' appends their rows",
                self.table_of(record),
            )
        keys = {key for spans in lost.values() for key in spans}
        return {key: union(*(spans.get(key, ()) for spans in lost.values())) for key in keys}, others

    def _give_up(
        self, index: LakeTable, state: TableState, states: Mapping[str, TableState], plan: FilePlan
    ) -> TableState:
        """Commit what lost_offsets() finds to an index; return its state then."""
        lost, others = self._others(state, states)
        if not others and not lost:
            return state
        index.commit([], Change(id=uuid.uuid4().hex, lost=lost, records=others, same_rows=True), plan)
        index.refresh_known()
        return index.state()

    def prepare_record(
        self,
        record: str,
        subject: str,
        decoding: ValueDecoding,
        schema: pa.Schema,
        dead: LetterPlan | None,
        letters: LakeTable | None = None,
    ) -> RecordPlan:
        """Create the table of a record type, or add new columns. letters: table of dead letters that it may know.

        Raises OptionError, TableError.
        """
        wanted = decoding.schema_of(schema)
        if self.has_dead_letters:
            wanted = unwrapped_schema(wanted)
        layout = replace(self.layout, properties={**self.layout.properties, RECORD: record})
        with self.open(self.table_of(record)) as table:
            plan = table.prepare(wanted, layout)
            if letters is not None:
                give_up_lost_letters(table, plan, letters)
            return RecordPlan(
                record=record,
                subject=subject,
                decoding=decoding,
                plan=plan,
                state=table.state(),
                dead=_letters_of(dead, plan),
            )

    def commit(
        self,
        index: LakeTable,
        dead_letters: DeadLetterTarget | None,
        written: Sequence[RecordFiles],
        change: Change,
        plans: RecordPlans,
    ) -> bool:
        """Commit the files of all tasks to their tables, and then the offsets and new types to the index.

        change: of the index, whose counts are then those of all tables. Returns False if the index had it before.
        Raises TableError; tables before the one with the error have their rows.
        """
        by_record: dict[str, tuple[RecordPlan, list[TaskFiles]]] = {}
        for each in written:
            for record, (plan, files) in each.files.items():
                by_record.setdefault(record, (plan, []))[1].append(files)
        new = [plan for record, (plan, _) in by_record.items() if record not in plans.records]
        try:
            self.check([*plans.records, *(each.record for each in new)])
        except TableError:
            self.discard(written, plans)
            raise
        counts = {
            plan.record: self._commit_record(plan, tasks, change, plans.state, dead_letters, index.counts)
            for plan, tasks in by_record.values()
        }
        if dead_letters is not None and plans.dead is not None:
            dead = [file for each in written for file in each.index.dead]
            counts |= commit_dead_letters(dead_letters, dead, change, plans.state, plans.dead)
        entries, rows = write_files(self._index_rows(new), plans.plan), index.counts.rows
        is_new = index.commit(entries.files, replace(change, records=counts), plans.plan)
        index.counts.rows = rows  # of records
        return is_new

    def _commit_record(
        self,
        plan: RecordPlan,
        tasks: Sequence[TaskFiles],
        change: Change,
        index: TableState,
        dead_letters: DeadLetterTarget | None,
        counts: CommitCounts,
    ) -> int:
        """Commit to the table of a type; return the number of its last commit then."""
        files = [file for each in tasks for file in each.files]
        if not files and not any(each.dead_rows for each in tasks):
            return plan.state.records.get(plan.record, 0)
        # it has all rows of its type that the index has offsets of, also if it was created later
        spans = {key: union(index.spans.get(key, ()), ranges) for key, ranges in change.spans.items()}
        own = replace(
            change,
            id=uuid.uuid4().hex,
            mark=plan.mark(change.mark),
            spans=spans,
            known=plan.state.spans,
            is_exact=True,
            number_of=plan.record,
            base=plan.state.rows,
        )
        with self.open(plan.plan.table) as table:
            if dead_letters is not None and plan.dead is not None:
                dead = [file for each in tasks for file in each.dead]
                of_letters = replace(own, mark=change.mark)
                own = replace(own, records=commit_dead_letters(dead_letters, dead, of_letters, plan.state, plan.dead))
            table.commit(files, own, plan.plan)
            counts.add(table.counts)
            table.refresh()
            return table.state().records.get(plan.record, 0)

    def _index_rows(self, new: Sequence[RecordPlan]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if new:
            rows = [{"record": each.record, "table": each.plan.table, "subject": each.subject} for each in new]
            yield pa.RecordBatch.from_pylist(rows, schema=index_schema())

    def discard(self, written: Iterable[RecordFiles], plans: RecordPlans) -> None:
        """Delete files that are not committed."""
        for each in written:
            for plan, files in each.files.values():
                with self.open(plan.plan.table) as table:
                    table.discard(files.files, plan.plan)
                _discard_dead(files, plan.dead)
            _discard_dead(each.index, plans.dead)


def _discard_dead(files: TaskFiles, dead: LetterPlan | None) -> None:
    if isinstance(dead, DeadLetterPlan):
        for each in files.dead:
            with suppress(OSError):
                dead.plan.delete(each.path)


def check_rows(schema: pa.Schema) -> None:
    """Raise OptionError unless rows have the bytes of values, and their offsets."""
    from pyarrow import types

    missing = [name for name in ("topic", "partition", "offset", "value") if name not in schema.names]
    if missing:
        raise OptionError(f"tables by record type: require the column '{missing[0]}' of the source; select it")
    kind = schema.field("value").type
    if not (types.is_binary(kind) or types.is_large_binary(kind)):
        raise OptionError(
            f"tables by record type: column 'value' is of type {kind}; it must be binary, since values are decoded "
            "when they are written: remove value.registry of the source, or its from_registry"
        )


def lost_offsets(index: TableState, states: Mapping[str, TableState]) -> tuple[dict[str, Spans], dict[str, int]]:
    """Return the offsets of an index that tables lack, by type, and the numbers of the last commits of these tables.

    states: of the tables by type. One that is not as the index knows it lacks what it has no offsets of: those before
    its last commit were complete. Others lack what they have given up.
    """
    lost, other = dict[str, Spans](), dict[str, int]()
    for record, state in states.items():
        found = Counterpart(name=record, numbers=state.numbers_of(record), spans=state.spans)
        lost[record] = overlap(state.rows_only, index.spans)
        if not found.is_known(index):
            other[record] = found.numbers[0]
            lost[record] |= found.lacks(index.spans)
    return {record: spans for record, spans in lost.items() if spans}, other


def read_index(index: LakeTable) -> dict[str, str]:
    """Return the record types of an index, in the order of their names, with their subjects. Raises TableError."""
    subjects: dict[str, str] = {}
    for batch in index.read_live(index.live_files(), ["record", "subject"]):
        subjects.update(zip(batch.column("record").to_pylist(), batch.column("subject").to_pylist(), strict=True))
    return dict(sorted(subjects.items()))


def _letters_of(dead: LetterPlan | None, plan: FilePlan) -> LetterPlan | None:
    """Return how dead letters of a table are written. dead: those of the index."""
    if isinstance(dead, DeadLetterPlan):
        return replace(dead, table_id=plan.table_id)
    return None if dead is None else replace(dead, table=plan.table)
