"""The same bytes through the object path and the columnar path, in comparable form."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from kwire import native
from kwire.errors import CorruptBatch
from kwire.records import ColumnReader, Record, read_batches
from kwire.records.format import default_batch, legacy_batch

LARGEST_MS = (2**63 - 1) // 1000
COLUMNS = ("key", "value", "offset", "timestamp", "timestampType", "headers")

Row = tuple[Any, ...]  # (offset, timestamp in ms or None, type's number, key, value, headers)


class Outcome(NamedTuple):
    """The rows of valid batches and the errors of corrupt ones, in order."""

    rows: list[Row]
    errors: list[str]


def through_objects(buf: bytes | memoryview, **settings: Any) -> Outcome:
    """Read with read_batches, compiled and in Python, which must give the same; a corrupt batch has no rows."""
    compiled = read_objects(buf, **settings)
    with without_compiled_code():
        assert read_objects(buf, **settings) == compiled
    rows = [
        (r.offset, in_arrow(r.timestamp), int(r.timestamp_type), r.key, r.value, r.headers)
        for batch in compiled
        if batch.error is None and not batch.is_control
        for r in batch.records
    ]
    return Outcome(rows, [batch.error for batch in compiled if batch.error is not None])


class ReadBatch(NamedTuple):
    """What is read of a batch: the records before the error, if there is one."""

    records: list[Record]
    is_control: bool
    error: str | None


def read_objects(buf: bytes | memoryview, **settings: Any) -> list[ReadBatch]:
    """Read with read_batches; an error of the record set is that of a last batch without records."""
    found: list[ReadBatch] = []
    try:
        for batch in read_batches(buf, **settings):
            records: list[Record] = []
            error = None
            try:
                batch.check()
                records.extend(batch.records())
            except CorruptBatch as corrupt:
                error = str(corrupt)
                with contextlib.suppress(CorruptBatch):  # those before the fault
                    records.extend(batch.records(check_crc=False))
            found.append(ReadBatch(records, batch.is_control, error))
    except CorruptBatch as corrupt:
        found.append(ReadBatch([], False, str(corrupt)))
    return found


@contextlib.contextmanager
def without_compiled_code() -> Iterator[None]:
    """Read records as without the extension module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "LEVEL", None)
        patch.setattr(native, "HAS_CRC32C", False)
        for module in (default_batch, legacy_batch):
            patch.setattr(module, "factory", lambda: None)
        yield


def through_columns(buf: bytes | memoryview, position: int = 0, file: str | None = None, **settings: Any) -> Outcome:
    """Read with ColumnReader, compiled and in Python, which must give the same."""
    compiled = read_columns(buf, position, file, **settings)
    with without_compiled_code():
        assert read_columns(buf, position, file, **settings) == compiled
    return compiled


def read_columns(buf: bytes | memoryview, position: int, file: str | None, **settings: Any) -> Outcome:
    """Read with ColumnReader, and validate each record batch."""
    rows: list[Row] = []
    errors: list[str] = []
    reader = ColumnReader(COLUMNS, on_corrupt=lambda error: errors.append(str(error)), **settings)
    for batch in reader.read(buf, position=position, file=file):
        batch.validate(full=True)
        rows += rows_of(batch)
    return Outcome(rows, errors)


def rows_of(batch: Any) -> list[Row]:
    """Return the rows of a record batch with COLUMNS."""
    times = batch.column(3).cast("int64").to_pylist()
    headers = [[(h["key"], h["value"]) for h in row or []] for row in batch.column(5).to_pylist()]
    keys, values, offsets, types = (batch.column(i).to_pylist() for i in (0, 1, 2, 4))
    in_ms = [None if time is None else time // 1000 for time in times]
    return list(zip(offsets, in_ms, types, keys, values, headers, strict=True))


def in_arrow(timestamp: int) -> int | None:
    """Return a timestamp as in columns: null if microseconds do not fit."""
    return timestamp if -LARGEST_MS <= timestamp <= LARGEST_MS else None


def through_both(buf: bytes, **settings: Any) -> Outcome:
    """Return the outcome of both paths, which must be equal."""
    objects, columns = through_objects(buf, **settings), through_columns(buf, **settings)
    assert columns == objects
    return objects
