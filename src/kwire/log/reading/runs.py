"""A range of offsets that is fixed when a read begins, as runs of stored batches.

Readers of records, of Arrow columns and of statistics take it from a log's `pin()` and know neither files nor brokers.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, NamedTuple, Protocol, TypeAlias

from kwire.errors import MissingOffsets, OptionError
from kwire.log.files.segment import Segment
from kwire.log.files.transaction_index import AbortedTransaction
from kwire.records import Batch
from kwire.storage.store import StoredFile

__all__ = [
    "ISOLATIONS",
    "AbortedBatches",
    "AbortedIn",
    "Isolation",
    "Missing",
    "PinnedRange",
    "Run",
    "check_bounds",
    "check_timestamp",
]

logger = logging.getLogger("kwire.log")

Isolation = Literal["read_uncommitted", "read_committed"]
ISOLATIONS = ("read_uncommitted", "read_committed")

Missing: TypeAlias = tuple[tuple[int, int], MissingOffsets]
"""Offsets [from, to) that are in no segment, and the error to raise or log."""


class AbortedIn(Protocol):
    """Looks up the aborted transactions with data in a range of offsets; others may be among them."""

    def __call__(self, start_offset: int, end_offset: int, *, skip_missing: bool) -> Sequence[AbortedTransaction]:
        """Return them.

        Raises MissingOffsets if one with data in the range may end in a segment that is missing; skip_missing: it is
        among the aborted ones, with a warning.
        """
        ...


class Run(NamedTuple):
    """Stored batches in offset order.

    segment, file: where they are; file is open until the next run. start_offset: the first one that is wanted.
    aborted_in: None for read_uncommitted. missing_after(reached, end_offset): looks for offsets after the run that are
    in no segment; None for a part of a Fetch response. is_expired(): whether retention has deleted the segment
    meanwhile.
    """

    segment: Segment
    file: StoredFile
    start_offset: int
    aborted_in: AbortedIn | None = None
    missing_after: Callable[[int | None, int], Missing | None] | None = None
    is_expired: Callable[[], bool] = bool

    def check_end(self, reached: int | None, end_offset: int, *, skip_missing: bool) -> tuple[int, int] | None:
        """Raise MissingOffsets if wanted offsets after this run are in no segment; skip_missing: log and return them.

        reached: the offset after its last batch, None to look it up. end_offset: of the read.
        """
        missing = None if self.missing_after is None else self.missing_after(reached, end_offset)
        if missing is None:
            return None
        offsets, error = missing
        if not skip_missing:
            raise error
        logger.warning("%s", error)
        return offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedRange:
    """Offsets [start_offset, end_offset) of a partition as of the begin of a read, and their runs, to iterate once."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    runs: Iterator[Run]


class AbortedBatches:
    """Tests whether batches belong to aborted transactions."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._by_producer: dict[int, list[AbortedTransaction]] = {}
        for each in sorted(aborted, key=lambda each: each.first_offset):
            self._by_producer.setdefault(each.producer_id, []).append(each)

    def has(self, batch: Batch) -> bool:
        """Return whether a batch is data of an aborted transaction (D-04)."""
        if not batch.is_transactional or batch.is_control:
            return False
        known = self._by_producer.get(batch.producer_id, [])
        i = bisect_right(known, batch.base_offset, key=lambda each: each.first_offset)
        return i > 0 and batch.base_offset <= known[i - 1].last_offset


def is_integer(value: object) -> bool:
    """Return whether a value is an integer, also one of numpy, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_bounds(start_offset: int, isolation: str = "read_uncommitted", end_offset: int | None = None) -> None:
    """Raise OptionError for an unknown isolation, a negative start, and what is no offset."""
    if isolation not in ISOLATIONS:
        raise OptionError(f"isolation {isolation!r}: expected one of {', '.join(ISOLATIONS)}")
    for name, offset in (("start_offset", start_offset), ("end_offset", end_offset)):
        if not is_integer(offset) and (offset is not None or name == "start_offset"):
            raise OptionError(f"{name} {offset!r}: expected a number")
    if start_offset < 0:
        raise OptionError(f"start_offset {start_offset}: offsets are not negative")


def check_timestamp(timestamp: int) -> None:
    """Raise OptionError for what is no timestamp of Kafka: 64 bits, in ms."""
    if not is_integer(timestamp) or not -(1 << 63) <= timestamp < 1 << 63:
        raise OptionError(f"timestamp {timestamp!r}: expected milliseconds since 1970")
