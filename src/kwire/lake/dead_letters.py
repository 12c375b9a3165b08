"""Dead letters: records that cannot be decoded or stored in a table go to a second table or a topic, with their bytes.

    driver   prepare_dead_letters()    creates the second table; its state says which dead letters it has
    tasks    RowWriter                 divides rows, and writes the files of both tables
    driver   commit_dead_letters()     before the commit of the rows, with the same offsets and the same micro-batch

If the driver is killed between the two commits, the rows are read again: the second table has their offsets or their
micro-batch, and gets none of them twice. It stores offsets under the id of the table that the rows were for, so several
tables can share it. Letters of a table of the same name with another id, which was dropped, are compared one by one.

The table of the rows knows the second one, see kwire.lake.counterparts: if that was dropped, or has gone back, it gives
up the offsets that are then incomplete, and remembers that it has their rows.

A column that was decoded arrives as struct<value, error> or struct<value, error, bytes>; a row with an error is dead.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kwire.errors import OptionError, TableError
from kwire.identifiers import TopicPartition
from kwire.lake.arrow_columns import conform, offsets_of
from kwire.lake.changes import TRUNCATED, Changes
from kwire.lake.counterparts import Counterpart
from kwire.lake.data_files import BatchWriter, FilePlan, FileWriter, TaskFiles, WrittenFile, write_files
from kwire.lake.known_offsets import KnownOffsets, rows_at
from kwire.lake.letter_rows import PLACE, dead_letter_schema, is_wrapped, letters_of
from kwire.lake.letter_topic import DeadLetterTopic, TopicWriter
from kwire.lake.offset_ranges import Spans, hull_of, joined, overlap, text_of
from kwire.lake.state import Change, Mark, TableState
from kwire.lake.table import LakeTable, Layout

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = [
    "DeadLetterPlan",
    "DeadLetterTarget",
    "LetterPlan",
    "LetterWriter",
    "RowWriter",
    "commit_dead_letters",
    "give_up_lost_letters",
    "mode_for_dead_letters",
    "open_dead_letters",
    "place_of",
    "prepare_dead_letters",
    "recover_letters",
    "unwrapped_schema",
]

logger = logging.getLogger("kwire.lake")

DeadLetterTarget: TypeAlias = LakeTable | DeadLetterTopic
"""Where dead letters go."""
LetterPlan: TypeAlias = "DeadLetterPlan | DeadLetterTopic"
"""How tasks write them."""
SOURCE = ":"  # between the id of a table and a topic or query, and before the name of the second table


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterPlan:
    """How tasks write dead letters. Picklable. table_id: of the table that rows are for. state: of the second table."""

    plan: FilePlan
    table_id: str
    state: TableState

    def mark(self, mark: Mark | None) -> Mark | None:
        """Return the mark of a commit of dead letters; None if the second table has that micro-batch or a later one.

        It then gets what is not among its offsets: a batch that is planned again may be larger than it was.
        """
        if mark is None or self._is_done(mark):
            return None
        return Mark(query=self._name(mark.query), batch=mark.batch, is_strict=False)

    def known(self, mark: Mark | None) -> Spans:
        """Return the offsets of which the second table has the dead letters."""
        query = None if mark is None or self._is_done(mark) else self._name(mark.query)
        return _spans_of(self.table_id, self.state.foreign(query))

    def spans(self, spans: Spans) -> Spans:
        """Return offsets as the second table stores them."""
        return {(self._name(topic), partition): ranges for (topic, partition), ranges in spans.items()}

    @property
    def own(self) -> Spans:
        """The offsets of the second table that are those of the table of the rows, as it stores them."""
        return {key: ranges for key, ranges in self.state.spans.items() if key[0].startswith(self._name(""))}

    def may_have(self, spans: Spans) -> bool:
        """Return whether the second table may have letters of some offsets, of another table than that of the rows."""
        others = (key for key in self.state.spans if not key[0].startswith(self._name("")))
        return any(
            overlap({(topic.partition(SOURCE)[2], partition): self.state.spans[topic, partition]}, spans)
            for topic, partition in others
        )

    def _is_done(self, mark: Mark) -> bool:
        return mark.batch <= self.state.batches.get(self._name(mark.query), -1)

    def _name(self, name: str) -> str:
        return f"{self.table_id}{SOURCE}{name}"


def _spans_of(table_id: str, spans: Spans) -> Spans:
    """Return the offsets of a table of dead letters that are those of a table of rows."""
    own = f"{table_id}{SOURCE}"
    return {
        (topic.removeprefix(own), partition): ranges
        for (topic, partition), ranges in spans.items()
        if topic.startswith(own)
    }


def mode_for_dead_letters(mode: object, option: str) -> str:
    """Return the mode to decode with. mode: given one; option: that names the table. Raises OptionError."""
    if mode not in (None, "deadletter"):
        raise OptionError(f"mode: {option} requires deadletter, got '{mode}'; remove one of them")
    return "deadletter"


def unwrapped_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of rows without their errors. Raises OptionError for rows without their offsets."""
    missing = [name for name in PLACE if name not in schema.names]
    if missing:
        raise OptionError(f"dead letters: require the columns {', '.join(PLACE)} of the source; select them")
    for index, field in enumerate(schema):
        if is_wrapped(field.type):
            schema = schema.set(index, field.with_type(field.type.field("value").type))
    return schema


