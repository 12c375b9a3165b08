"""Data files: Arrow batches as Parquet, a file for each partition of the table, written by a task.

A FilePlan comes from the driver and says where files go and what is recorded of them; the writer knows no table format.
Rows are buffered to make row groups of a useful size. Files without a commit are not part of the table.
"""

from __future__ import annotations

import errno
import os
import re
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kwire.errors import TableError
from kwire.identifiers import TopicPartition
from kwire.lake.arrow_columns import conform, has_long_value, newest_of, offsets_of
from kwire.lake.dictionaries import repeating_columns
from kwire.lake.offset_ranges import Spans, hull_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

W_co = TypeVar("W_co", covariant=True)

__all__ = [
    "BatchWriter",
    "FilePlan",
    "FileWriter",
    "PartitionValues",
    "TaskFiles",
    "TaskWriter",
    "WrittenFile",
    "without_colors",
    "write_all",
    "write_files",
]

ROW_GROUP_BYTES = 64 << 20  # Arrow memory; about 20 MiB of Parquet
ROW_GROUP_ROWS = 1 << 20
BUFFER_BYTES = 256 << 20  # of all partitions of a task
MAX_OPEN_FILES = 64
LARGE_VALUE_BYTES = 8 << 20  # a file with such a value has no statistics

COLORS = re.compile(r"\x1b\[[\d;]*m")
TOO_LONG = (os.strerror(errno.ENAMETOOLONG), "KeyTooLong")
"""Errors of file systems, and of S3, for names that have values of partitions."""

PartitionValues = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A data file that is not yet committed. path: as the table's metadata has it. facts: of the format; pickles."""

    path: str
    size_bytes: int
    rows: int
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFiles:
    """The files of a task. spans: from the first to the last offset of its rows.

    dead: files of a table of dead letters. dead_rows: number of rows of partitions that are not in `files`. newest_us:
    highest timestamp of a row, with a column `timestamp`. known_rows: as of RecordFiles.
    """

    files: Sequence[WrittenFile] = ()
    spans: Spans = field(default_factory=dict)
    dead: Sequence[WrittenFile] = ()
    dead_rows: Mapping[TopicPartition, int] = field(default_factory=dict)
    newest_us: int | None = None
    known_rows: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(each.rows for each in self.files)


class FilePlan(Protocol):
    """How tasks write files of one table. Picklable.

    table: its name, for errors. table_id: its id, for the commit. sort_by: columns that rows of a file are sorted by,
    with the order, "ascending" or "descending".
    """

    table: str
    table_id: str
    target_bytes: int
    sort_by: tuple[tuple[str, str], ...] = ()

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of a row of the table."""

    @property
    @abstractmethod
    def parquet_options(self) -> Mapping[str, Any]:
        """Arguments of pyarrow's ParquetWriter."""

    @abstractmethod
    def split(self, rows: pa.RecordBatch) -> Iterator[tuple[PartitionValues, pa.RecordBatch]]:
        """Return the rows of each partition of the table; a batch has the columns that its file has."""

    @abstractmethod
    def create(self, partition: PartitionValues, task: int) -> tuple[str, pa.NativeFile]:
        """Create a file with a unique name; return its path and a stream. Raises TableError."""

    @abstractmethod
    def written(
        self, path: str, partition: PartitionValues, size_bytes: int, footer: parquet.FileMetaData
    ) -> WrittenFile:
        """Describe a complete file."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file that is not committed. Raises OSError."""


def write_files(batches: Iterable[pa.RecordBatch], plan: FilePlan, *, task: int = 0) -> TaskFiles:
    """Write the rows of one task. task: its number, which is part of file names.

    Raises TableError; the files written so far are then deleted.
    """
    return write_all(BatchWriter(plan, task), batches)


class TaskWriter(Protocol[W_co]):
    """Writes the rows of one task, batch by batch."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Write rows."""

    def close(self) -> W_co:
        """Complete the files and return them."""

    def discard(self) -> None:
        """Delete all files."""


def write_all(writer: TaskWriter[W_co], batches: Iterable[pa.RecordBatch]) -> W_co:
    """Write all rows of a task. Raises what the writer does; all files are then deleted."""
    try:
        for batch in batches:
            writer.add(batch)
        return writer.close()
    except BaseException:
        writer.discard()
        raise


