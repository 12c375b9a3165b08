"""Logs at the paths of a command line: log directories and clusters. A missing path is wrong usage: OptionError."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import kwire
from kwire.cli import terminal
from kwire.cli.client_configs import client_configs, is_cluster
from kwire.cli.log.selection import Selection
from kwire.errors import LogError, OptionError
from kwire.pages.escaping import printable

if TYPE_CHECKING:
    from kwire.client.cluster_logs import ClusterLogs
    from kwire.log import LogDirectory
    from kwire.log.files.file_names import Ignored
    from kwire.log.reading.readable_log import LogSource, ReadableLog

__all__ = [
    "bytes_of",
    "check_path",
    "open_cluster",
    "open_directory",
    "open_local_directory",
    "open_logs",
    "selected",
    "warn_of_ignored",
]


def check_path(path: str) -> None:
    """Raise OptionError when a local path does not exist."""
    local = path.removeprefix("tiered+").partition("#")[0] if path.startswith("tiered+") else path
    if "://" not in path and not os.path.exists(local):
        raise OptionError(f"{path if path.strip() else repr(path)}: no such file or directory")


def open_logs(
    path: str,
    config: Sequence[str] | None = None,
    config_file: str | None = None,
    *,
    may_share: bool = False,
    defaults: Mapping[str, object] | None = None,
) -> LogSource[ReadableLog]:
    """Open the logs at a path or URL, also of a capture, and of a cluster with the configs of -c and --config-file.

    may_share: see LogDirectory. defaults: of client configs that are not given. Raises OptionError where there are
    none, for a wrong config, and for configs without a cluster; BrokerError, ConnectionFailed.
    """
    settings = client_configs(path, config, config_file)
    if is_cluster(path):
        return cast("LogSource[ReadableLog]", open_cluster(path, {**(defaults or {}), **settings}))
    check_path(path)
    from kwire.log.files.file_names import is_capture

    if is_capture(path) and not os.path.isdir(path):
        captured = kwire.open(path)
        for each in captured.captured.warnings():  # type: ignore[attr-defined]  # of CapturedLogs
            terminal.warn(printable(f"{path}: {each}"))
        return captured
    return cast("LogSource[ReadableLog]", open_directory(path, may_share=may_share))


def open_cluster(path: str, settings: Mapping[str, object]) -> ClusterLogs:
    """Open the logs of a cluster. settings: client configs. Raises OptionError, BrokerError, ConnectionFailed."""
    from kwire.client.cluster_logs import ClusterLogs

    return ClusterLogs(path, **settings)


def open_directory(path: str, *, may_share: bool = False) -> LogDirectory:
    """Open the log directory at a path or URL. may_share: see LogDirectory.

    Raises OptionError where there is none, and for a cluster.
    """
    check_path(path)
    if is_cluster(path):
        raise OptionError(f"{path}: a cluster; this command needs a log directory")
    from kwire.log import LogDirectory

    try:
        return LogDirectory(path, may_share=may_share)
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


def bytes_of(logs: Iterable[ReadableLog]) -> int:
    """Return the size of the batches, for a progress bar. Partitions deleted meanwhile count as empty."""
    total = 0
    for log in logs:
        with contextlib.suppress(LogError):
            total += log.size_bytes or 0
    return total


L = TypeVar("L", bound="ReadableLog")


def selected(source: LogSource[L], selection: Selection) -> list[L]:
    """Return the selected partitions. Raises OptionError when there are none, and for what selects none."""
    from kwire.log.reading.paths import check_selection

    check_selection(source, selection.topics, selection.partitions)
    logs = [log for key, log in source.items() if selection.takes_partition(*key)]
    if not logs:
        raise OptionError(f"no partition matches --topic and --partition; topics: {', '.join(source.topics)[:500]}")
    return logs


def warn_of_ignored(ignored: Iterable[Ignored]) -> None:
    """Print what was not read although it is there."""
    for each in ignored:
        terminal.warn(printable(f"ignored {each.name}: {each.reason}"))
