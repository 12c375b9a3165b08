"""The writer of `kafka-log`: a DataFrame as a log directory on which a broker boots.

    DIR.tasks-<job>/       the output of tasks: a file of encoded batches for each attempt
    DIR.new-<job>.part     the driver's commit: logs of these batches, by kwire.maintenance.encoded_runs
    DIR                    renamed from it when everything is on disk
    DIR.old-<job>          with overwrite: the previous directory, until it is replaced

DIR is never incomplete, and abort() removes all other files. Planning does not import pyarrow. See
docs/spark.md.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from kwire.errors import LogError, OptionError
from kwire.log.files.file_names import MARKED_DIRECTORY, parse_partition_directory
from kwire.spark.log.write_options import LogWriteOptions
from kwire.spark.plain_errors import plain_errors
from kwire.spark.process.worker import SentToWorkers, warm_up
from kwire.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
)
from kwire.storage.directory_lock import LOCK_FILE, DirectoryLock
from kwire.storage.file_system import FileSystem
from kwire.storage.staged_directory import remove_tree

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.maintenance.encoded_runs import EncodedRun

__all__ = ["LogWriter", "TaskFile"]

# Kafka's files besides partitions. A directory with any other file is not replaced.
KNOWN_FILES = {
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOCK_FILE,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    "bootstrap.checkpoint",
}


@dataclass
class TaskFile(WriterCommitMessage):
    """The message of a task to the driver. path: its file; None without rows. runs: of partitions, in the file."""

    task: int
    path: str | None
    runs: Sequence[EncodedRun] = ()


Messages = Sequence[WriterCommitMessage | None]


@plain_errors
class LogWriter(SentToWorkers, DataSourceArrowWriter):
    """Writes one DataFrame. columns: the columns to write. overwrite: replace an existing log directory.

    Raises OptionError if the target exists and overwrite is false, or if it is not a log directory.
    """

    def __init__(self, options: LogWriteOptions, columns: tuple[str, ...], *, overwrite: bool) -> None:
        self.options, self.columns, self.overwrite = options, columns, overwrite
        self.job = uuid.uuid4().hex
        self.check_target()

    @property
    def folder(self) -> str:
        """The directory of the tasks' files."""
        return f"{self.options.path}.tasks-{self.job}"

    def check_target(self) -> None:
        """Raise OptionError unless the target can be created or replaced."""
        path = self.options.path
        if not os.path.isdir(os.path.dirname(path)):
            raise OptionError(f"No such directory: {os.path.dirname(path)}")
        if not os.path.lexists(path):
            return
        if not os.path.isdir(path) or os.path.islink(path):
            raise OptionError(f"{path}: not a directory; choose another path")
        names = os.listdir(path)
        if names and not self.overwrite:
            raise OptionError(
                f"{path}: not an empty directory, and a log directory cannot be extended; use mode overwrite to "
                "replace it, or choose another path"
            )
        for name in names:
            if name in KNOWN_FILES or MARKED_DIRECTORY.fullmatch(name):
                continue
            if parse_partition_directory(name) is None or not os.path.isdir(os.path.join(path, name)):
                raise OptionError(f"{path}: not replaced, since {name!r} does not belong to a log directory; remove it")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskFile:
        """Write the rows of one task to a file; called in a worker. Raises OptionError, LogError."""
        from kwire.spark.log.writing import write_rows

        warm_up()
        context = TaskContext.get()
        task = 0 if context is None else int(context.partitionId())
        path = f"{self.folder}/{task:08d}-{uuid.uuid4().hex}.batches"
        runs = write_rows(iterator, self.columns, self.options, path)
        return TaskFile(task=task, path=path if runs else None, runs=runs)

    def commit(self, messages: Messages) -> None:
        """Create the log directory from the tasks' files, in the order of tasks. Raises OptionError, LogError."""
        written = sorted((each for each in messages if isinstance(each, TaskFile)), key=lambda each: each.task)
        files = [(each.path, each.runs) for each in written if each.path is not None]
        if not files:
            raise OptionError(
                f"{self.options.path}: the DataFrame has no rows; a log directory has at least one partition"
            )
        for path, _ in files:
            if not os.path.exists(path):
                raise LogError("missing: driver and executors must share a file system", path)
        from kwire.maintenance.encoded_runs import directory_from_runs
        from kwire.records.attributes import Compression

        target, new = self.options.path, f"{self.options.path}.new-{self.job}"
        lock = DirectoryLock(target) if os.path.isdir(target) and os.listdir(target) else None
        try:
            self.check_target()
            directory_from_runs(
                files,
                new,
                codec=Compression[self.options.compression.upper()],
                keep_offsets="offset" in self.columns,
                segment_bytes=self.options.segment_bytes,
                now_ms=time.time_ns() // 1_000_000,
            )
            self._publish(new)
        finally:
            if lock is not None:
                lock.release()
        self._remove_temporary()

    def _publish(self, new: str) -> None:
        files, target = FileSystem(), self.options.path
        old = f"{target}.old-{self.job}"
        exists = os.path.isdir(target)
        if exists:
            files.rename(target, old)
        files.rename(new, target)
        files.sync_directory(os.path.dirname(target))
        if exists:
            remove_tree(files, old)

    def abort(self, messages: Messages) -> None:
        """Remove all temporary files; a task or the commit has failed, and the target is unchanged."""
        self._remove_temporary()

    def _remove_temporary(self) -> None:
        for path in (self.folder, f"{self.options.path}.new-{self.job}.part", f"{self.options.path}.new-{self.job}"):
            with suppress(LogError):
                if os.path.isdir(path):
                    remove_tree(FileSystem(), path)
