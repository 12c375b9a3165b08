"""Log directories at the paths of a command line. A missing path is wrong usage: OptionError."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kwire.cli.log.selection import Selection
from kwire.errors import LogError, OptionError

if TYPE_CHECKING:
    from kwire.log import LogDirectory, PartitionLog

__all__ = ["bytes_of", "check_path", "open_directory", "open_local_directory", "selected"]


def check_path(path: str) -> None:
    """Raise OptionError when a local path does not exist."""
    local = path.removeprefix("tiered+").partition("#")[0] if path.startswith("tiered+") else path
    if "://" not in path and not os.path.exists(local):
        raise OptionError(f"{path}: no such file or directory")


def open_directory(path: str) -> LogDirectory:
    """Open the logs at a path or URL. Raises OptionError where there are none."""
    check_path(path)
    from kwire.log import LogDirectory

    try:
        return LogDirectory(path)
    except LogError as error:
        raise OptionError(str(error)) from error


def open_local_directory(path: str) -> LogDirectory:
    """Open the log directory at a local path. Raises OptionError for URLs, files and partition directories."""
    directory = open_directory(path)
    if not os.path.isdir(path):
        raise OptionError(f"{path}: not a local log directory")
    if any(not log.directory for log in directory.values()):
        raise OptionError(
            f"{path}: a partition's directory; name the log directory {os.path.dirname(os.path.abspath(path))} "
            "and select the partition with --topic and --partition"
        )
    return directory


def bytes_of(logs: Iterable[PartitionLog]) -> int:
    """Return the size of the `.log` files, for a progress bar. Partitions deleted meanwhile count as empty."""
    total = 0
    for log in logs:
        with contextlib.suppress(LogError):
            total += log.size_bytes
    return total


def selected(directory: LogDirectory, selection: Selection) -> list[PartitionLog]:
    """Return the selected partitions. Raises OptionError when there are none."""
    logs = [log for key, log in directory.items() if selection.takes_partition(*key)]
    if not logs:
        raise OptionError(f"no partition matches --topic and --partition; topics: {', '.join(directory.topics)[:500]}")
    return logs
