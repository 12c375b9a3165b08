"""Check free disk space before a long write begins."""

from __future__ import annotations

import errno
import os

from kwire.errors import LogError
from kwire.storage.file_system import FileSystem

__all__ = ["SMALLEST_SHARE", "need_space"]

SMALLEST_SHARE = 10  # recompressed data takes at least a tenth of its source
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def need_space(files: FileSystem, path: str, size_bytes: int) -> None:
    """Raise LogError unless the disk that holds path, which need not exist yet, has size_bytes free."""
    place = os.path.abspath(path)
    while not files.exists(place):
        place = os.path.dirname(place)
    free = files.free_bytes(place)
    if free < size_bytes:
        what = f"not enough disk space: at least {_text(size_bytes)} required, {_text(free)} available"
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise LogError(f"{what}; free some space or write to another disk", place) from full


def _text(size_bytes: int) -> str:
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {UNITS[unit]}" if unit else f"{size_bytes} bytes"
