"""The latest row of each key, and the keys whose latest row is a tombstone, as a compacted topic has them.

Decided for each key: rows of one partition are ordered by offset, whatever their timestamps are. A key that lies in
several partitions, whose number was changed, has a latest row in each; the one with the highest timestamp is taken. A
tombstone is a row whose columns are all null, except for the key and the columns of Kafka's records.

Changes of a database may have an order of their own, such as the position in the database's log. It then decides, also
against the rows that the table has, so a deletion stays in the table as a row: an older change may still come. At the
same position, a row that a snapshot has read comes first: the snapshot began there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kwire.errors import TableError
from kwire.lake.arrow_columns import METADATA_COLUMNS, OP

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["latest_by_key", "without_older"]

PLACE, ROW, RANK, IS_NEW = "__place", "__row", "__rank", "__new"
READ = "r"  # the operation of a row that a snapshot has read


def latest_by_key(
    tables: Iterable[pa.Table], key: Sequence[str], schema: pa.Schema, table: str, *, order_by: Sequence[str] = ()
) -> tuple[pa.Table, pa.Table]:
    """Return the latest rows, and the keys to delete. order_by: columns of changes, which then have no keys to delete.

    Raises TableError for null in a key, and for several rows of a key without columns that order them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.concat_tables([schema.empty_table(), *tables])
    for name in key:
        if rows.column(name).null_count:
            raise TableError(f"column '{name}' of mergeKey is null in a row; filter these rows", table)
    if order_by:
        offset = [name for name in ("offset",) if name in schema.names]
        return _last(_ranked(rows), key, [*order_by, RANK, *offset]).drop([RANK]), rows.slice(0, 0).select(list(key))
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


def without_older(
    rows: pa.Table, existing: Iterable[pa.RecordBatch], key: Sequence[str], order_by: Sequence[str]
) -> pa.Table:
    """Return the rows that are not older than the one of their key among existing ones."""
    import numpy as np
    import pyarrow as pa

    columns = [*key, *order_by, OP]
    keys = rows.select(list(key))
    known = [
        pa.Table.from_batches([batch]).select(columns).join(keys, list(key), join_type="left semi")
        for batch in existing
    ]
    old = pa.concat_tables([rows.select(columns).slice(0, 0), *known])
    both = pa.concat_tables([old, rows.select(columns)])
    both = both.append_column(IS_NEW, pa.array(np.arange(len(both)) >= len(old)))
    both = _ranked(both.append_column(ROW, pa.array(np.arange(len(both)) - len(old))))
    newest = _last(both, key, [*order_by, RANK, IS_NEW])
    return rows.take(newest.filter(newest.column(IS_NEW)).column(ROW).sort())


def _ranked(rows: pa.Table) -> pa.Table:
    """Return rows with a column that orders those of the same position."""
    import pyarrow.compute as pc

    return rows.append_column(RANK, pc.fill_null(pc.not_equal(rows.column(OP), READ), True))


def _last(rows: pa.Table, by: Sequence[str], order: Sequence[str]) -> pa.Table:
    """Return the last row of each group in the order of these columns, of which null is the lowest value."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = pa.table(
        {
            f"{kind}{name}": column
            for name in order
            for kind, column in _sortable(rows.column(name), is_position=name.startswith("__"))
        }
    )
    indexes = pc.sort_indices(columns, sort_keys=[(name, "ascending") for name in columns.column_names])
    numbered = rows.select(list(by)).take(indexes).append_column(PLACE, pa.array(np.arange(len(rows))))
    chosen = numbered.group_by(list(by), use_threads=False).aggregate([(PLACE, "max")])
    return rows.take(indexes.take(chosen.column(f"{PLACE}_max")))


def _sortable(column: pa.ChunkedArray, *, is_position: bool) -> list[tuple[str, pa.ChunkedArray]]:
    """Return columns that sort nulls first, for which the name of Arrow's option depends on the release."""
    import pyarrow.compute as pc
    from pyarrow import types

    columns = [("has ", column.is_valid()), ("", column)]
    if is_position and types.is_string(column.type):  # binlog.999999 comes before binlog.1000000
        columns.insert(1, ("size ", pc.binary_length(column)))
    return columns
