"""The latest row of each key, and the keys whose latest row is a tombstone, as a compacted topic has them.

Rows are ordered by offset within their partition, if they have both columns; a key in several partitions, whose number
was changed, by timestamp first. A tombstone is a row whose columns are all null, except for the key and the columns of
Kafka's records.
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
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.concat_tables([schema.empty_table(), *tables])
    for name in key:
        if rows.column(name).null_count:
            raise TableError(f"column '{name}' of mergeKey is null in a row; filter these rows", table)
    numbered = rows.append_column(ROW, pa.array(np.arange(len(rows))))
    order = [(name, "ascending") for name in ("timestamp", "partition", "offset") if name in schema.names]
    if "offset" in schema.names:
        if not _spans_partitions(rows, key):
            order = [("offset", "ascending")]
        numbered = numbered.sort_by(order)
    chosen = numbered.group_by(list(key), use_threads=False).aggregate([(ROW, "last"), (ROW, "count")])
    if "offset" not in schema.names and len(chosen) < len(rows):
        several = chosen.filter(pc.greater(chosen.column(f"{ROW}_count"), 1)).select(list(key)).slice(0, 1).to_pylist()
        raise TableError(
            f"several rows have the key {several[0]}, and no column 'offset' says which is the latest; "
            "keep the columns partition and offset, or aggregate the rows by key",
            table,
        )
    latest = rows.take(chosen.column(f"{ROW}_last"))
    values = [name for name in schema.names if name not in key and name not in METADATA_COLUMNS]
    if not values:
        return latest, latest.slice(0, 0).select(list(key))
    is_tombstone = pc.is_null(latest.column(values[0]))
    for name in values[1:]:
        is_tombstone = pc.and_(is_tombstone, pc.is_null(latest.column(name)))
    return latest.filter(pc.invert(is_tombstone)), latest.filter(is_tombstone).select(list(key))


def _spans_partitions(rows: pa.Table, key: Sequence[str]) -> bool:
    """Return whether a key has rows in more than one partition."""
    import pyarrow.compute as pc

    by = [name for name in ("topic", "partition") if name in rows.column_names and name not in key]
    if not by or not len(rows):
        return False
    pairs = rows.group_by([*key, *by], use_threads=False).aggregate([])
    keys = pairs.group_by(list(key), use_threads=False).aggregate([([], "count_all")])
    return bool(pc.max(keys.column("count_all")).as_py() > 1)
