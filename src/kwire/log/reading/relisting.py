"""List a directory again when files change during a read, because a broker rolls, deletes or compacts segments.

After a listing, segments may be deleted, replaced by compacted ones of the same name, or rolled. An error that a stale
listing causes, such as a missing file, says nothing about the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

from kwire.errors import LogError

__all__ = ["TRIES", "retry_on_change"]


class Relisted(Protocol):
    """What a ReadableLog and a PartitionListing have in common."""

    def reopened(self) -> Self:
        """Return the same partition with a new listing."""

    def has_changed(self, again: Self) -> bool:
        """Return whether `again`, reopened later, shows that files changed meanwhile."""

    @property
    def is_deleted(self) -> bool:
        """Whether the partition has been deleted."""


T = TypeVar("T")
L = TypeVar("L", bound=Relisted)

TRIES = 10


def retry_on_change(log: L, action: Callable[[L], T]) -> T:
    """Return action(log), retried with a new listing if it raises LogError and files have changed.

    Raises the LogError if nothing has changed, or after TRIES attempts.
    """
    for _ in range(TRIES - 1):
        try:
            return action(log)
        except LogError:
            again = log.reopened()
            if log.is_deleted or not log.has_changed(again):
                raise
            log = again
    return action(log)
