"""Work of tasks beside reading and writing: join small Arrow batches, and avoid delays that Spark's workers have.

small packets         held back by TCP: 40 ms a task
garbage collection    after each task, of all modules: 20 to 40 ms of CPU
archives              before each task, the contents of pyspark.zip and Spark's JAR are listed again: 100 ms of CPU
"""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.spark.decoded_columns import DecodedColumn

__all__ = [
    "SentToWorkers",
    "avoid_tcp_delays",
    "finish_rows",
    "join_small",
    "note_batch",
    "report_null_timestamps",
    "report_small_batches",
    "warm_up",
]

logger = logging.getLogger("kwire.spark")

JOINED_ROWS = 32768
JOINED_BYTES = 8 << 20

FEW_ROWS, FEW_BYTES = JOINED_ROWS // 2, JOINED_BYTES // 2
FULL_BATCHES = 8
"""Batches of one size after which a limit of Spark is assumed: it is not worth a word for a few rows."""

_frozen_modules = 0
_largest_batch = _full_batches = 0


def is_spark_worker() -> bool:
    """Return whether Spark's daemon has started this process. Source: PythonRunner sets SPARK_REUSE_WORKER."""
    return "SPARK_REUSE_WORKER" in os.environ


def warm_up() -> None:
    """Make the next tasks of this process cheaper. Without work it returns immediately.

    Call it in each task, and where the driver's processes have imported what they need: they serve the next query, too.
    Does nothing in a process that is not a worker of Spark's daemon.
    """
    if is_spark_worker():
        freeze_modules()
        keep_archives()


def freeze_modules() -> None:
    """Exclude the objects that exist now from garbage collection if modules were imported since the last call.

    Spark's daemon runs a full collection after each task, and after each call of a driver's process: 20 to 40 ms of CPU
    for the modules of PySpark and pyarrow, which never become garbage. A task that starts meanwhile waits for it.
    Source: pyspark.daemon, manager().
    """
    global _frozen_modules
    if len(sys.modules) > _frozen_modules:
        _frozen_modules = len(sys.modules)
        gc.collect()
        gc.freeze()


def keep_archives() -> None:
    """Keep the list of what is in each archive on the path until the archive changes.

    Spark calls importlib.invalidate_caches() before each task, after which Python lists every archive on its path
    again, in plain Python. That is 0.1 s of CPU for pyspark.zip and Spark's JAR, which are on the path unless
    bin/python3 is used.
    Source: PySpark's worker_util.setup_spark_files; zipimport.
    """
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, zipimport.zipimporter) and "invalidate_caches" not in vars(finder):
            with suppress(OSError):
                vars(finder)["invalidate_caches"] = _invalidate_changed(finder, _version(finder.archive))


def _invalidate_changed(finder: zipimport.zipimporter, version: tuple[int, int]) -> Callable[[], None]:
    """Return an invalidate_caches() for an archive that was listed when it had this version."""

    def invalidate_caches() -> None:
        nonlocal version
        try:
            current = _version(finder.archive)
        except OSError:
            current = (0, 0)
        if current != version:
            version = current
            zipimport.zipimporter.invalidate_caches(finder)

    return invalidate_caches


def _version(file: str) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_mtime_ns, status.st_size


class SentToWorkers:
    """A reader or writer: Spark pickles it and sends it to the worker of each task, before the input of the task."""

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        avoid_tcp_delays()


def avoid_tcp_delays() -> None:
    """Acknowledge at once what Spark's JVM has sent, so that the rest of the task follows, and answer at once.

    The JVM sends a task in several small packets. TCP holds back each of them until the one before is acknowledged
    (Nagle's algorithm), and Linux delays the acknowledgment by 40 ms, to send it with an answer. So a worker must call
    this before it waits for its input; Linux delays acknowledgments again after the worker has sent something.
    Does nothing on other systems, and in a process that is not a worker of Spark's daemon.
    Source: tcp(7), TCP_QUICKACK; PySpark's worker.main.
    """
    if not is_spark_worker() or sys.platform != "linux" or socket.getdefaulttimeout() is not None:
        return  # with a default timeout, a socket object would make its descriptor non-blocking
    for descriptor in _connections():
        with suppress(OSError):
            connection = socket.socket(fileno=descriptor)
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            finally:
                connection.detach()


@cache
def _connections() -> Sequence[int]:
    """Return the descriptors of this process's TCP connections at the first call: that to Spark's JVM."""
    descriptors = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # not a socket
            connection = socket.socket(fileno=int(name))
            if connection.family in (socket.AF_INET, socket.AF_INET6) and connection.type == socket.SOCK_STREAM:
                descriptors.append(int(name))
            connection.detach()
    return descriptors


def finish_rows(
    read: Callable[[tuple[str, ...]], Iterable[pa.RecordBatch]],
    columns: tuple[str, ...],
    decoded: Mapping[str, DecodedColumn],
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a task as a query gets them. read: returns the columns of records that it is called with."""
    if not decoded:
        return join_small(report_null_timestamps(read(columns)))
    from kwire.spark.decoded_columns import columns_to_read, decode_batches

    batches = join_small(report_null_timestamps(read(columns_to_read(columns, decoded))))
    return decode_batches(batches, columns, decoded)


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


def report_small_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass on batches that Spark makes of rows, and report a limit of Spark as note_batch() does."""
    for batch in batches:
        note_batch(batch.columns)
        yield batch


def note_batch(columns: Sequence[pa.Array]) -> None:
    """Log one warning if Spark's settings divide small rows into many batches: a batch costs 0.2 ms.

    columns: of a batch that Spark has made of rows. A process logs it once.
    """
    global _largest_batch, _full_batches
    rows = len(columns[0]) if columns else 0
    if _full_batches >= FULL_BATCHES or rows < _largest_batch:
        return  # reported, or the last batch of a task
    if rows > _largest_batch:
        _largest_batch, _full_batches = rows, 0
    size = sum(each.nbytes for each in columns)
    if rows >= FEW_ROWS or size >= FEW_BYTES:
        return
    _full_batches += 1
    if _full_batches == FULL_BATCHES:
        logger.warning(
            "Spark divides rows into Arrow batches of %d rows, %d KiB each, and each costs CPU time; for small rows, "
            "set spark.sql.execution.arrow.maxRecordsPerBatch to 50000 and spark.sql.execution.arrow.maxBytesPerBatch "
            "to 2147483647",
            *(rows, size >> 10),
        )


def report_null_timestamps(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Log one warning if batches of a task have timestamps that do not fit Spark's type, and are null therefore."""
    is_reported = False
    for batch in batches:
        if not is_reported and "timestamp" in batch.schema.names and batch.column("timestamp").null_count:
            import pyarrow.compute as pc

            lost = pc.is_null(batch.column("timestamp"))
            if "_corrupt" in batch.schema.names:  # in mode PERMISSIVE, a row of a corrupt batch has no timestamp
                lost = pc.and_(lost, pc.is_null(batch.column("_corrupt")))
            first = pc.index(lost, value=True).as_py()
            if first >= 0:
                is_reported = True
                row = batch.slice(first, 1).to_pylist()[0]
                names = [name for name in ("topic", "partition", "offset") if name in row]
                where = ", ".join(f"{name} {row[name]}" for name in names)
                logger.warning(
                    "%sthe timestamp of a record is outside of the range of Spark's timestamps and becomes null, like "
                    "others of this task; rows with a null timestamp belong to no window",
                    f"{where}: " if where else "",
                )
        yield batch