def open_dead_letters(
    name: str, open_table: Callable[[str], LakeTable], settings: Mapping[str, object] | None = None
) -> DeadLetterTarget:
    """Return the table or topic of a name. settings: of the client of a topic. Raises OptionError, TableError."""
    from kwire.client.address import is_cluster_url

    return DeadLetterTopic.parse(name, settings or {}) if is_cluster_url(name) else open_table(name)


def prepare_dead_letters(table: DeadLetterTarget, rows: LakeTable, plan: FilePlan) -> LetterPlan:
    """Create the table of dead letters, if it is missing; a topic must exist. rows: their table; plan: of it.

    Offsets whose dead letters are lost are given up. Raises OptionError, TableError, BrokerError, ConnectionFailed.
    """
    if isinstance(table, DeadLetterTopic):
        table.check()
        return replace(table, table=plan.table)
    dead = table.prepare(dead_letter_schema(), Layout())
    if dead.table_id == plan.table_id:
        raise OptionError(f"dead letters: '{table.name}' is the table of the rows; name another one")
    extra = [name for name in dead.schema.names if name not in dead_letter_schema().names]
    if extra:
        raise TableError(
            f"it has the column '{extra[0]}', so it is no table of dead letters; name another one", table.name
        )
    give_up_lost_letters(rows, plan, table)
    return DeadLetterPlan(plan=dead, table_id=plan.table_id, state=table.state())


def _counterpart(letters: LakeTable, table_id: str) -> Counterpart:
    """Return what a table of dead letters, as of its last refresh, says of those of a table of rows."""
    state = letters.state()
    name = f"{SOURCE}{letters.name}"
    return Counterpart(name=name, numbers=state.numbers_of(table_id), spans=_spans_of(table_id, state.spans))


def give_up_lost_letters(rows: LakeTable, plan: FilePlan, letters: LakeTable) -> None:
    """Commit to a table of rows, as of its last refresh, that it lacks offsets whose dead letters are lost.

    plan: of the rows. letters: their table of dead letters, as of its last refresh. Raises TableError.
    """
    found = _counterpart(letters, plan.table_id)
    if found.is_known(rows.state()):
        return
    lost = _warn_of_lost_letters(rows, letters)
    records = {found.name: found.numbers[0]}
    rows.commit([], Change(id=uuid.uuid4().hex, lost=lost, keeps_rows=True, records=records, same_rows=True), plan)
    rows.refresh_known()


def _warn_of_lost_letters(rows: LakeTable, letters: LakeTable) -> Spans:
    """Return the offsets that give_up_lost_letters() would give up, with a warning."""
    found = _counterpart(letters, rows.id or "")
    lost = {} if found.is_known(rows.state()) else found.lacks(rows.state().spans)
    if lost:
        logger.warning(
            "table of dead letters %s is not as table %s knows it: it was dropped, or has gone back to an earlier "
            "version. Dead letters may be missing at offsets %s; 'kwire lake append --fill' writes them again",
            *(
                letters.name,
                rows.name,
                ", ".join(f"{text_of(ranges)} of {key[0]}-{key[1]}" for key, ranges in lost.items()),
            ),
        )
    return lost


