"""Files of a log for `kwire log dump`, by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import OptionError

if TYPE_CHECKING:
    from kwire.log.chunks import BatchWalk
    from kwire.storage.store import StoredFile

__all__ = ["KINDS", "LogFile", "kind_of", "log_file", "trailing_bytes"]

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


def trailing_bytes(walk: BatchWalk) -> int:
    """Return the number of bytes after the last whole batch, once the walk has ended. Raises its damage.

    Kafka's file reader does not look at a tail of up to 17 bytes (R-04), so that is never damage.
    """
    from kwire.records.batch_header import PREFIX_BYTES

    left = walk.stop - walk.position
    if walk.damage is not None and left > PREFIX_BYTES:
        raise walk.damage
    return left
