"""Parquet files as rows of partitions: files, columns, and the partitions in each row group.

Columns have Spark's names: topic, partition, offset, timestamp, timestampType, key, value, headers; only value is
required. topic and partition may be directories instead (`topic=orders/partition=0/`), as Spark writes them. Offsets
are read first, without keys and values, to find unsorted and duplicate ones before anything is written.
"""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kwire.errors import LogError, OptionError
from kwire.extras import needing
from kwire.identifiers import TopicPartition
from kwire.log.files.file_names import check_topic
from kwire.maintenance.row_batches import TAKEN
from kwire.storage.driver_calls import LISTING_S, call
from kwire.storage.driver_errors import cause
from kwire.storage.store import FsspecFile, LocalFile, StoredFile

__all__ = ["Input", "LocalFiles", "Piece", "find_files", "open_input"]

ROWS_AT_ONCE = 1 << 16
HIVE = re.compile(r"(topic|partition)=([^/]*)")

Offsets = npt.NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class Piece:
    """The rows of one partition in one row group. low, high: offsets. is_ascending: offsets increase."""

    file: int
    row_group: int
    rows: int
    low: int
    high: int
    is_ascending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """One file. topic, partition: of its directories, if any."""

    path: str
    topic: str | None
    partition: int | None
    row_groups: int
    columns: frozenset[str]