def recover_letters(rows: LakeTable, letters: LakeTable, *, is_dry_run: bool) -> None:
    """Give up lost dead letters of a table of rows, both as of their last refresh; a dry run only warns of them."""
    if is_dry_run:
        _warn_of_lost_letters(rows, letters)
    else:
        give_up_lost_letters(rows, rows.plan(), letters)


def commit_dead_letters(
    table: DeadLetterTarget,
    files: Sequence[WrittenFile],
    change: Change,
    before: TableState,
    plan: LetterPlan,
) -> dict[str, int]:
    """Commit dead letters; called before the commit of the rows. change: that commit. before: state of the rows' table.

    A topic has them already. Without any, nothing is committed: offsets that the rows' table has need not be known
    twice. Returns the numbers that the commit of the rows has to store. Raises TableError.
    """
    if not isinstance(table, LakeTable) or not isinstance(plan, DeadLetterPlan):
        return {}
    number = plan.state.numbers_of(plan.table_id)[0]
    if files:
        if plan.may_have(change.spans):
            files = _without_known(table, files, plan)  # without any, too: it has them under this id then
        had, new = plan.spans(before.spans), plan.spans(change.spans)  # of all partitions: these are complete, too
        mark = plan.mark(change.mark)
        own = Change(
            id=change.id,
            mark=mark,
            spans=joined(had, new),
            known=joined(plan.own, had) if mark is None else None,
            is_exact=True,
            number_of=plan.table_id,
            base=plan.own,
        )
        is_new = table.commit(files, own, plan.plan)
        number = own.number if is_new else table.state().numbers_of(plan.table_id)[0]
    return {f"{SOURCE}{table.name}": number}


def _without_known(table: LakeTable, files: Sequence[WrittenFile], plan: DeadLetterPlan) -> Sequence[WrittenFile]:
    """Return files without the letters that a table has of one of the same name as that of the rows, which was dropped.

    Letters are compared as a whole, since their topic may have been created again, too. Raises TableError.
    """
    import pyarrow as pa

    written = pa.concat_tables(table.read_staged(files, plan.plan))
    table.refresh()
    try:
        live = table.live_files(hull_of(map(offsets_of, written.to_batches())))
        for columns in ((*PLACE, "table"), (*PLACE, "table", "timestamp", "key", "value")):  # few get to the second
            known = {letter for batch in table.read_live(live, columns) for letter in _as_tuples(batch, columns)}
            is_new = [letter not in known for letter in _as_tuples(written, columns)]
            if all(is_new):
                return files
    except TableError as error:
        logger.warning("%s; dead letters of a table of that name which was dropped may be written again", error)
        return files
    kept = write_files(written.filter(pa.array(is_new)).to_batches(), plan.plan).files
    table.discard(files, plan.plan)
    return kept


