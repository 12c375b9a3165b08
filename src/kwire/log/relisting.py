"""List a directory again when files change during a read, because a broker rolls, deletes or compacts segments.

After a listing, segments may be deleted, replaced by compacted ones of the same name, or rolled. An error that a stale
listing causes, such as a missing file, says nothing about the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kwire.errors import LogError

if TYPE_CHECKING:
    from kwire.log.partition_log import PartitionLog

__all__ = ["TRIES", "has_changed", "is_deleted", "retry_on_change"]

T = TypeVar("T")

TRIES = 10


def is_deleted(log: PartitionLog) -> bool:
    """Return whether a partition's directory was removed, or renamed because its topic was deleted."""
    if not log.directory:
        return False
    try:
        return all(entry.name != log.directory for entry in log.store.list("") if entry.is_directory)
    except LogError:
        return False


def has_changed(log: PartitionLog, again: PartitionLog) -> bool:
    """Return whether a new listing differs in files, sizes or times."""
    try:
        return log.listing != again.listing
    except LogError:
        return True


def retry_on_change(log: PartitionLog, action: Callable[[PartitionLog], T]) -> T:
    """Return action(log), retried with a new listing if it raises LogError and files have changed.

    Raises the LogError if nothing has changed, or after TRIES attempts.
    """
    for _ in range(TRIES - 1):
        try:
            return action(log)
        except LogError:
            again = log.reopened()
            if is_deleted(log) or not has_changed(log, again):
                raise
            log = again
    return action(log)
