"""A directory of Parquet files that a streaming query writes, with the log that Spark's own file sink has.

    part-TASK-QUERY-BATCH-UUID.parquet    data files, also of tasks and micro-batches that were killed
    _spark_metadata/7                     the committed files of micro-batch 7: `v1`, then a JSON object for each
    _spark_metadata/9.compact             every tenth one has the files of all micro-batches so far
    _spark_metadata/query                 the id of the query and its columns; readers ignore it

Spark reads the files that the log has, and no others. A micro-batch is committed by creating its file in the log, which
fails if the file exists. Log files that a compaction has replaced are removed with the next one.
Source: Spark's FileStreamSink, FileStreamSinkLog, CompactibleFileStreamLog, MetadataLogFileIndex.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kwire.errors import TableError
from kwire.lake.data_files import WrittenFile
from kwire.lake.state import Mark

__all__ = ["COMPACT_EVERY", "LOG", "ParquetDirectory", "ParquetState", "committed_files"]

LOG, QUERY = "_spark_metadata", "query"
VERSION, COMPACT = "v1", ".compact"
COMPACT_EVERY = 10  # spark.sql.streaming.fileSink.log.compactInterval, which readers take from the log
BLOCK_BYTES = 32 << 20  # of Hadoop's local file system; Spark reads files in parts of other sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetState:
    """What the log has. query: None before the first commit. columns: of it. batch: the last one, -1 without one."""

    query: str | None = None
    columns: str = ""
    batch: int = -1

    def check_columns(self, columns: str, directory: str) -> None:
        """Raise TableError if files with other columns are committed: readers take the columns of any file."""
        if self.query is not None and self.columns != columns:
            raise TableError(
                f"its files have the columns {self.columns}, and the query writes {columns}; write to an empty "
                "directory, with a new checkpoint",
                directory,
            )

    def is_done(self, mark: Mark, directory: str) -> bool:
        """Return whether a micro-batch is committed. Raises TableError if it does not follow the last one."""
        if self.query not in (None, mark.query):
            raise TableError(
                f"another query, with the id {self.query}, has written it; continue with the checkpoint of that query, "
                "or write to an empty directory",
                directory,
            )
        if mark.batch < self.batch:
            raise TableError(
                f"micro-batch {mark.batch} precedes micro-batch {self.batch}, which is committed: the checkpoint is "
                "older than the directory; restore a newer one, or start with a new one and an empty directory",
                directory,
            )
        if mark.batch > self.batch + 1:
            raise TableError(
                f"micro-batch {mark.batch} does not follow micro-batch {self.batch}, the last one of its log: files "
                "were removed, or the checkpoint has written elsewhere; start with a new one and an empty directory",
                directory,
            )
        return mark.batch == self.batch


class ParquetDirectory:
    """A directory at a local path. Methods raise TableError."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._log = os.path.join(self.path, LOG)

    def prepare(self) -> None:
        """Create the directory and its log. Raises TableError if it has files that readers would no longer see."""
        with self._errors():
            if os.path.isdir(self._log):
                return
            os.makedirs(self.path, exist_ok=True)
            others = sorted(name for name in os.listdir(self.path) if not name.startswith(("_", ".")))
            if others:
                raise TableError(
                    f"it has files of another writer ('{others[0]}'), which Spark would not read any more beside the "
                    f"log {LOG}; write to an empty directory",
                    self.path,
                )
            os.makedirs(self._log, exist_ok=True)

    def state(self) -> ParquetState:
        """Return the query and its last micro-batch."""
        with self._errors():
            last = max(self._batches(), default=-1)
            try:
                query = json.loads(Path(self._log, QUERY).read_text())
            except FileNotFoundError:
                if last >= 0:
                    raise TableError(
                        f"its log {LOG} is of another writer, which may be Spark's sink; write to an empty directory",
                        self.path,
                    ) from None
                return ParquetState()
            return ParquetState(query=str(query["id"]), columns=str(query["columns"]), batch=last)

    def files(self) -> list[str]:
        """Return the paths of the committed files, in the order of micro-batches."""
        with self._errors():
            return [_path_of(entry["path"]) for entry in self._entries(max(self._batches(), default=-1))]

    def commit(self, files: Sequence[WrittenFile], mark: Mark, columns: str) -> bool:
        """Commit the files of a micro-batch, with these columns; return False, and delete them, if it is committed."""
        with self._errors():
            state = self.state()
            if state.is_done(mark, self.path):
                self.discard(files)
                return False
            if state.query is None:
                self._create(QUERY, json.dumps({"id": mark.query, "columns": columns}))
            entries = [_entry(each) for each in files]
            is_compact = (mark.batch + 1) % COMPACT_EVERY == 0
            if is_compact:
                entries = [*self._entries(mark.batch - 1), *entries]
            lines = (VERSION, *(json.dumps(each, separators=(",", ":")) for each in entries))
            self._create(f"{mark.batch}{COMPACT if is_compact else ''}", "\n".join(lines))
            if is_compact:
                self._remove_before(mark.batch - COMPACT_EVERY)
            return True

    def discard(self, files: Sequence[WrittenFile]) -> None:
        """Delete files that are not committed; those that cannot be deleted stay."""
        for each in files:
            with suppress(OSError):
                os.unlink(each.path)

    def _batches(self) -> dict[int, str]:
        """Return the names of the log's files by micro-batch."""
        found = {}
        with suppress(FileNotFoundError):
            for name in os.listdir(self._log):
                number = name.removesuffix(COMPACT)
                if number.isascii() and number.isdecimal():
                    found[int(number)] = name
        return found

    def _entries(self, last: int) -> list[Mapping[str, Any]]:
        """Return the entries of all micro-batches up to one."""
        names = self._batches()
        first = max((each for each in names if each <= last and names[each].endswith(COMPACT)), default=0)
        entries = []
        for batch in range(first, last + 1):
            if batch not in names:
                raise TableError(f"its log lacks micro-batch {batch}, so its files are not known", self.path)
            version, *lines = Path(self._log, names[batch]).read_text().split("\n")
            if version != VERSION:
                raise TableError(f"{LOG}/{names[batch]}: expected version {VERSION}, got '{version[:20]}'", self.path)
            entries += [json.loads(line) for line in lines if line]
        return entries

    def _create(self, name: str, text: str) -> None:
        """Create a file of the log as a whole, and make it durable. Raises TableError if it exists."""
        final, temporary = os.path.join(self._log, name), os.path.join(self._log, f".{name}.{uuid.uuid4()}.tmp")
        try:
            with open(temporary, "x") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(temporary, final)
            except FileExistsError:
                raise TableError(
                    f"another process has committed {LOG}/{name} meanwhile; one checkpoint is used by two queries, or "
                    "one directory",
                    self.path,
                ) from None
        finally:
            with suppress(OSError):
                os.unlink(temporary)
        directory = os.open(self._log, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _remove_before(self, batch: int) -> None:
        for each, name in self._batches().items():
            if each < batch:
                with suppress(OSError):
                    os.unlink(os.path.join(self._log, name))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TableError(f"its log cannot be read or written: {error}", self.path) from error


def committed_files(path: str) -> list[str]:
    """Return the files that a streaming query has committed to a directory, for readers that do not read its log.

    Raises TableError.
    """
    directory = ParquetDirectory(path)
    if not os.path.isdir(os.path.join(directory.path, LOG)):
        raise TableError(f"it has no {LOG}, so it is not known which of its files are committed", directory.path)
    return directory.files()


def _entry(file: WrittenFile) -> Mapping[str, Any]:
    """Return a file as Spark's SinkFileStatus."""
    return {
        "path": Path(file.path).as_uri(),
        "size": file.size_bytes,
        "isDir": False,
        "modificationTime": file.facts["modified_ms"],
        "blockReplication": 1,
        "blockSize": BLOCK_BYTES,
        "action": "add",
    }


def _path_of(url: str) -> str:
    return unquote(urlsplit(url).path)