def _as_tuples(letters: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> Iterator[tuple[object, ...]]:
    import pyarrow as pa

    arrays = [letters.column(name) for name in columns]
    numbers = [each.cast(pa.int64()) if pa.types.is_timestamp(each.type) else each for each in arrays]  # any year
    return zip(*(each.to_pylist() for each in numbers), strict=True)


class RowWriter:
    """Writes the rows of one task as write_files does, and the dead ones among them to files of their own.

    changes: what rows become. mark: of the micro-batch. key: columns to merge by, which must not be null. known:
    offsets whose rows the table has, so that only their dead letters are written.
    """

    def __init__(
        self,
        plan: FilePlan,
        dead: LetterPlan | None,
        *,
        changes: Changes | None = None,
        mark: Mark | None = None,
        key: Sequence[str] = (),
        known: Spans | None = None,
        task: int = 0,
    ) -> None:
        self._writer = BatchWriter(plan, task)
        self._letters = None if dead is None else LetterWriter(dead, mark, task)
        is_divided = dead is not None or changes is not None or bool(known)
        self._divider = _Divider(plan, self._letters, changes, key, known or {}) if is_divided else None

    @property
    def size_bytes(self) -> int:
        """Arrow memory of the rows that are buffered."""
        return self._writer.size_bytes

    def add(self, batch: pa.RecordBatch) -> None:
        """Write rows. Raises TableError, also for a dead one without a table of dead letters."""
        if len(batch):
            self._writer.add(batch if self._divider is None else self._divider.good_rows(batch))

    def flush(self) -> None:
        """Write all rows that are buffered. Raises TableError."""
        self._writer.flush()

    def close(self) -> TaskFiles:
        """Complete the files and return them. Raises TableError."""
        files = self._writer.close()
        if self._divider is not None:
            files = replace(files, spans=self._divider.spans, known_rows=dict(self._divider.known_rows))
        if self._letters is not None:
            files = replace(files, dead=self._letters.close(), dead_rows=dict(self._letters.counts))
        return files

    def discard(self) -> None:
        """Delete all files."""
        self._writer.discard()
        if self._letters is not None:
            self._letters.discard()


class _LetterFiles(Protocol):
    """Writes dead letters somewhere."""

    def add(self, letters: pa.RecordBatch) -> None:
        """Write some."""

    def close(self) -> Sequence[WrittenFile]:
        """Complete what was written; return files to commit."""

    def discard(self) -> None:
        """Delete files that are not committed."""


class _TableWriter:
    """Writes the files of a table of dead letters, for those that it does not have."""

    def __init__(self, dead: DeadLetterPlan, mark: Mark | None, task: int) -> None:
        self._plan = dead.plan
        self._known = KnownOffsets(known=dead.known(mark), mode="skip", table=dead.plan.table)
        self._writer = FileWriter(dead.plan, task)

    def add(self, letters: pa.RecordBatch) -> None:
        """Write those that the table does not have."""
        (new,) = self._known.new_rows([letters])
        if len(new):
            for partition, rows in self._plan.split(conform(new, self._plan.schema, self._plan.table)):
                self._writer.add(partition, rows)

    def close(self) -> Sequence[WrittenFile]:
        """Return the complete files."""
        return self._writer.close()

    def discard(self) -> None:
        """Delete the files."""
        self._writer.discard()


class LetterWriter:
    """Writes the dead letters of a task to a table or topic. counts: of them."""

    def __init__(self, dead: LetterPlan, mark: Mark | None = None, task: int = 0) -> None:
        self._files: _LetterFiles = (
            TopicWriter(dead) if isinstance(dead, DeadLetterTopic) else _TableWriter(dead, mark, task)
        )
        self.counts = Counter[TopicPartition]()

    def add_rows(self, batch: pa.RecordBatch, reasons: Mapping[int, str], table: str) -> None:
        """Write some rows of a batch. reasons: what is wrong with them, by row. table: that they were for."""
        import pyarrow as pa

        dead = sorted(reasons)
        letters = letters_of(batch.take(pa.array(dead)), pa.array([reasons[row] for row in dead]), table)
        self._files.add(letters)
        places = zip(*(letters.column(name).to_pylist() for name in PLACE[:2]), strict=True)
        self.counts.update((str(topic), int(partition)) for topic, partition in places)

    def close(self) -> Sequence[WrittenFile]:
        """Return the complete files, which there are of a table."""
        return self._files.close()

    def discard(self) -> None:
        """Delete files that are not committed."""
        self._files.discard()


class _Divider:
    """Divides the rows of a task. letters: where dead ones go; without it, they are errors. spans: of all rows.

    known: offsets whose rows the table has. known_rows: number of these by partition.
    """

    def __init__(
        self,
        plan: FilePlan,
        letters: LetterWriter | None,
        changes: Changes | None,
        key: Sequence[str],
        known: Spans,
    ) -> None:
        self._plan, self._letters, self._changes, self._key, self._known = plan, letters, changes, key, known
        self.spans = Spans()
        self.known_rows = Counter[TopicPartition]()

    def good_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that can be stored, and write the others."""
        import pyarrow as pa

        self.spans = hull_of([self.spans, offsets_of(batch)])
        source = batch if self._letters is None else _unwrapped(batch)
        reasons = {} if self._letters is None else _reasons(batch)
        rows, origins = self._changed(source, reasons)
        if self._letters is not None:
            self._find_without_key(rows, origins, reasons)
            self._find_unfit(rows, origins, _alive(origins, reasons), reasons)
        if reasons:
            self._bury(batch, reasons)
        known = self._find_known(batch, reasons)
        if reasons or known:
            rows = rows.take(pa.array(_alive(origins, {**reasons, **known})))
        return rows

    def _find_known(self, batch: pa.RecordBatch, reasons: Mapping[int, str]) -> dict[int, str]:
        """Return the rows that the table has, and count those that are not dead."""
        import numpy as np

        found = dict[int, str]()
        for key in offsets_of(batch).keys() & self._known.keys():
            indexes = np.flatnonzero(rows_at(batch, key, self._known[key]).to_numpy(zero_copy_only=False))
            found |= dict.fromkeys(indexes.tolist(), "known")
            self.known_rows[key] += sum(int(index) not in reasons for index in indexes)
        return found

    def _changed(self, rows: pa.RecordBatch, reasons: dict[int, str]) -> tuple[pa.RecordBatch, np.ndarray]:
        """Return what rows become, and the row that each was made of; add what is wrong with others to reasons."""
        import numpy as np
        import pyarrow as pa

        alive = _alive(np.arange(len(rows)), reasons)
        rows = rows if len(alive) == len(rows) else rows.take(pa.array(alive))
        if self._changes is None:
            return rows, alive
        changed = self._changes.apply(rows)
        reasons.update((int(alive[row]), what) for row, what in changed.errors.items())
        return changed.rows, alive[changed.origins]

    def _find_without_key(self, rows: pa.RecordBatch, origins: np.ndarray, reasons: dict[int, str]) -> None:
        for name in self._key:
            for row in origins[rows.column(name).is_null().to_numpy(zero_copy_only=False)].tolist():
                reasons.setdefault(row, f"column '{name}' of mergeKey is null")

    def _find_unfit(
        self, rows: pa.RecordBatch, origins: np.ndarray, indexes: np.ndarray, reasons: dict[int, str]
    ) -> None:
        """Add the rows that do not fit the table's columns to reasons; they are searched by halves."""
        import pyarrow as pa

        if not len(indexes):
            return
        chosen = rows if len(indexes) == len(rows) else rows.take(pa.array(indexes))
        try:
            for _ in self._plan.split(conform(chosen, self._plan.schema, self._plan.table)):
                pass
        except TableError as error:
            if len(indexes) == 1:
                reasons[int(origins[indexes[0]])] = error.what
                return
            half = len(indexes) // 2
            self._find_unfit(rows, origins, indexes[:half], reasons)
            self._find_unfit(rows, origins, indexes[half:], reasons)

    def _bury(self, batch: pa.RecordBatch, reasons: dict[int, str]) -> None:
        """Write dead letters. Raises TableError without a table for them, and for a truncated source."""
        fatal = [row for row in sorted(reasons) if self._letters is None or reasons[row] == TRUNCATED]
        if fatal:
            raise TableError(f"{place_of(batch, fatal[0])}: {reasons[fatal[0]]}", self._plan.table)
        assert self._letters is not None
        self._letters.add_rows(batch, reasons, self._plan.table)


def place_of(batch: pa.RecordBatch, row: int) -> str:
    """Return the topic, partition and offset of a row, for errors."""
    topic, partition, offset = (
        batch.column(name)[row].as_py() if name in batch.schema.names else f"unknown {name}" for name in PLACE
    )
    return f"{topic}-{partition}, offset {offset}"


def _alive(origins: np.ndarray, reasons: Mapping[int, str]) -> np.ndarray:
    """Return the indexes of rows whose origins are not dead."""
    import numpy as np

    return np.flatnonzero(~np.isin(origins, list(reasons))) if reasons else np.arange(len(origins))


def _unwrapped(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows without their errors."""
    import pyarrow as pa

    columns = [column.flatten()[0] if is_wrapped(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=unwrapped_schema(batch.schema))


def _reasons(batch: pa.RecordBatch) -> dict[int, str]:
    """Return what is wrong with rows that were not decoded, by row."""
    reasons: dict[int, str] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if is_wrapped(column.type):
            errors = column.flatten()[1]
            if errors.null_count < len(errors):
                texts = enumerate(errors.to_pylist())
                reasons = {row: f"{name}: {text}" for row, text in texts if text is not None} | reasons
    return reasons
