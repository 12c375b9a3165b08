"""Handle rows of a query whose offsets a table has already, for example after a checkpoint was deleted.

fail      raise an error with the offsets of the first of them (default)
skip      do not write them
append    write them again, without comparing rows
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from kwire.errors import TableError
from kwire.identifiers import TopicPartition
from kwire.lake.arrow_columns import offsets_of
from kwire.lake.offset_ranges import Ranges, Spans, hull_of, intersection, text_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KnownOffsets", "OnKnownOffsets", "rows_at"]

OnKnownOffsets = Literal["fail", "skip", "append"]


@dataclass(slots=True, kw_only=True)
class KnownOffsets:
    """Compares the rows of a task with the offsets that a table has.

    is_merged: rows replace others by key. skipped: from the first to the last offset.
    """

    known: Spans
    mode: OnKnownOffsets
    table: str
    is_merged: bool = False
    skipped: Spans = field(default_factory=dict)

    def new_rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that the table does not have. Raises TableError in mode fail."""
        for batch in batches:
            yield batch if self.mode == "append" or not self.known else self._new_rows(batch)

    def _new_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow.compute as pc

        read = offsets_of(batch)
        for key, ranges in read.items():
            shared = intersection(self.known.get(key, ()), ranges)
            if not shared:
                continue
            is_known = rows_at(batch, key, shared)
            known_bounds = pc.min_max(batch.column("offset").filter(is_known)).as_py()
            if known_bounds["min"] is None:  # the rows have other offsets, before and after these
                continue
            rows: Ranges = ((known_bounds["min"], known_bounds["max"] + 1),)
            if self.mode == "fail":
                raise self._error(key, rows)
            self.skipped = hull_of([self.skipped, {key: rows}])
            batch = batch.filter(pc.invert(is_known))
        return batch

    def _error(self, key: TopicPartition, rows: Ranges) -> TableError:
        write_again = "" if self.is_merged else ", or to append to write them again"  # merged, it would be an error too
        return TableError(
            f"the rows have offsets {text_of(rows)} of {key[0]}-{key[1]}, and the table has {text_of(self.known[key])} "
            "already, from another query or command; start the query with option startingOffsets as 'kwire lake "
            f"offsets --format spark' prints it, or set option onKnownOffsets to skip these rows{write_again}",
            self.table,
        )


def rows_at(batch: pa.RecordBatch, key: TopicPartition, ranges: Ranges) -> pa.Array:
    """Return for each row whether it has one of these offsets."""
    import pyarrow.compute as pc
    from pyarrow import types

    topic, partition, offset = (batch.column(name) for name in ("topic", "partition", "offset"))
    if types.is_dictionary(topic.type):
        topic = topic.cast(topic.type.value_type)
    is_within = pc.equal(offset, -1)
    for start, end in ranges:
        is_within = pc.or_(is_within, pc.and_(pc.greater_equal(offset, start), pc.less(offset, end)))
    of_partition = pc.and_(pc.equal(topic, key[0]), pc.equal(partition, key[1]))
    return pc.fill_null(pc.and_(of_partition, is_within), False)
