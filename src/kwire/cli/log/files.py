"""Files of a log for `kwire log dump`: kinds of files, and batches read in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import CorruptBatch, OptionError

if TYPE_CHECKING:
    from kwire.records import Batch
    from kwire.storage.store import StoredFile

__all__ = ["KINDS", "BatchReader", "LogFile", "kind_of", "log_file"]

CHUNK_BYTES = 4 << 20

# File name endings, as kafka-dump-log knows them.
KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file to dump.

    name: as given by the user, for output. url: its location. kind: one of KINDS. base_offset: the number in its name,
    if any. topic, partition: of the directory's name, None if that is not a partition directory.
    """

    name: str
    url: str
    kind: str
    base_offset: int | None
    topic: str | None
    partition: int | None

    def sibling(self, kind: str) -> str:
        """Return the URL of the same segment's file of another kind."""
        return self.url.removesuffix(self.kind) + kind

    def open(self) -> StoredFile:
        """Open the file. Raises LogError."""
        return open_file(self.url)


def open_file(url: str) -> StoredFile:
    """Open the file at a path or URL. Raises LogError."""
    from kwire.storage.open_store import open_store

    return open_store(url).open("")


def kind_of(name: str) -> str | None:
    """Return the element of KINDS that a file name ends with."""
    return next((kind for kind in KINDS if name.endswith(kind)), None)


def log_file(path: str) -> LogFile:
    """Return a file named by the user. Raises OptionError unless its name ends with one of KINDS."""
    from kwire.log.file_names import parse_partition_directory

    parts = path.replace("\\", "/").rstrip("/").split("/")
    kind = kind_of(parts[-1])
    if kind is None:
        raise OptionError(f"{path}: not a file of a log; expected a name ending with {', '.join(KINDS)}")
    number = parts[-1].partition(".")[0].partition("-")[0]
    owner = parse_partition_directory(parts[-2]) if len(parts) > 1 else None
    return LogFile(
        name=path,
        url=path,
        kind=kind,
        base_offset=int(number) if number.isascii() and number.isdigit() else None,
        topic=owner[0] if owner else None,
        partition=owner[1] if owner else None,
    )


class BatchReader:
    """Iterator over the batches of a `.log` or `.checkpoint` file. Memory is bounded by the largest batch.

    After the iteration, `position` is the end of the last complete batch, `trailing_bytes` the bytes after it, and
    `damage` the CorruptBatch that ended it: None where the file ends cleanly or inside a batch.
    """

    def __init__(self, file: StoredFile, *, start: int = 0, advance: Callable[[int], None] | None = None) -> None:
        """Open the iteration. start: position of a batch. advance: called with the bytes read, for a progress bar."""
        self._file, self._advance = file, advance
        self.size = file.size()
        self.position = start
        self.damage: CorruptBatch | None = None

    @property
    def trailing_bytes(self) -> int:
        """Bytes after the last complete batch."""
        return self.size - self.position

    def __iter__(self) -> Iterator[Batch]:
        from kwire.records import read_batches
        from kwire.records.batch_header import PREFIX_BYTES, batch_bytes

        size = CHUNK_BYTES
        # Kafka's file reader looks at an entry only if more than 17 bytes are left
        while self.size - self.position > PREFIX_BYTES:
            chunk = self._file.pread(self.position, size)
            before = self.position
            try:
                for batch in read_batches(chunk, position=before, file=self._file.url):
                    self.position = batch.position + batch.size_bytes
                    yield batch
            except CorruptBatch as error:
                if error.position != self.position:  # raised by the consumer of this generator, not by the reader
                    raise
                self.damage = error
                return
            if self._advance:
                self._advance(self.position - before)
            if self.position == before:
                needed = batch_bytes(chunk)
                if len(chunk) < size or needed > self.size - self.position:
                    return  # the file ends inside a batch
                size = needed
            else:
                size = CHUNK_BYTES
