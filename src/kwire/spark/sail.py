"""Sail, which runs PySpark programs without a JVM: what it does otherwise than Spark with a Python data source.

    schema      Sail reads types from DDL without arrays and the zone of timestamps, and from a StructType without
                timestamps (PySpark 4.2), but also any object that exports an Arrow schema: arrow_types.Ddl
    reader      Sail passes a pyarrow.Schema where Spark passes a StructType
    types       batches must have the declared types to the letter: names of elements, zones of timestamps
    batches     a task blocks at its 17th unread batch and holds the interpreter lock, which every reader, every Python
                function and a client in the same process need: the query then hangs. Tasks therefore return few batches
    tasks       all tasks of a query start immediately, as threads of one process: ReadAhead limits what they read

Docs: docs/sail.md. Source: Sail 0.7, crates/sail-data-source/src/formats/python: executor.rs, stream.rs (channel(16)
and blocking_send inside Python::attach), arrow_utils.rs (validate_schema).
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar, cast

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

__all__ = ["SailReader", "few_batches", "is_sail", "on_both_engines", "struct_type"]

# The first batches are returned unchanged; after them, the minimum size doubles from batch to batch.
BATCHES_AS_READ = 7
COMBINED_BYTES = 16 << 20
LARGEST_BYTES = 1 << 30  # a column of strings ends at 2 GiB

READERS = max(4, os.cpu_count() or 1)
STALL_S = 2.0
POLL_S = 0.005

Source = TypeVar("Source", bound=DataSource)


def is_sail(schema: StructType | pa.Schema) -> bool:
    """Return whether the engine that passes this schema is Sail."""
    return not isinstance(schema, StructType)


def struct_type(schema: StructType | pa.Schema) -> StructType:
    """Return the schema that an engine passes as a StructType."""
    if isinstance(schema, StructType):
        return schema
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def on_both_engines(
    reader: Callable[[Source, StructType], DataSourceReader],
) -> Callable[[Source, StructType], DataSourceReader]:
    """Decorate DataSource.reader of Spark, so that Sail can call it too."""

    @functools.wraps(reader)
    def for_either(self: Source, schema: StructType | pa.Schema) -> DataSourceReader:
        made = reader(self, struct_type(schema))
        return SailReader(made, schema) if is_sail(schema) else made

    return for_either


class SailReader(DataSourceReader):
    """Reads a query on Sail. reader: Spark's. schema: as declared to Sail."""

    def __init__(self, reader: DataSourceReader, schema: pa.Schema) -> None:
        self.reader, self.schema = reader, schema

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks; called once, in the server."""
        return self.reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task; called in a thread of the server or of a worker."""
        batches = cast("Iterator[pa.RecordBatch]", self.reader.read(partition))
        return few_batches(read_ahead.limit(batch.cast(self.schema) for batch in batches))


class ReadAhead:
    """Limits what the tasks of a process read before the query takes it.

    readers: tasks that read at a time. max_bytes: of Arrow memory that is in use, most of it batches that the query has
    not released. A query may keep all rows, as a sort does: if nothing is released for stall_s, the limit is doubled.
    """

    def __init__(self, readers: int, max_bytes: int, stall_s: float) -> None:
        self.max_bytes = self._limit = max_bytes
        self.stall_s = stall_s
        self._slots = threading.Semaphore(readers)

    def limit(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass on the batches of one task."""
        with self._slots:
            for batch in batches:
                self._wait()
                yield batch

    def _wait(self) -> None:
        import pyarrow as pa

        used = lowest = pa.total_allocated_bytes()
        if used < self.max_bytes:
            self._limit = self.max_bytes
        since = time.monotonic()
        while used > self._limit:
            time.sleep(POLL_S)
            used = pa.total_allocated_bytes()
            if used < lowest:
                lowest, since = used, time.monotonic()
            elif time.monotonic() - since > self.stall_s:
                self._limit = 2 * used


read_ahead = ReadAhead(READERS, READERS * (256 << 20), STALL_S)


def few_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine the later batches of a task, so that it has at most 16 unless it has more than 4 GiB of rows."""
    import pyarrow as pa

    returned, size = 0, 0
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        size += batch.nbytes
        if returned < BATCHES_AS_READ or size >= min(COMBINED_BYTES << (returned - BATCHES_AS_READ), LARGEST_BYTES):
            yield pending[0] if len(pending) == 1 else pa.concat_batches(pending)
            returned, pending, size = returned + 1, [], 0
    if pending:
        yield pa.concat_batches(pending)
