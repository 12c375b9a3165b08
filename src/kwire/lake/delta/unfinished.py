"""Files that delta-rs was writing to a local directory when its process was killed.

Its object store writes `NAME#NUMBER`, and renames the file to NAME when it is complete. It neither lists nor deletes
files with such names. Source: object_store, LocalFileSystem (staged_upload_path).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kwire.lake.table import Orphan

__all__ = ["delete_unfinished", "find_unfinished", "is_unfinished"]

NAME = re.compile(r".*#\d+", re.DOTALL)


def is_unfinished(path: str) -> bool:
    """Return whether a path is that of such a file."""
    return NAME.fullmatch(path) is not None


def find_unfinished(uri: str) -> Iterator[Orphan]:
    """Return such files in the directory of a table, with relative paths; none in an object store."""
    folder = _local_path(uri)
    for place, _, names in os.walk(folder) if folder else ():
        for name in filter(is_unfinished, names):
            path = Path(place, name)
            try:
                facts = path.stat()
            except FileNotFoundError:  # complete by now
                continue
            relative = path.relative_to(folder).as_posix()
            yield Orphan(path=relative, size_bytes=facts.st_size, modified_ms=facts.st_mtime_ns // 1_000_000)


def delete_unfinished(uri: str, path: str) -> None:
    """Delete such a file. Raises OSError."""
    os.remove(os.path.join(_local_path(uri), path))


def _local_path(uri: str) -> str:
    """Return the directory, or an empty string if it is in an object store."""
    if "://" not in uri:
        return uri
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else ""