def find_files(inputs: Sequence[str], storage_options: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return (LocalFiles or fsspec's driver, sorted paths) of files, directories and globs, local or on one URL.

    Names in directories that start with `_` or `.` are ignored, as in Spark. Raises LogError, OptionError.
    """
    files: list[str] = []
    first = None
    for text in inputs:
        if text.startswith("kafka://"):
            raise OptionError(f"{text}: a running cluster has no files; copy it with kwire log pull")
        try:
            fs, path = _driver(text, storage_options)
            if first is not None and type(fs) is not type(first):
                raise OptionError(f"{text}: not in the same file system as the other inputs")
            first = first or fs
            if any(c in path for c in "*?[") and not call(fs, "exists", path):
                names = [name for name in listed(fs, "glob", path) if call(fs, "isfile", name)]
            elif call(fs, "isdir", path):
                root = path.rstrip("/")
                names = [name for name in listed(fs, "find", path) if not is_hidden(name[len(root) :])]
            else:
                names = [path] if call(fs, "exists", path) else []
        except OptionError:  # MissingExtra is one
            raise
        except Exception as error:  # drivers raise any exception
            raise LogError(f"cannot be listed: {cause(error)}", text) from error
        if not names:
            raise OptionError(f"{text}: no Parquet files")
        files += sorted(str(name) for name in names)
    return first, list(dict.fromkeys(files))


class LocalFiles:
    """What is needed of fsspec's drivers, for local files where fsspec is not installed."""

    isfile, isdir, exists = map(staticmethod, (os.path.isfile, os.path.isdir, os.path.exists))

    def glob(self, path: str) -> list[str]:
        """Return the files and directories that match a pattern."""
        return glob.glob(path, recursive=True)

    def find(self, path: str) -> list[str]:
        """Return the files in a directory and below it."""
        return [os.path.join(folder, name) for folder, _, names in os.walk(path, onerror=_refuse) for name in names]

    def info(self, path: str) -> dict[str, int]:
        """Return the size of a file."""
        return {"size": os.path.getsize(path)}


def _refuse(error: OSError) -> NoReturn:
    raise error


def _driver(text: str, storage_options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return what reads a path or URL, and the path as it takes it. Raises MissingExtra, any exception of drivers."""
    if "::" not in text and ("://" not in text or text.startswith("file://")):
        return LocalFiles(), os.path.abspath(os.path.expanduser(text.removeprefix("file://")))
    with needing(text):
        import fsspec
    fs, path = fsspec.core.url_to_fs(text, **storage_options)
    return fs, str(path)


def listed(fs: Any, name: str, path: str) -> list[str]:
    """Return the paths that a listing of a driver has."""
    return [str(each) for each in call(fs, name, path, limit_s=LISTING_S)]


def _open(fs: Any, path: str) -> _Stream:
    return _Stream(LocalFile(path) if isinstance(fs, LocalFiles) else FsspecFile(fs, path, path))


class _Stream(io.RawIOBase):
    """A file for pyarrow, whose reads have deadlines."""

    def __init__(self, file: StoredFile) -> None:
        self._file, self._position = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size()}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        n = self._file.readinto(self._position, memoryview(buffer).cast("B"))
        self._position += n
        return n

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def is_hidden(path: str) -> bool:
    """Return whether a file is ignored: a name in its path starts with `_` or `.`, or it is not a .parquet file."""
    return any(part.startswith(("_", ".")) for part in path.split("/") if part) or not path.endswith(".parquet")


class Input:
    """Opened files. topic: of rows without one. has_offsets: whether the files have an offset column."""

    def __init__(self, fs: Any, files: Sequence[InputFile], topic: str | None) -> None:
        self._fs, self.files, self._topic = fs, files, topic
        with_offsets = {("offset" in file.columns) for file in files}
        if len(with_offsets) > 1:
            have = next(file.path for file in files if "offset" in file.columns)
            lack = next(file.path for file in files if "offset" not in file.columns)
            raise OptionError(f"{lack}: no column 'offset', which {have} has")
        self.has_offsets = with_offsets == {True}
        for file in files:
            if "value" not in file.columns:
                raise OptionError(f"{file.path}: no column 'value'; columns: {', '.join(sorted(file.columns))[:300]}")
            if file.topic is None and "topic" not in file.columns and topic is None:
                raise OptionError(f"{file.path}: no column 'topic' and no directory topic=...; set the topic")

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(int(call(self._fs, "info", file.path)["size"] or 0) for file in self.files)

    def pieces(self) -> dict[TopicPartition, list[Piece]]:
        """Return the pieces of each partition, in the order of files and row groups.

        Raises LogError with file and row group for invalid topics, partitions and offsets.
        """
        pieces: dict[TopicPartition, list[Piece]] = {}
        for number, file in enumerate(self.files):
            for row_group in range(file.row_groups):
                here: dict[TopicPartition, Piece] = {}
                for batch in self._read(number, row_group, ["topic", "partition", "offset"]):
                    for key, rows in self.split(batch, number, row_group):
                        self._note(here, key, self._offsets(batch, rows, number, row_group), number, row_group)
                for key, piece in here.items():
                    pieces.setdefault(key, []).append(piece)
        return pieces

    def _note(
        self, here: dict[TopicPartition, Piece], key: TopicPartition, offsets: Offsets, file: int, row_group: int
    ) -> None:
        ascending = bool(np.all(offsets[1:] > offsets[:-1]))
        low, high = int(offsets.min()), int(offsets.max())
        known = here.get(key)
        if known is None:
            here[key] = Piece(
                file=file, row_group=row_group, rows=len(offsets), low=low, high=high, is_ascending=ascending
            )
            return
        known.is_ascending &= ascending and int(offsets[0]) > known.high
        known.rows += len(offsets)
        known.low, known.high = min(known.low, low), max(known.high, high)

    def _offsets(self, batch: pa.RecordBatch, rows: npt.NDArray[np.intp] | None, file: int, row_group: int) -> Offsets:
        if not self.has_offsets:
            return np.arange(batch.num_rows if rows is None else len(rows), dtype=np.int64)
        column = batch.column("offset")
        if column.null_count or not pa.types.is_integer(column.type):
            self.refuse(
                file, row_group, f"column 'offset' is {column.type} with {column.null_count} nulls; expected integers"
            )
        offsets: Offsets = column.cast(pa.int64()).to_numpy()
        if rows is not None:
            offsets = offsets[rows]
        if offsets.min() < 0:
            self.refuse(file, row_group, f"offset {offsets.min()} is negative")
        return offsets

    def read(self, file: int, row_group: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group with all supported columns."""
        yield from self._read(file, row_group, ["topic", "partition", "offset", *TAKEN])

    def _read(self, number: int, row_group: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        file = self.files[number]
        names = [name for name in columns if name in file.columns]
        try:
            with _open(self._fs, file.path) as stream, pq.ParquetFile(stream) as parquet:
                if not names:  # topic and partition are in its path, and offsets are not needed
                    count = parquet.metadata.row_group(row_group).num_rows
                    yield pa.RecordBatch.from_arrays([pa.nulls(count)], ["nothing"])
                    return
                yield from parquet.iter_batches(ROWS_AT_ONCE, row_groups=[row_group], columns=names)
        except (OSError, pa.ArrowException) as error:
            raise LogError(f"row group {row_group}: {cause(error)}", file.path) from error

    def split(
        self, batch: pa.RecordBatch, file: int, row_group: int
    ) -> Iterator[tuple[TopicPartition, npt.NDArray[np.intp] | None]]:
        """Yield each partition with its row numbers, ascending; None if it has all rows."""
        if not batch.num_rows:
            return
        topics = self._codes(batch, "topic", file, row_group)
        partitions = self._codes(batch, "partition", file, row_group)
        if len(topics[0]) == 1 and len(partitions[0]) == 1:
            yield self._checked(topics[0][0], partitions[0][0], file, row_group), None
            return
        codes = topics[1] * len(partitions[0]) + partitions[1]
        order = np.argsort(codes, kind="stable")
        bounds = np.flatnonzero(np.diff(codes[order])) + 1
        for rows in np.split(order, bounds):
            code = int(codes[rows[0]])
            topic, partition = divmod(code, len(partitions[0]))
            yield self._checked(topics[0][topic], partitions[0][partition], file, row_group), rows

    def _codes(
        self, batch: pa.RecordBatch, name: str, file: int, row_group: int
    ) -> tuple[list[Any], npt.NDArray[np.int64]]:
        """Return (distinct values of a column, index of the value of each row)."""
        if name not in batch.schema.names:
            known = self.files[file]
            value = (known.topic or self._topic) if name == "topic" else known.partition
            return [0 if value is None else value], np.zeros(batch.num_rows, np.int64)
        column = batch.column(name)
        if column.null_count:
            self.refuse(file, row_group, f"{column.null_count} rows without {name}")
        encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)

    def _checked(self, topic: Any, partition: Any, file: int, row_group: int) -> TopicPartition:
        if not isinstance(topic, str) or not isinstance(partition, int):
            self.refuse(
                file, row_group, f"topic {topic!r:.300}, partition {partition!r:.40}: not a string and a number"
            )
        try:
            check_topic(topic, partition)
        except OptionError as error:
            self.refuse(file, row_group, str(error))
        return topic, partition

    def refuse(self, file: int, row_group: int, what: str) -> NoReturn:
        """Raise LogError with the file and the row group."""
        raise LogError(f"row group {row_group}: {what}", self.files[file].path)


def open_input(inputs: Sequence[str], topic: str | None, storage_options: Mapping[str, Any]) -> Input:
    """Open the Parquet files at paths, directories, globs or URLs. topic: of rows without one.

    Raises LogError for unreadable files, OptionError for missing files and columns.
    """
    fs, paths = find_files(inputs, storage_options)
    files = []
    for path in paths:
        try:
            with _open(fs, path) as stream, pq.ParquetFile(stream) as parquet:
                columns = frozenset(parquet.schema_arrow.names)
                row_groups = parquet.metadata.num_row_groups
        except (OSError, pa.ArrowException) as error:
            raise LogError(f"cannot be read as Parquet: {cause(error)}", path) from error
        named = {name: unquote(value) for name, value in HIVE.findall(os.path.dirname(path))}
        partition = named.get("partition")
        if partition is not None and not re.fullmatch("[0-9]{1,10}", partition, re.ASCII):
            raise LogError(f"partition={partition[:40]} in the path is not a number", path)
        files.append(
            InputFile(
                path=path,
                topic=named.get("topic"),
                partition=None if partition is None else int(partition),
                row_groups=row_groups,
                columns=columns,
            )
        )
    return Input(fs, files, topic)
