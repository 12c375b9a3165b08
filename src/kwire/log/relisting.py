"""Reading beside a running broker, which rolls, deletes and compacts: list again when files have changed.

A listing shows a moment. Behind it a closed segment is deleted or replaced by a compacted one of the same name, and the
active one is closed. What a stale listing leads to, such as a file that is missing, says nothing about the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kwire.errors import LogError

if TYPE_CHECKING:
    from kwire.log.partition_log import PartitionLog

__all__ = ["TRIES", "has_changed", "is_gone", "steady"]

T = TypeVar("T")

TRIES = 10


def is_gone(log: PartitionLog) -> bool:
    """Whether a partition's directory was removed, or renamed because its topic was deleted."""
    if not log.directory:
        return False
    try:
        return all(entry.name != log.directory for entry in log.store.list("") if entry.is_directory)
    except LogError:
        return False


def has_changed(log: PartitionLog, again: PartitionLog) -> bool:
    """Whether a new listing shows other files, sizes or times."""
    try:
        return log.listing != again.listing
    except LogError:
        return True


def steady(log: PartitionLog, action: Callable[[PartitionLog], T]) -> T:
    """Return action(log). Where it raises LogError and the files have changed since, try again with a new listing.

    Raises what action raises: LogError where nothing has changed, or after TRIES attempts.
    """
    for _ in range(TRIES - 1):
        try:
            return action(log)
        except LogError:
            again = log.reopened()
            if is_gone(log) or not has_changed(log, again):
                raise
            log = again
    return action(log)
