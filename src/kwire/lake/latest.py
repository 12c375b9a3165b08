"""The latest row of each key, and the keys whose latest row is a tombstone, as a compacted topic has them.

Decided for each key: rows of one partition are ordered by offset, whatever their timestamps are. A key that lies in
several partitions, whose number was changed, has a latest row in each; the one with the highest timestamp is taken. A
tombstone is a row whose columns are all null, except for the key and the columns of Kafka's records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kwire.errors import TableError
from kwire.lake.arrow_columns import METADATA_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["latest_by_key"]

ROW = "__row"


def latest_by_key(
    tables: Iterable[pa.Table], key: Sequence[str], schema: pa.Schema, table: str
) -> tuple[pa.Table, pa.Table]:
    """Return the latest rows, and the keys to delete.

    Raises TableError for null in a key, and for several rows of a key without columns that order them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.concat_tables([schema.empty_table(), *tables])
    for name in key:
        if rows.column(name).null_count:
            raise TableError(f"column '{name}' of mergeKey is null in a row; filter these rows", table)
    if "offset" in schema.names:
        source = [name for name in ("topic", "partition") if name in schema.names and name not in key]
        latest = _last(rows, [*key, *source], ["offset"])
        if source:
            latest = _last(latest, key, [name for name in ("timestamp", *source) if name in schema.names])
    else:
        latest = rows
        several = rows.group_by(list(key), use_threads=False).aggregate([([], "count_all")])
        if len(several) < len(rows):
            first = several.filter(pc.greater(several.column("count_all"), 1)).select(list(key)).slice(0, 1)
            raise TableError(
                f"several rows have the key {first.to_pylist()[0]}, and no column 'offset' says which is the latest; "
                "keep the columns partition and offset, or aggregate the rows by key",
                table,
            )
    values = [name for name in schema.names if name not in key and name not in METADATA_COLUMNS]
    if not values:
        return latest, latest.slice(0, 0).select(list(key))
    is_tombstone = pc.is_null(latest.column(values[0]))
    for name in values[1:]:
        is_tombstone = pc.and_(is_tombstone, pc.is_null(latest.column(name)))
    return latest.filter(pc.invert(is_tombstone)), latest.filter(is_tombstone).select(list(key))


def _last(rows: pa.Table, by: Sequence[str], order: Sequence[str]) -> pa.Table:
    """Return the last row of each group in the order of these columns, of which null is the lowest value."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = pa.table({f"{kind}{name}": column for name in order for kind, column in _sortable(rows.column(name))})
    indexes = pc.sort_indices(columns, sort_keys=[(name, "ascending") for name in columns.column_names])
    numbered = rows.select(list(by)).take(indexes).append_column(ROW, pa.array(np.arange(len(rows))))
    chosen = numbered.group_by(list(by), use_threads=False).aggregate([(ROW, "max")])
    return rows.take(indexes.take(chosen.column(f"{ROW}_max")))


def _sortable(column: pa.ChunkedArray) -> tuple[tuple[str, pa.ChunkedArray], ...]:
    """Return columns that sort nulls first, for which the name of Arrow's option depends on the release."""
    return ("has ", column.is_valid()), ("", column)
