"""Arrow record batches from records as objects, without compiled code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kwire.records.columns.arrow_columns import COLUMN_TYPES, ConstantColumns
from kwire.records.columns.layout import LARGEST_MS
from kwire.records.format.default_batch import SMALLEST_RECORD_BYTES
from kwire.records.format.record import Record

__all__ = ["record_batch", "record_bytes", "runs"]


def runs(records: Sequence[Record], max_rows: int, max_bytes: int) -> Iterator[Sequence[Record]]:
    """Divide records into runs of at most max_rows and, beyond the first record, about max_bytes."""
    first = size = 0
    for index, record in enumerate(records):
        n_bytes = record_bytes(record)
        if index > first and (index - first == max_rows or size + n_bytes > max_bytes):
            yield records[first:index]
            first, size = index, 0
        size += n_bytes
    if first < len(records):
        yield records[first:]


def record_bytes(record: Record) -> int:
    """Return about how large a record is."""
    headers = sum(len(key) + len(value or b"") for key, value in record.headers)
    return SMALLEST_RECORD_BYTES + len(record.key or b"") + len(record.value or b"") + headers


def record_batch(records: Sequence[Record], schema: pa.Schema, constants: ConstantColumns) -> pa.RecordBatch:
    """Create the record batch of records: the columns of the schema."""
    return pa.RecordBatch.from_arrays([column(records, name, constants) for name in schema.names], schema=schema)


def column(records: Sequence[Record], name: str, constants: ConstantColumns) -> pa.Array:
    """Create the column of this name."""
    kind = COLUMN_TYPES[name]
    if name in ("topic", "partition"):
        return constants.column(name, len(records))
    if name == "timestamp":
        times = [record.timestamp for record in records]
        return pa.array([time * 1000 if -LARGEST_MS <= time <= LARGEST_MS else None for time in times], kind)
    if name == "timestampType":
        return pa.array([int(record.timestamp_type) for record in records], kind)
    if name == "headers":
        # null for records without headers, as in Spark
        headers = [[{"key": key, "value": value} for key, value in record.headers] or None for record in records]
        return pa.array(headers, kind)
    return pa.array([getattr(record, name) for record in records], kind)
