"""What append_logs would do, without writing: the offsets of each partition, and the tables of record types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import TableError
from kwire.lake.append import Appended, ReadNotes, RowOptions, missing_offsets, read_offsets
from kwire.lake.dead_letters import place_of
from kwire.lake.record_tables import UNFIT, RecordTables, read_index
from kwire.lake.table import LakeTable

if TYPE_CHECKING:
    from kwire.log.reading.readable_log import ReadableLog

__all__ = ["PlannedTable", "planned_offsets", "planned_tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """A table that rows of a record type would be appended to. is_new: whether it would be created."""

    record: str
    table: str
    rows: int
    is_new: bool


def planned_offsets(
    table: LakeTable, logs: Sequence[ReadableLog], rows: RowOptions, *, fill: bool = False
) -> Iterator[tuple[ReadableLog, Appended]]:
    """Return the offsets that append_logs would append, with their logs; the number of rows is 0. Raises TableError."""
    warned = set[str]()
    table.refresh()
    for log in logs:
        for each in missing_offsets(table, log, rows.isolation, fill=fill, merge_key=rows.merge_key, warned=warned):
            yield (
                log,
                Appended(
                    topic=log.topic,
                    partition=log.partition,
                    start_offset=each.start,
                    end_offset=each.end,
                    rows=0,
                    problem=each.problem,
                ),
            )


def planned_tables(
    table: LakeTable, logs: Sequence[ReadableLog], rows: RowOptions, records: RecordTables, *, fill: bool = False
) -> list[PlannedTable]:
    """Read the records that append_logs would append, and return the tables of their types, by name.

    Raises TableError for more types than the limit, and for a record without a type, unless there are dead letters; the
    errors of logs and of the registry.
    """
    from kwire.schemas.record_types import RecordSplitter

    counts, splitter = Counter[str](), RecordSplitter(records.types.registry)
    skipped = set[str]()
    table.refresh()
    known = read_index(table) if table.exists else {}
    for log, each in planned_offsets(table, logs, rows, fill=fill):
        if each.start_offset == each.end_offset:
            continue
        for batch in read_offsets(log, (each.start_offset, each.end_offset), rows, ReadNotes()):
            split = splitter.split(batch)
            if split.errors and not records.has_dead_letters:
                row = min(split.errors)
                raise TableError(f"{place_of(batch, row)}: {split.errors[row]}", table.name)
            for record, indexes in split.by_record.items():
                if record not in counts and record not in skipped:
                    try:
                        records.decoding(record, known.get(record) or records.types.subject_of(record, log.topic))
                    except UNFIT:
                        if record in known or not records.has_dead_letters:
                            raise
                        skipped.add(record)
                if record not in skipped:
                    counts[record] += len(indexes)
    records.check([*known, *(record for record in counts if record not in known)])
    planned = []
    for record, count in sorted(counts.items()):
        name = records.table_of(record)
        with records.open(name) as one:
            one.refresh()
            planned.append(PlannedTable(record=record, table=name, rows=count, is_new=not one.exists))
    return planned
