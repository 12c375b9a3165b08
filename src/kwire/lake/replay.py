"""Offsets of a log that were chosen: those that a table lacks are appended, those that it has are left or replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import OptionError, TableError
from kwire.identifiers import TopicPartition
from kwire.lake.known_offsets import rows_at
from kwire.lake.live_files import LiveFile
from kwire.lake.offset_ranges import Ranges, holes_of, intersection, subtract, text_of, union
from kwire.lake.table import LakeTable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Chosen",
    "check_chosen",
    "files_with",
    "holes_made",
    "nothing_to_append",
    "offsets_to_append",
    "rows_without",
]

PLACE = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Offsets that append_logs is to append, and no others. replace: the rows that the table has there."""

    offsets: Mapping[TopicPartition, Ranges]
    replace: bool = False


def check_chosen(key: TopicPartition, wanted: Ranges, first: int, end: int) -> None:
    """Raise OptionError unless a log has the offsets. first, end: of the log."""
    outside = subtract(wanted, ((first, end),) if first < end else ())
    if outside:
        raise OptionError(
            f"offsets {text_of(outside)} of {key[0]}-{key[1]} are not in the log, which has {first} to {end - 1}; "
            "choose among these"
            if first < end
            else f"{key[0]}-{key[1]} is empty, so it has no offsets {text_of(outside)}"
        )


def offsets_to_append(table: LakeTable, key: TopicPartition, wanted: Ranges) -> tuple[Ranges, str | None]:
    """Return the offsets that a table lacks, and what to say of the others."""
    have = table.state().spans.get(key, ())
    known, left = intersection(have, wanted), subtract(wanted, have)
    return left, f"offsets {text_of(known)} were not written again: the table has them" if known else None


def nothing_to_append(table: str, chosen: Chosen) -> TableError:
    """Return the error of a table, of that name, that has all chosen offsets."""
    each = [f"{text_of(union(ranges))} of {key[0]}-{key[1]}" for key, ranges in chosen.offsets.items() if ranges]
    return TableError(
        f"it has offsets {', '.join(each)} already; nothing was appended. To write their rows again in place of those "
        "that it has, add --replace (replace=True)",
        table,
    )


def holes_made(table: LakeTable, key: TopicPartition, wanted: Ranges) -> Ranges:
    """Return the offsets that a table will lack between others, and did not lack before."""
    have = table.state().spans.get(key, ())
    return subtract(holes_of(union(have, wanted)), holes_of(have))


def files_with(table: LakeTable, key: TopicPartition, wanted: Ranges) -> list[LiveFile]:
    """Return the data files of a table that have rows at these offsets."""
    return [
        file
        for file in table.live_files({key: wanted})
        if any(rows_at(batch, key, wanted).true_count for batch in table.read_live([file], PLACE))
    ]


def rows_without(
    table: LakeTable, files: Sequence[LiveFile], key: TopicPartition, wanted: Ranges
) -> Iterator[pa.RecordBatch]:
    """Return the rows of data files at other offsets."""
    import pyarrow.compute as pc

    for batch in table.read_live(files):
        yield batch.filter(pc.invert(rows_at(batch, key, wanted)))
