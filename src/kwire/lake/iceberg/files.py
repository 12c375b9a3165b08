"""The data files of an Iceberg table, and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kwire.lake.arrow_columns import conform, list_offsets
from kwire.lake.iceberg.plan import arrow_schema
from kwire.lake.live_files import LiveFile
from kwire.lake.offset_ranges import Spans

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyiceberg.table import Table

__all__ = ["as_replacing", "live_files", "offsets_filter", "read_live"]

FIELD_ID = b"PARQUET:field_id"
MAX_TERMS = 16  # of a filter: more partitions are not told apart


def live_files(table: Table, wanted: Any) -> list[LiveFile]:
    """Return the data files of a table. wanted: an expression, for only those that may have such rows.

    Raises PyIceberg's errors.
    """
    from pyiceberg.expressions import AlwaysTrue

    files = []
    for task in table.scan(row_filter=AlwaysTrue() if wanted is None else wanted).plan_files():
        file = task.file
        files.append(
            LiveFile(
                path=file.file_path,
                size_bytes=file.file_size_in_bytes,
                rows=file.record_count,
                partition=(file.spec_id, tuple(file.partition[index] for index in range(len(file.partition)))),
                deletes=frozenset(each.file_path for each in task.delete_files),
                entry=task,
            )
        )
    return files


def read_live(table: Table, file: LiveFile, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Return the rows of a data file. Raises PyIceberg's errors.

    PyIceberg reads whole files, and makes a list of structs that is null an empty one. It reads what is not Parquet or
    has no field ids.
    """
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    wanted = table.schema() if columns is None else table.schema().select(*columns)
    fields = {field.name: field for field in arrow_schema(table.metadata)}
    schema = pa.schema([fields[each.name] for each in wanted.fields])
    if file.entry.file.file_format.value.lower() != "parquet":
        scan = ArrowScan(table.metadata, table.io, wanted, AlwaysTrue())
        yield from (conform(batch, schema, file.path) for batch in scan.to_record_batches([file.entry]))
        return
    deleted = _deleted_positions(table, file)
    with table.io.new_input(file.path).open() as stream:
        content = parquet.ParquetFile(stream)
        if any(FIELD_ID not in (field.metadata or {}) for field in content.schema_arrow):
            scan = ArrowScan(table.metadata, table.io, wanted, AlwaysTrue())
            yield from (conform(batch, schema, file.path) for batch in scan.to_record_batches([file.entry]))
            return
        ids = {_id_of(field) for field in schema}
        names = [field.name for field in content.schema_arrow if _id_of(field) in ids]
        position = 0
        for batch in content.iter_batches(columns=names, use_threads=False):
            is_kept = ~np.isin(np.arange(position, position + len(batch)), deleted)
            position += len(batch)
            of_file = {_id_of(field): batch.column(index) for index, field in enumerate(batch.schema)}
            arrays = [_projected(of_file.get(_id_of(field)), field, len(batch)) for field in schema]
            rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
            yield rows.filter(pa.array(is_kept)) if len(deleted) else rows


def _deleted_positions(table: Table, file: LiveFile) -> NDArray[np.int64]:
    """Return the positions of rows that are deleted in files of their own."""
    import numpy as np
    import pyarrow.compute as pc
    from pyarrow import parquet

    deleted = [np.empty(0, np.int64)]
    for path in sorted(file.deletes):
        with table.io.new_input(path).open() as stream:
            rows = parquet.read_table(stream, columns=["file_path", "pos"])
        positions = rows.filter(pc.equal(rows.column("file_path"), file.path)).column("pos")
        deleted.append(positions.to_numpy())
    return np.concatenate(deleted)


def _id_of(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(FIELD_ID)


def _projected(column: pa.Array | None, wanted: pa.Field, count: int) -> pa.Array:
    """Return a column of a file as the table has it: fields by their ids, and types that were widened since."""
    import pyarrow as pa
    from pyarrow import types

    kind = wanted.type
    if column is None:
        return pa.nulls(count, kind)
    if types.is_struct(kind):
        of_file = {_id_of(field): column.field(index) for index, field in enumerate(column.type)}
        parts = [_projected(of_file.get(_id_of(field)), field, len(column)) for field in kind]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    if types.is_map(kind):
        keys = _projected(column.keys, kind.key_field, len(column.keys))
        items = _projected(column.items, kind.item_field, len(column.items))
        return pa.MapArray.from_arrays(list_offsets(column), keys, items, type=kind)
    if types.is_list(kind):
        values = _projected(column.values, kind.value_field, len(column.values))
        return pa.ListArray.from_arrays(list_offsets(column), values, type=kind)
    return column.cast(kind)


def as_replacing(producer: Any) -> Any:
    """Return the producer of a snapshot that replaces files by others with the same rows.

    Readers of changes skip such snapshots. PyIceberg has the operation and no producer for it, nor its totals.
    """
    from pyiceberg.table.snapshots import Operation, Summary

    of_overwrite = producer._summary

    def summary(properties: Mapping[str, str]) -> Summary:
        return Summary(operation=Operation.REPLACE, **of_overwrite(properties).additional_properties)

    producer._summary = summary
    return producer


def offsets_filter(wanted: Spans) -> Any:
    """Return the expression for rows of these offsets."""
    from pyiceberg.expressions import AlwaysFalse, And, EqualTo, GreaterThanOrEqual, In, LessThan, Or

    term: Any = EqualTo  # whose types are those of pydantic
    at_least: Any = GreaterThanOrEqual
    below: Any = LessThan
    topics: Any = In
    if len(wanted) > MAX_TERMS:
        return topics("topic", {topic for topic, _ in wanted})
    any_range: Any = AlwaysFalse()
    for (topic, partition), ranges in wanted.items():
        offsets = And(at_least("offset", ranges[0][0]), below("offset", ranges[-1][1]))
        any_range = Or(any_range, And(And(term("topic", topic), term("partition", partition)), offsets))
    return any_range
