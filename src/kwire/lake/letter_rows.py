"""Rows of a table of dead letters, which have the bytes of records and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PLACE", "dead_letter_schema", "is_wrapped", "letters_of", "schema_id_of"]

PLACE = ("topic", "partition", "offset")


def dead_letter_schema() -> pa.Schema:
    """Return the columns of a table of dead letters."""
    import pyarrow as pa

    return pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("schema_id", pa.int32()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("reason", pa.string()),
            ("table", pa.string()),
        ]
    )


def is_wrapped(kind: pa.DataType) -> bool:
    """Return whether a type is that of a decoded column with errors."""
    from pyarrow import types

    if not types.is_struct(kind):
        return False
    names = [kind.field(index).name for index in range(kind.num_fields)]
    return names in (["value", "error"], ["value", "error", "bytes"]) and types.is_string(kind.field("error").type)


def letters_of(batch: pa.RecordBatch, reasons: pa.Array, table: str) -> pa.RecordBatch:
    """Return rows as dead letters."""
    import pyarrow as pa
    from pyarrow import types

    schema = dead_letter_schema()
    columns = {name: batch.column(name).cast(schema.field(name).type) for name in PLACE}
    if "timestamp" in batch.schema.names and types.is_timestamp(batch.schema.field("timestamp").type):
        columns["timestamp"] = batch.column("timestamp").cast(schema.field("timestamp").type)
    for name in ("key", "value"):
        if name in batch.schema.names:
            columns[name] = _bytes_of(batch.column(name))
    if "value" in batch.schema.names and is_wrapped(batch.schema.field("value").type):
        columns["schema_id"] = pa.array([schema_id_of(each.as_py()) for each in columns["value"]], pa.int32())
    columns |= {"reason": reasons, "table": pa.array([table] * len(batch))}
    return pa.RecordBatch.from_arrays(
        [columns.get(field.name, pa.nulls(len(batch), field.type)) for field in schema], schema=schema
    )


def _bytes_of(column: pa.Array) -> pa.Array:
    """Return the bytes of keys or values; null where rows do not have them any more."""
    import pyarrow as pa
    from pyarrow import types

    if is_wrapped(column.type):
        children = column.flatten()
        column = children[2] if len(children) > 2 else pa.nulls(len(column), pa.binary())
    kind = column.type
    is_bytes = (
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_string(kind) or types.is_large_string(kind)
    )
    return column.cast(pa.binary()) if is_bytes else pa.nulls(len(column), pa.binary())


def schema_id_of(value: bytes | None) -> int | None:
    """Return the id in the first bytes of a value, if there is one."""
    if value is None or len(value) < 5 or value[0]:
        return None
    number = int.from_bytes(value[1:5], "big", signed=True)
    return number if number >= 0 else None
