"""Quarantine: the bytes that a repair removes from a log.

    <directory>/orders-0/00000000000000000042.log.16606-16981     the bytes [16606, 16981) of that file
    <directory>/orders-0/00000000000000000099.index               a whole file
    <directory>/manifest.json                                     the entries, written last

The bytes at their positions restore the original file. The manifest has the SHA-256 of each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kwire.storage.file_system import FileSystem, OpenFile
from kwire.storage.store import StoredFile
from kwire.target_paths import path_inside

__all__ = ["Quarantine", "QuarantinedBytes", "copy_range"]

MANIFEST = "manifest.json"
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedBytes:
    """One entry of the manifest.

    file: below the quarantine directory. source, position: path or URL of the original file, and position in it.
    offsets: (first, last) of the records that were or may have been in the bytes, None if unknown.
    """

    file: str
    source: str
    position: int
    size_bytes: int
    offsets: tuple[int, int] | None
    cause: str
    sha256: str


def copy_range(source: StoredFile, position: int, size_bytes: int, target: OpenFile) -> str:
    """Append bytes of one file to another, up to the end of the source. Returns their SHA-256."""
    digest = hashlib.sha256()
    for block in _blocks(source, position, size_bytes):
        target.append(block)
        digest.update(block)
    return digest.hexdigest()


def _blocks(source: StoredFile, position: int, size_bytes: int) -> Iterator[bytes]:
    end = position + size_bytes
    while position < end and (block := source.pread(position, min(BLOCK_BYTES, end - position))):
        yield block
        position += len(block)


class Quarantine:
    """A quarantine directory, created with its first entry."""

    def __init__(self, file_system: FileSystem, directory: str) -> None:
        self._file_system, self.directory = file_system, directory
        self.entries: list[QuarantinedBytes] = []

    def add(
        self,
        source: StoredFile,
        folder: str,
        name: str,
        *,
        cause: str,
        position: int = 0,
        size_bytes: int | None = None,
        offsets: tuple[int, int] | None = None,
    ) -> None:
        """Copy bytes of a file, all of it without size_bytes. folder: of the partition, "" for the log directory."""
        size = source.size() if size_bytes is None else size_bytes
        short = name if size_bytes is None else f"{name}.{position}-{position + size}"
        path = f"{folder}/{short}" if folder else short
        full = path_inside(self.directory, path)
        self._file_system.make_directory(full.rpartition("/")[0])
        with self._file_system.open(full, create=True) as target:
            target.truncate(0)
            sha256 = copy_range(source, position, size, target)
            target.sync()
            kept = target.end
        self.entries.append(
            QuarantinedBytes(
                file=path,
                source=source.url,
                position=position,
                size_bytes=kept,
                offsets=offsets,
                cause=cause,
                sha256=sha256,
            )
        )

    def finish(self, facts: dict[str, Any]) -> None:
        """Write the manifest, if there are entries. facts: its other values, before the entries."""
        if self.entries:
            manifest = {**facts, "quarantined": [asdict(entry) for entry in self.entries]}
            data = json.dumps(manifest, indent=1).encode("utf-8", "surrogateescape") + b"\n"
            self._file_system.write_atomically(f"{self.directory}/{MANIFEST}", data)
