"""What reading tasks do beside reading: join small Arrow batches, and keep Spark's garbage collections short."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["freeze_modules", "join_small"]

JOINED_ROWS = 32768
JOINED_BYTES = 8 << 20

_is_frozen = False


def freeze_modules() -> None:
    """Exclude the objects that exist now from garbage collection, at the first task of a Python worker.

    Spark's daemon runs a full collection after each task: 40 ms of CPU for the modules of PySpark and pyarrow, which
    never become garbage. Does nothing in a process that is not a worker of that daemon.
    Source: pyspark.daemon, manager(); PythonRunner sets SPARK_REUSE_WORKER.
    """
    global _is_frozen
    if not _is_frozen and "SPARK_REUSE_WORKER" in os.environ:
        _is_frozen = True
        gc.collect()
        gc.freeze()


def join_small(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join consecutive batches into batches of up to JOINED_ROWS rows and JOINED_BYTES bytes.

    A batch costs the JVM and the worker 0.2 ms, whatever its size, so small partitions would cost more than their rows.
    The first batch is not delayed, because a query with a limit may need no other.
    """
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    rows = n_bytes = 0
    is_first = True
    for batch in batches:
        size = 0 if batch.num_rows >= JOINED_ROWS else batch.nbytes
        is_large = is_first or batch.num_rows >= JOINED_ROWS or size >= JOINED_BYTES
        is_first = False
        if waiting and (is_large or rows + batch.num_rows > JOINED_ROWS or n_bytes + size > JOINED_BYTES):
            yield waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)
            waiting, rows, n_bytes = [], 0, 0
        if is_large:
            yield batch
        else:
            waiting.append(batch)
            rows, n_bytes = rows + batch.num_rows, n_bytes + size
    if waiting:
        yield waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)
