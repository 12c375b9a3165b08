"""Files of a log as `kwire log dump` takes them: what a path means, and batches read piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import CorruptBatch, OptionError

if TYPE_CHECKING:
    from kwire.records import Batch
    from kwire.storage.store import StoredFile

__all__ = ["KINDS", "BatchReader", "LogFile", "kind_of", "log_file"]

PIECE_BYTES = 4 << 20
FRAME_BYTES, PREFIX_BYTES = (
    12,
    17,
)  # offset and size; and up to magic, which is as much as Kafka's file reader wants to see

# File name endings, as kafka-dump-log knows them.
KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file to dump.

    name: as the user named it, for output. url: where to open it. kind: one of KINDS. base_offset: the number in its
    name, None where there is none. topic, partition: from the directory's name, None where that is no partition's.
    """

    name: str
    url: str
    kind: str
    base_offset: int | None
    topic: str | None
    partition: int | None

    def sibling(self, kind: str) -> str:
        """URL of the segment's file of another kind."""
        return self.url.removesuffix(self.kind) + kind

    def open(self) -> StoredFile:
        """The file. Raises LogError."""
        return open_file(self.url)


def open_file(url: str) -> StoredFile:
    """The file at a path or URL. Raises LogError."""
    from kwire.storage.open_store import open_store

    return open_store(url).open("")


def kind_of(name: str) -> str | None:
    """Which of KINDS a file name ends with."""
    return next((kind for kind in KINDS if name.endswith(kind)), None)


def log_file(path: str) -> LogFile:
    """A file named by the user. Raises OptionError when its name does not end like a log's file."""
    from kwire.log.file_names import parse_partition_directory

    parts = path.replace("\\", "/").rstrip("/").split("/")
    kind = kind_of(parts[-1])
    if kind is None:
        raise OptionError(f"{path}: not a file of a log; expected one that ends with {', '.join(KINDS)}")
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
    """The batches of one `.log` or `.checkpoint` file, read in pieces: memory is bounded by the largest batch.

    Iterate; then `position` is the end of the last whole batch, `trailing_bytes` what follows it, and `damage` the
    CorruptBatch that ended the reading, None where the file ends cleanly or inside a batch.
    """

    def __init__(self, file: StoredFile, *, start: int = 0, advance: Callable[[int], None] | None = None) -> None:
        """start: position of a batch. advance: told the bytes read, for a progress bar."""
        self._file, self._advance = file, advance
        self.size = file.size()
        self.position = start
        self.damage: CorruptBatch | None = None

    @property
    def trailing_bytes(self) -> int:
        """Bytes after the last whole batch."""
        return self.size - self.position

    def __iter__(self) -> Iterator[Batch]:
        from kwire.records import read_batches

        wanted = PIECE_BYTES
        # Kafka's file reader looks at an entry only if more than 17 bytes are left
        while self.size - self.position > PREFIX_BYTES:
            piece = self._file.pread(self.position, wanted)
            before = self.position
            try:
                for batch in read_batches(piece, position=before, file=self._file.url):
                    self.position = batch.position + batch.size_bytes
                    yield batch
            except CorruptBatch as error:
                if error.position != self.position:  # a consumer's, not the reader's: not ours to catch
                    raise
                self.damage = error
                return
            if self._advance:
                self._advance(self.position - before)
            if self.position == before:
                needed = int.from_bytes(piece[8:FRAME_BYTES], "big") + FRAME_BYTES
                if len(piece) < wanted or needed > self.size - self.position:
                    return  # a cut batch at the end of the file
                wanted = needed
            else:
                wanted = PIECE_BYTES
