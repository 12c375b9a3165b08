"""Records in flight: those of a share partition that were delivered at least once and are not done in order.

They are kept as they were acquired: a batch of consecutive offsets has one delivery state, until one of its records
gets another; then each of its records has its own.

    AVAILABLE     may be acquired (again)
    ACQUIRED      locked for one member
    ACKNOWLEDGED  processed: final
    ARCHIVING     rejected or delivered too often, being copied to a dead letter queue
    ARCHIVED      rejected, lost or delivered too often: final

Source: org.apache.kafka.server.share.fetch.InFlightBatch, InFlightState, RecordState 4.4.0.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass

from kwire.internal_topics.share_state import DeliveryState

__all__ = ["NO_MEMBER", "Delivery", "InFlight", "InFlightBatch"]

NO_MEMBER = ""
FINAL = (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)


@dataclass(slots=True)
class Delivery:
    """The state of a record, or of all records of a batch.

    count: of deliveries so far. member_id: of the member that has acquired it. locked_until_ms: by Clock.elapsed_ms.
    """

    state: DeliveryState
    count: int
    member_id: str = NO_MEMBER
    locked_until_ms: int = 0

    @property
    def is_final(self) -> bool:
        """Whether the record is done."""
        return self.state in FINAL

    def acquire(self, member_id: str, locked_until_ms: int) -> None:
        """Deliver an available record to a member."""
        self.state, self.member_id, self.locked_until_ms = DeliveryState.ACQUIRED, member_id, locked_until_ms
        self.count += 1

    def end(self, state: DeliveryState) -> None:
        """End an acquisition."""
        self.state, self.member_id = state, NO_MEMBER


@dataclass(slots=True)
class InFlightBatch:
    """Consecutive offsets, both ends included. whole: their common state; None once each offset has its own."""

    first: int
    last: int
    whole: Delivery | None
    offsets: dict[int, Delivery]

    @classmethod
    def of(cls, first: int, last: int, delivery: Delivery) -> InFlightBatch:
        """Return a batch with one state."""
        return cls(first, last, delivery, {})

    def split(self, acquired_through: int | None = None) -> dict[int, Delivery]:
        """Give each offset its own state and return them.

        acquired_through: in a batch that was just acquired, the last offset that is; later ones become available.
        """
        whole = self.whole
        if whole is not None:
            for offset in range(self.first, self.last + 1):
                if acquired_through is None or offset <= acquired_through:
                    own = Delivery(whole.state, whole.count, whole.member_id, whole.locked_until_ms)
                else:
                    own = Delivery(DeliveryState.AVAILABLE, whole.count - 1)
                self.offsets[offset] = own
            self.whole = None
        return self.offsets

    def deliveries(self) -> Iterator[tuple[int, int, Delivery]]:
        """Yield (first, last, state) of each part with its own state."""
        if self.whole is not None:
            yield self.first, self.last, self.whole
        else:
            for offset, delivery in self.offsets.items():
                yield offset, offset, delivery


class InFlight:
    """Batches in order of their offsets, without overlaps."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: dict[int, InFlightBatch] = {}

    def __len__(self) -> int:
        return len(self._firsts)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter([self._batches[first] for first in self._firsts])

    @property
    def first(self) -> InFlightBatch:
        """The first batch; there is one."""
        return self._batches[self._firsts[0]]

    @property
    def last(self) -> InFlightBatch:
        """The last batch; there is one."""
        return self._batches[self._firsts[-1]]

    def add(self, batch: InFlightBatch) -> None:
        """Add a batch that overlaps no other."""
        bisect.insort(self._firsts, batch.first)
        self._batches[batch.first] = batch

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that starts at or below an offset."""
        i = bisect.bisect_right(self._firsts, offset)
        return self._batches[self._firsts[i - 1]] if i else None

    def above(self, offset: int) -> InFlightBatch | None:
        """Return the first batch that starts above an offset."""
        i = bisect.bisect_right(self._firsts, offset)
        return self._batches[self._firsts[i]] if i < len(self._firsts) else None

    def starting_in(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches that start in [first, last]."""
        low, high = bisect.bisect_left(self._firsts, first), bisect.bisect_right(self._firsts, last)
        return [self._batches[each] for each in self._firsts[low:high]]

    def overlapping(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches with an offset in [first, last]."""
        before = self.floor(first)
        return self.starting_in(before.first if before is not None and before.last >= first else first, last)

    def drop_below(self, first: int) -> None:
        """Remove the batches that start below an offset."""
        i = bisect.bisect_left(self._firsts, first)
        for each in self._firsts[:i]:
            del self._batches[each]
        del self._firsts[:i]

    def clear(self) -> None:
        """Remove all batches."""
        self._firsts.clear()
        self._batches.clear()
