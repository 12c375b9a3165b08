"""A path on the command line as a log directory; a path that is not there is wrong usage."""

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
    """Raises OptionError when path is local and there is nothing."""
    local = path.removeprefix("tiered+").partition("#")[0] if path.startswith("tiered+") else path
    if "://" not in path and not os.path.exists(local):
        raise OptionError(f"{path}: no such file or directory")


def open_directory(path: str) -> LogDirectory:
    """The logs at a path or URL. Raises OptionError where there is nothing, or no logs."""
    check_path(path)
    from kwire.log import LogDirectory

    try:
        return LogDirectory(path)
    except LogError as error:
        raise OptionError(str(error)) from error


def open_local_directory(path: str) -> LogDirectory:
    """The log directory at a local path, with all its partitions. Raises OptionError for anything else."""
    directory = open_directory(path)
    if not os.path.isdir(path):
        raise OptionError(f"{path}: a local log directory is required")
    if any(not log.directory for log in directory.values()):
        raise OptionError(
            f"{path}: this is a partition's directory; give the log directory "
            f"{os.path.dirname(os.path.abspath(path))}, and choose the partition with --topic and --partition"
        )
    return directory


def bytes_of(logs: Iterable[PartitionLog]) -> int:
    """Bytes of `.log` files, for a progress bar; a partition that was deleted meanwhile has none."""
    total = 0
    for log in logs:
        with contextlib.suppress(LogError):
            total += log.size_bytes
    return total


def selected(directory: LogDirectory, selection: Selection) -> list[PartitionLog]:
    """The partitions that --topic and --partition let through. Raises OptionError when none is left."""
    logs = [log for key, log in directory.items() if selection.takes_partition(*key)]
    if not logs:
        raise OptionError(f"no partition here has that topic and number; topics: {', '.join(directory.topics)[:500]}")
    return logs
