"""Verify logs, wherever they are: every file of a log directory, the leaders' batches of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from kwire.log.reading.log_directory import LogDirectory
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.reading.readable_log import LogSource, ReadableLog
from kwire.maintenance.verify.directory import verify_directory, verify_log
from kwire.maintenance.verify.findings import DirectoryFindings
from kwire.maintenance.verify.root_files import context_of
from kwire.maintenance.verify.runs import verify_runs

__all__ = ["verify_logs"]

L = TypeVar("L", bound=ReadableLog)


def verify_logs(
    source: LogSource[L] | ReadableLog,
    logs: Sequence[L] | None = None,
    *,
    advance: Callable[[int], None] | None = None,
) -> DirectoryFindings:
    """Find all damage of logs. source: of kwire.open, or one of its logs. logs: only these of the source.

    advance: called with bytes read, perhaps from several threads. Damaged bytes do not raise. The other files of a log
    directory are verified too, whichever logs are chosen.
    """
    if isinstance(source, PartitionLog):
        partition = verify_log(source, context_of(source), advance=advance)
        return DirectoryFindings(partitions=[partition], damages=partition.damages)
    if isinstance(source, LogDirectory):
        return verify_directory(source, cast("Sequence[PartitionLog] | None", logs), advance=advance)
    if isinstance(source, ReadableLog):
        return verify_runs([source], advance=advance)
    return verify_runs(list(source.values()) if logs is None else logs, advance=advance)