class BatchWriter:
    """Writes the rows of a task, batch by batch, with the columns of the table."""

    def __init__(self, plan: FilePlan, task: int = 0) -> None:
        self._plan, self._writer = plan, FileWriter(plan, task)
        self._spans, self._newest = Spans(), list[int]()

    @property
    def size_bytes(self) -> int:
        """Arrow memory of the rows that are buffered."""
        return self._writer.size_bytes

    def add(self, batch: pa.RecordBatch) -> None:
        """Write rows. Raises TableError."""
        if not len(batch):
            return
        self._spans = hull_of([self._spans, offsets_of(batch)])
        self._newest = sorted({*self._newest, *newest_of(batch)})[-1:]
        with self._as_table_errors():
            for partition, rows in self._plan.split(conform(batch, self._plan.schema, self._plan.table)):
                self._writer.add(partition, rows)

    def flush(self) -> None:
        """Write all rows that are buffered. Raises TableError."""
        with self._as_table_errors():
            self._writer.flush()

    def close(self) -> TaskFiles:
        """Complete the files and return them. Raises TableError."""
        with self._as_table_errors():
            files = self._writer.close()
        return TaskFiles(files=files, spans=self._spans, newest_us=self._newest[-1] if self._newest else None)

    def discard(self) -> None:
        """Delete all files."""
        self._writer.discard()

    @contextmanager
    def _as_table_errors(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (OSError, pa.ArrowException) as error:
            what = without_colors(str(error))
            raise TableError(f"a data file cannot be written: {what}", self._plan.table) from error


def without_colors(text: str) -> str:
    """Return the text of an error without the escape sequences that delta-rs puts into its texts."""
    return COLORS.sub("", text)


class FileWriter:
    """Buffers and writes the rows of a task. size_bytes: Arrow memory of the rows that are buffered."""

    def __init__(self, plan: FilePlan, task: int) -> None:
        self._plan, self._task = plan, task
        self._buffers: dict[PartitionValues, _Buffer] = {}
        self._files: dict[PartitionValues, _OpenFile] = {}
        self._written: list[WrittenFile] = []
        self.size_bytes = 0

    def add(self, partition: PartitionValues, rows: pa.RecordBatch) -> None:
        """Buffer rows; write what is large enough."""
        buffer = self._buffers.setdefault(partition, _Buffer())
        buffer.add(rows)
        self.size_bytes += rows.nbytes
        limit = min(ROW_GROUP_BYTES, max(self._plan.target_bytes, 1))
        if buffer.size_bytes >= limit or buffer.rows >= ROW_GROUP_ROWS:
            self._write(partition)
        while self.size_bytes > BUFFER_BYTES:
            self._write(max(self._buffers, key=lambda each: self._buffers[each].size_bytes))

    def flush(self) -> None:
        """Write all rows that are buffered."""
        for partition in list(self._buffers):
            self._write(partition)

    def close(self) -> list[WrittenFile]:
        """Write what is buffered and return all files."""
        for partition in list(self._buffers):
            self._write(partition)
            self._finish(partition)
        for partition in list(self._files):
            self._finish(partition)
        return self._written

    def discard(self) -> None:
        """Delete all files."""
        paths = [each.path for each in self._written]
        for file in self._files.values():
            file.abandon()
            paths.append(file.path)
        for path in paths:
            with suppress(Exception):
                self._plan.delete(path)

    def _write(self, partition: PartitionValues) -> None:
        import pyarrow as pa

        buffer = self._buffers.pop(partition)
        self.size_bytes -= buffer.size_bytes
        rows = pa.Table.from_batches(buffer.batches)
        if self._plan.sort_by:
            rows = rows.sort_by(list(self._plan.sort_by))
        if partition not in self._files and len(self._files) >= MAX_OPEN_FILES:
            self._finish(max(self._files, key=lambda each: self._files[each].position))
        file = self._files.get(partition)
        is_large = has_long_value(rows, LARGE_VALUE_BYTES)
        if file is not None and is_large and not file.is_large:
            self._finish(partition)
            file = None
        if file is None:
            file = self._files[partition] = _OpenFile(self._plan, partition, self._task, rows, is_large)
        file.writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        if self._plan.sort_by or file.position >= self._plan.target_bytes:  # a sorted file is sorted as a whole
            self._finish(partition)

    def _finish(self, partition: PartitionValues) -> None:
        if partition in self._files:
            self._written.append(self._files[partition].finish(self._plan))
            del self._files[partition]


def _create(plan: FilePlan, partition: PartitionValues, task: int) -> tuple[str, pa.NativeFile]:
    """Create a file, as the plan does. Raises TableError."""
    try:
        return plan.create(partition, task)
    except TableError as error:
        if not any(each in str(error.__cause__) for each in TOO_LONG):
            raise
        length = max(len(value) for value in partition if isinstance(value, str | bytes))
        raise TableError(
            f"a column that it is partitioned by has a value of length {length}, which is too long for the name of a "
            "directory; partition by a column of short values, or an Iceberg table by bucket(N, column)",
            plan.table,
        ) from error


class _Buffer:
    """Rows of one partition that are not written yet."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.size_bytes = self.rows = 0

    def add(self, rows: pa.RecordBatch) -> None:
        self.batches.append(rows)
        self.size_bytes += rows.nbytes
        self.rows += len(rows)


class _OpenFile:
    """A file that is being written. rows: its first ones. is_large: it may have large values."""

    def __init__(self, plan: FilePlan, partition: PartitionValues, task: int, rows: pa.Table, is_large: bool) -> None:
        from pyarrow import parquet

        self.partition, self.is_large = partition, is_large
        # Parquet's writer copies values to compare and to look them up: 600 MB for one of 100 MB.
        more: dict[str, Any] = {"use_dictionary": [] if is_large else repeating_columns(rows)}
        if is_large:
            more["write_statistics"] = False
        self.path, self.stream = _create(plan, partition, task)
        self.writer = parquet.ParquetWriter(self.stream, rows.schema, **plan.parquet_options, **more)

    @property
    def position(self) -> int:
        """Bytes written so far."""
        return int(self.stream.tell())

    def abandon(self) -> None:
        """Close the file, which is to be deleted, the writer first: collected later, it would print an error.

        Errors are ignored: the one before is the one to report.
        """
        with suppress(Exception):
            self.writer.close()
        with suppress(Exception):
            self.stream.close()

    def finish(self, plan: FilePlan) -> WrittenFile:
        """Complete the file."""
        self.writer.close()
        size = self.position
        self.stream.close()
        return plan.written(self.path, self.partition, size, self.writer.writer.metadata)
