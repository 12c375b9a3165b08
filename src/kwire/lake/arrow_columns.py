"""Arrow batches with the columns and types of a table, and the offsets that they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from kwire.errors import TableError
from kwire.identifiers import TopicPartition
from kwire.lake.offset_ranges import Spans

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "METADATA_COLUMNS",
    "OP",
    "conform",
    "group_rows",
    "has_long_value",
    "list_offsets",
    "newest_of",
    "no_date",
    "offsets_of",
    "rows_by_partition",
]

METADATA_COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""Columns of Spark's Kafka source that a record has besides its key and its value."""

OP = "__op"
"""Column of the operation of a change of a database."""


def conform(batch: pa.RecordBatch, schema: pa.Schema, table: str) -> pa.RecordBatch:
    """Return a batch with the columns of a table, by name: missing ones are null, narrower types are widened.

    Raises TableError for values that do not fit the type of their column, and for nulls in a required column.
    """
    import pyarrow as pa

    columns = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            column = pa.nulls(len(batch), field.type)
        else:
            try:
                column = _converted(batch.column(index), field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise TableError(f"column '{field.name}': {error}; convert the column", table) from error
        if not field.nullable and column.null_count:
            raise TableError(f"column '{field.name}' is required, and a row has null or no value for it", table)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _converted(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert a column; fields of structs are matched by name at every level."""
    import pyarrow as pa
    from pyarrow import types

    if column.type.equals(wanted, check_metadata=True):
        return column
    if types.is_struct(wanted) and types.is_struct(column.type):
        names = [column.type.field(i).name for i in range(column.type.num_fields)]
        parts = [
            _converted(column.field(names.index(field.name)), field.type)
            if field.name in names
            else pa.nulls(len(column), field.type)
            for field in wanted
        ]
        # a slice's children are not sliced, but field() returns them so
        return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=column.is_null())
    if types.is_map(wanted) and types.is_map(column.type):
        keys, items = _converted(column.keys, wanted.key_type), _converted(column.items, wanted.item_type)
        return pa.MapArray.from_arrays(list_offsets(column), keys, items, type=wanted)
    if types.is_list(wanted) and types.is_list(column.type):
        return pa.ListArray.from_arrays(list_offsets(column), _converted(column.values, wanted.value_type), type=wanted)
    return column.cast(wanted)


def list_offsets(column: pa.Array) -> pa.Array:
    """Return the offsets of a list or map array, null where the list is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = column.offsets
    if not column.null_count:
        return offsets
    is_null = pa.concat_arrays([column.is_null(), pa.array([False])])
    return pc.if_else(is_null, pa.scalar(None, offsets.type), offsets)


def offsets_of(batch: pa.RecordBatch) -> Spans:
    """Return the first to the last offset of each partition in rows with the columns of Spark's Kafka source.

    {} without topic, partition and offset.
    """
    import pyarrow as pa
    from pyarrow import types

    schema = batch.schema
    indexes = [schema.get_field_index(name) for name in ("topic", "partition", "offset")]
    if min(indexes) < 0 or not len(batch):
        return {}
    topic, partition, offset = (batch.column(index) for index in indexes)
    if types.is_dictionary(topic.type):
        topic = topic.cast(topic.type.value_type)
    is_text = types.is_string(topic.type) or types.is_large_string(topic.type)
    if not (is_text and types.is_integer(partition.type) and types.is_integer(offset.type)):
        return {}
    rows = pa.table({"topic": topic, "partition": partition, "offset": offset})
    groups = rows.group_by(["topic", "partition"], use_threads=False).aggregate([("offset", "min"), ("offset", "max")])
    return {
        (row["topic"], row["partition"]): ((row["offset_min"], row["offset_max"] + 1),)
        for row in groups.to_pylist()
        if row["topic"] is not None and row["partition"] is not None and row["offset_min"] is not None
    }


def rows_by_partition(batch: pa.RecordBatch) -> dict[TopicPartition, int]:
    """Return the number of rows of each partition. The rows have the columns topic and partition."""
    topics, partitions = (batch.column(name).to_pylist() for name in ("topic", "partition"))
    return Counter(zip(topics, partitions, strict=True))


def newest_of(batch: pa.RecordBatch) -> tuple[int, ...]:
    """Return the highest timestamp of records in microseconds; () without one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    index = batch.schema.get_field_index("timestamp")
    if index < 0 or not pa.types.is_timestamp(batch.schema.field(index).type):
        return ()
    highest = pc.max(batch.column(index))
    return (highest.cast(pa.timestamp("us", highest.type.tz), safe=False).value,) if highest.is_valid else ()


def has_long_value(rows: pa.Table, size: int) -> bool:
    """Return whether rows have a string or bytes of at least `size` bytes, also inside of lists, maps and structs."""
    chunks = (chunk for column in rows.columns for chunk in column.chunks if chunk.nbytes >= size)
    return any(_longest(chunk) >= size for chunk in chunks)


def _longest(column: pa.Array) -> int:
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind):
        return pc.max(pc.binary_length(column)).as_py() or 0
    if types.is_struct(kind):
        return max((_longest(field) for field in column.flatten()), default=0)
    if types.is_map(kind):  # of a slice, these are all
        return max(_longest(column.keys), _longest(column.items))
    return _longest(column.flatten()) if types.is_list(kind) or types.is_large_list(kind) else 0


def no_date(error: Exception, table: str) -> TableError:
    """Return the error for a row whose partition would be a date that Python does not have."""
    return TableError(
        f"a column to partition by has a date outside of the years 1 to 9999 ({error}); filter the row, or partition "
        "by another column",
        table,
    )


def group_rows(
    rows: pa.RecordBatch, values: Sequence[pa.Array], table: str
) -> Iterator[tuple[tuple[Hashable, ...], pa.RecordBatch]]:
    """Return the rows that share the same values, by these values. values: arrays as long as the batch.

    Raises TableError for a date that Python does not have.
    """
    import numpy as np
    import pyarrow as pa

    names = [str(index) for index in range(len(values))]
    numbers = pa.array(np.arange(len(rows), dtype=np.int32))
    numbered = pa.table([*values, numbers], names=[*names, "row"])
    groups = numbered.group_by(names, use_threads=False).aggregate([("row", "list")])
    try:
        keys = list(zip(*(groups.column(name).to_pylist() for name in names), strict=True))
    except (OverflowError, ValueError) as error:
        raise no_date(error, table) from error
    lists = groups.column("row_list").combine_chunks()
    for index, key in enumerate(keys):
        yield key, rows if len(groups) == 1 else rows.take(lists[index].values)
