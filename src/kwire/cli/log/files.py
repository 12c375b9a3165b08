"""Sources of `kwire log dump`: files of a log by their names, and partitions of a cluster."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kwire.errors import CorruptBatch, KwireError, OptionError
from kwire.identifiers import MAX_OFFSET

if TYPE_CHECKING:
    from kwire.cli.log.selection import Selection
    from kwire.log.reading.readable_log import ReadableLog
    from kwire.records import Batch
    from kwire.storage.store import StoredFile

__all__ = ["KINDS", "Dumped", "LogFile", "PartitionOfCluster", "kind_of", "log_file", "trailing_bytes"]

# File name endings, as kafka-dump-log knows them.
KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")


Advance = Callable[[int], None]


class Walk(Protocol):
    """An iteration over batches. Afterwards, damage is what ended it, and [position, stop) bytes that are no batch."""

    position: int
    stop: int
    damage: CorruptBatch | None

    def __iter__(self) -> Iterator[Batch]:
        """Iterate once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped(ABC):
    """One file or partition to dump.

    name: as given by the user, for output. url: its location. kind: one of KINDS. base_offset: the number in its name,
    if any. topic, partition: of the directory's name, None if that is not a partition directory.
    """

    name: str
    url: str
    kind: str
    base_offset: int | None
    topic: str | None
    partition: int | None

    @abstractmethod
    def size_bytes(self) -> int:
        """Return its size for a progress bar, 0 if it is unknown."""

    @abstractmethod
    def position_of(self, batch: Batch) -> int | None:
        """Return the position of a batch in its file; None if it is unknown."""

    @abstractmethod
    def walk(self, selection: Selection, advance: Advance) -> AbstractContextManager[Walk]:
        """Open its batches, perhaps without some that are not selected. advance: called with bytes read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile(Dumped):
    """One file to dump."""

    def sibling(self, kind: str) -> str:
        """Return the URL of the same segment's file of another kind."""
        return self.url.removesuffix(self.kind) + kind

    def open(self) -> StoredFile:
        """Open the file. Raises LogError."""
        return open_file(self.url)

    def size_bytes(self) -> int:
        """Return the size of the file, 0 if it cannot be opened."""
        try:
            with self.open() as opened:
                return opened.size()
        except KwireError:
            return 0

    def position_of(self, batch: Batch) -> int:
        """Return the position of a batch."""
        return batch.position

    @contextmanager
    def walk(self, selection: Selection, advance: Advance) -> Iterator[Walk]:
        """Open the file, from its start."""
        from kwire.log.files.chunks import BatchWalk

        with self.open() as opened:
            yield BatchWalk(opened, advance=advance)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOfCluster(Dumped):
    """A partition of a cluster, in place of the `.log` files that a cluster does not show."""

    log: ReadableLog

    def size_bytes(self) -> int:
        """Return the size of the partition, 0 if the account may not see it."""
        return self.log.size_bytes or 0

    def position_of(self, batch: Batch) -> None:
        """Return None: a cluster does not tell."""
        return

    def walk(self, selection: Selection, advance: Advance) -> AbstractContextManager[Walk]:
        """Begin to read the selected offsets and times, up to the present high watermark."""
        return nullcontext(RunWalk(self.log, selection, advance))


class RunWalk:
    """Iterates over the batches of a log that has no files."""

    position = stop = 0
    damage: CorruptBatch | None = None

    def __init__(self, log: ReadableLog, selection: Selection, advance: Advance) -> None:
        self._log, self._selection, self._advance = log, selection, advance

    def __iter__(self) -> Iterator[Batch]:
        from kwire.log.files.segment_batches import open_batches

        start, end = self._selection.first_offset, self._selection.end_offset
        if self._selection.since_ms is not None and self._selection.since_ms > 0:
            first = self._log.offset_for_time(self._selection.since_ms)
            if first is None:
                return  # all records are older
            start = max(start, first.offset)
        pinned = self._log.pin(start, end if end <= MAX_OFFSET else None)
        for run in pinned.runs:
            for batch in open_batches(run.segment, run.file, run.start_offset):
                if batch.magic == 2 and batch.base_offset >= pinned.end_offset:
                    return
                yield batch
            self._advance(run.segment.size_bytes)


def open_file(url: str) -> StoredFile:
    """Open the file at a path or URL. Raises LogError."""
    from kwire.storage.open_store import open_store

    return open_store(url).open("")


def kind_of(name: str) -> str | None:
    """Return the element of KINDS that a file name ends with."""
    return next((kind for kind in KINDS if name.endswith(kind)), None)


def log_file(path: str) -> LogFile:
    """Return a file named by the user. Raises OptionError unless its name ends with one of KINDS."""
    from kwire.log.files.file_names import parse_partition_directory

    parts = path.replace("\\", "/").rstrip("/").split("/")
    kind = kind_of(parts[-1])
    if kind is None:
        raise OptionError(f"{path}: not a file of a log; expected a name ending with {', '.join(KINDS)}")
    number = parts[-1].partition(".")[0].partition("-")[0]
    owner = parse_partition_directory(parts[-2]) if len(parts) > 1 else None
    return LogFile(
        name=path,
        url=path if "://" in path else os.path.abspath(path),
        kind=kind,
        base_offset=int(number) if number.isascii() and number.isdigit() else None,
        topic=owner[0] if owner else None,
        partition=owner[1] if owner else None,
    )


def trailing_bytes(walk: Walk) -> int:
    """Return the number of bytes after the last whole batch, once the walk has ended. Raises its damage.

    Kafka's file reader does not look at a tail of up to 17 bytes (R-04), so that is never damage.
    """
    from kwire.records.format.batch_header import PREFIX_BYTES

    left = walk.stop - walk.position
    if walk.damage is not None and left > PREFIX_BYTES:
        raise walk.damage
    return left
