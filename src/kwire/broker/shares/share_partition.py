"""A share partition: the delivery of one partition's records to the members of one share group.

    start_offset                                     end_offset
         |  records in flight, in any state  ...         |  records that were never delivered
         v                                               v
    done                                                 next to acquire, unless a lower record is available again

Each change of a record's state is written to the share coordinator first; if that fails, the record keeps its state.
One write has the start offset from before it, as in Kafka. Acquiring is not written: after a restart, acquired records
are available, with the delivery count of their last written state. Dead letters are ARCHIVING until they are copied.

Source: KIP-932, KIP-1191; kafka.server.share.SharePartition 4.4.0.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from kwire.broker.clock import Clock, TimerHandle, Timers
from kwire.broker.shares.dead_letters import EXCEEDED, REJECTED, DeadLetters
from kwire.broker.shares.in_flight import NO_MEMBER, Delivery, InFlight, InFlightBatch
from kwire.errors import BrokerError
from kwire.internal_topics.share_state import DeliveredRange, DeliveryState
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["AcknowledgeType", "Acknowledgement", "LetterCopier", "ShareLimits", "SharePartition", "StateWriter"]

log = logging.getLogger(__name__)


class AcknowledgeType(IntEnum):
    """How a member ends its acquisition of a record. Source: AcknowledgeType; 0 is only sent for gaps."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


ACKNOWLEDGE_TYPES = frozenset(AcknowledgeType)
STATES = {
    AcknowledgeType.GAP: DeliveryState.ARCHIVED,
    AcknowledgeType.ACCEPT: DeliveryState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: DeliveryState.AVAILABLE,
    AcknowledgeType.REJECT: DeliveryState.ARCHIVING,
}
"""The states after an acquisition. ARCHIVING: ARCHIVED without a dead letter queue."""


class Acknowledgement(NamedTuple):
    """Acknowledged offsets, both ends included. types: one for all of them, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class ShareLimits(NamedTuple):
    """The configs of a share group that concern its records. has_dead_letters: whether it has a dead letter queue."""

    delivery_count: int
    record_locks: int
    lock_duration_ms: int
    can_renew: bool
    has_dead_letters: bool


class StateWriter(Protocol):
    """Writes the state of a share partition."""

    def __call__(self, start_offset: int, complete_count: int, ranges: Sequence[DeliveredRange]) -> object:
        """Write changed ranges. Raises BrokerError; nothing was written then."""


class LetterCopier(Protocol):
    """Copies records to the dead letter queue."""

    def __call__(self, letters: DeadLetters, done: Callable[[], object]) -> object:
        """Begin to copy, and call `done` at the end, also after an error."""


class Change(NamedTuple):
    """A changed state that is not written yet: the offsets, the state, and what it was. reason: of a dead letter."""

    first: int
    last: int
    delivery: Delivery
    state: DeliveryState
    member_id: str
    reason: str


class SharePartition:
    """The records of a share partition.

    start_offset: where it begins. ranges: the stored states, in order, from there on. limits: the group's configs.
    write: see StateWriter. copy: see LetterCopier. released: called when records may have become available.
    """

    def __init__(
        self,
        start_offset: int,
        ranges: Iterable[DeliveredRange],
        *,
        clock: Clock,
        timers: Timers,
        limits: Callable[[], ShareLimits],
        write: StateWriter,
        copy: LetterCopier,
        released: Callable[[], object],
    ) -> None:
        self._clock, self._timers = clock, timers
        self.limits, self._write, self._copy, self._released = limits, write, copy, released
        self.start_offset = self.end_offset = start_offset
        self.in_flight = InFlight()
        self.complete_count = 0
        self._gap: tuple[int, int] | None = None
        """(start, end offset) of a range with offsets that the stored states lack."""
        self._has_released = False
        self._timer: TimerHandle | None = None
        self._timer_ms = 0
        self._load(ranges)

    def _load(self, ranges: Iterable[DeliveredRange]) -> None:
        """Take over stored states. Raises BrokerError for a state that only a newer broker knows."""
        gap, following = -1, self.start_offset
        archiving = []
        for each in ranges:
            if gap == -1 and each.first_offset > following:
                gap = following
            following = each.last_offset + 1
            state = DeliveryState.of(each.delivery_state)
            if not isinstance(state, DeliveryState):
                what = f"unknown delivery state {state} of offsets {each.first_offset} to {each.last_offset}"
                raise refusal(ErrorCode.UNKNOWN_SERVER_ERROR, what)
            if state is DeliveryState.ARCHIVING:
                archiving.append(each)
            delivery = Delivery(state, each.delivery_count)
            self.in_flight.add(InFlightBatch.of(each.first_offset, each.last_offset, delivery))
            if delivery.is_final:
                self.complete_count += each.last_offset - each.first_offset + 1
        if len(self.in_flight):
            self._has_released = True
            self.end_offset = self.in_flight.last.last
            if gap != -1:
                self._gap = gap, self.end_offset
            self._advance()
        for first, last, _, count in archiving:
            reason = EXCEEDED if count >= self.limits().delivery_count else REJECTED
            self._archive_later(DeadLetters(first, last, count, reason))

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- what can be acquired

    @property
    def gap_start(self) -> int | None:
        """The first offset that the stored states lack, while no later record was acquired."""
        return self._gap[0] if self._gap is not None and self._gap[1] == self.end_offset else None

    @property
    def count(self) -> int:
        """Number of offsets from the start offset to the last one that was delivered."""
        return self.end_offset - self.start_offset + 1 if len(self.in_flight) else 0

    def next_fetch_offset(self) -> int:
        """Return the lowest offset that can be acquired."""
        nothing = not len(self.in_flight) or self.start_offset > self.in_flight.last.last
        if nothing:
            self._has_released = False
            return self.end_offset
        if not self._has_released:
            return self.end_offset + 1
        gap = self.gap_start
        for batch in self.in_flight:
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(batch.last + 1, gap)
            for first, _, delivery in batch.deliveries():
                if delivery.state is DeliveryState.AVAILABLE:
                    return first
        self._has_released = False
        return self.end_offset + 1

    def can_acquire(self) -> bool:
        """Return whether a record may be acquired: a released one, or a new one within the limit of locks."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.count < self.limits().record_locks

    def lock_until_ms(self) -> int:
        """Return when a lock ends that begins now."""
        return self._clock.elapsed_ms() + self.limits().lock_duration_ms

    def search_released(self) -> None:
        """Look for available records below the end offset at the next fetch."""
        self._has_released = True

    def acquired_through(self, offset: int) -> None:
        """Move the gap of the stored states behind an offset that was acquired."""
        if self._gap is not None:
            inside = self._gap[1] == self.end_offset and offset + 1 <= self._gap[1]
            self._gap = (offset + 1, self._gap[1]) if inside else None

    # --- acknowledging

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement]) -> None:
        """End acquisitions of a member, all or none. Raises BrokerError."""
        changes: list[Change] = []
        renewed: list[Delivery] = []
        try:
            for each in acknowledgements:
                if not ACKNOWLEDGE_TYPES.issuperset(each.types):
                    listed = ", ".join(map(str, each.types))
                    raise refusal(ErrorCode.INVALID_REQUEST, f"Invalid acknowledge type: [{listed}]")
                if each.last >= self.start_offset:
                    for batch in self._find(each):
                        self._acknowledge(member_id, each, batch, changes, renewed)
        except BrokerError:
            self._roll_back(changes)
            raise
        finally:
            self._renew(renewed)
        self._commit(changes)

    def _find(self, each: Acknowledgement) -> list[InFlightBatch]:
        """Return the batches of acknowledged offsets. Raises BrokerError if there are none."""
        floor = self.in_flight.floor(each.first)
        if floor is None and each.first < self.start_offset <= each.last:
            floor = self.in_flight.floor(self.start_offset)
        if floor is None:
            what = "Batch record not found. The request batch offsets are not found in the cache."
            raise refusal(ErrorCode.INVALID_RECORD_STATE, what)
        found = self.in_flight.starting_in(floor.first, each.last)
        for is_past, which in ((found[-1].last < each.first, "first"), (each.last > found[-1].last, "last")):
            if is_past:
                what = f"Batch record not found. The {which} offset in request is past acquired records."
                raise refusal(ErrorCode.INVALID_REQUEST, what)
        return found

    def _acknowledge(
        self,
        member_id: str,
        each: Acknowledgement,
        batch: InFlightBatch,
        changes: list[Change],
        renewed: list[Delivery],
    ) -> None:
        """End the acquisitions of a batch. Raises BrokerError."""
        if batch.last < self.start_offset:
            return
        whole = batch.whole
        if whole is not None and whole.member_id != member_id:
            what = "Member is not the owner of batch record"
            if whole.member_id == NO_MEMBER:
                what = "The batch cannot be acknowledged. The batch is not in the acquired state."
            raise refusal(ErrorCode.INVALID_RECORD_STATE, what)
        is_part = not (each.first <= batch.first and batch.last <= each.last) or batch.first < self.start_offset
        if whole is not None and not is_part and len(each.types) == 1:
            if whole.state is not DeliveryState.ACQUIRED:
                what = "The batch cannot be acknowledged. The batch is not in the acquired state."
                raise refusal(ErrorCode.INVALID_RECORD_STATE, what)
            self._end(batch.first, batch.last, whole, each.types[0], changes, renewed)
            return
        if whole is not None and whole.state is not DeliveryState.ACQUIRED:
            what = "The batch cannot be acknowledged. The subset batch is not in the acquired state."
            raise refusal(ErrorCode.INVALID_RECORD_STATE, what)
        for offset, delivery in batch.split().items():
            if offset < max(each.first, self.start_offset):
                continue
            if offset > each.last:
                break
            if delivery.state is not DeliveryState.ACQUIRED:
                what = "The offset cannot be acknowledged. The offset is not acquired."
                raise refusal(ErrorCode.INVALID_RECORD_STATE, what)
            if delivery.member_id != member_id:
                raise refusal(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of offset")
            kind = each.types[offset - each.first] if len(each.types) > 1 else each.types[0]
            self._end(offset, offset, delivery, kind, changes, renewed)

    def _end(
        self, first: int, last: int, delivery: Delivery, kind: int, changes: list[Change], renewed: list[Delivery]
    ) -> None:
        """End one acquisition, or renew it. Raises BrokerError."""
        if kind != AcknowledgeType.RENEW:
            self._change(first, last, delivery, STATES[AcknowledgeType(kind)], changes)
        elif self.limits().can_renew:
            renewed.append(delivery)
        else:
            what = "Renewing acquisition locks is not enabled for the group."
            raise refusal(ErrorCode.INVALID_RECORD_STATE, what)

    def _renew(self, renewed: list[Delivery]) -> None:
        """Begin locks again. As in Kafka, an error of another record does not undo that."""
        if renewed:
            until_ms = self.lock_until_ms()
            for delivery in renewed:
                delivery.locked_until_ms = until_ms
            self.watch_locks(until_ms)

    def release(self, member_id: str) -> None:
        """Release all records that a member has acquired. Raises BrokerError if that cannot be written."""
        changes: list[Change] = []
        for batch in self.in_flight:
            self._release_where(batch, changes, lambda delivery: delivery.member_id == member_id)
        self._commit(changes)

    def _release_where(self, batch: InFlightBatch, changes: list[Change], chosen: Callable[[Delivery], bool]) -> None:
        """Release acquired records of a batch; those below the start offset are archived."""
        whole = batch.whole
        if whole is not None:
            if whole.state is not DeliveryState.ACQUIRED or not chosen(whole):
                return
            if batch.first < self.start_offset <= batch.last:
                batch.split()
        for first, last, delivery in batch.deliveries():
            if delivery.state is DeliveryState.ACQUIRED and chosen(delivery):
                below = last < self.start_offset
                self._change(
                    first, last, delivery, DeliveryState.ARCHIVED if below else DeliveryState.AVAILABLE, changes
                )

    # --- changing states

    def _change(self, first: int, last: int, delivery: Delivery, state: DeliveryState, changes: list[Change]) -> None:
        limits, reason = self.limits(), REJECTED
        if state is DeliveryState.AVAILABLE and delivery.count >= limits.delivery_count:
            state, reason = DeliveryState.ARCHIVING, EXCEEDED
        if state is DeliveryState.ARCHIVING and not limits.has_dead_letters:
            state = DeliveryState.ARCHIVED
        changes.append(Change(first, last, delivery, delivery.state, delivery.member_id, reason))
        delivery.end(state)
        if delivery.is_final:
            self.complete_count += self._in_flight_of(first, last)

    def _in_flight_of(self, first: int, last: int) -> int:
        """Return how many offsets of a range are not below the start offset."""
        return max(0, last - max(self.start_offset, first) + 1)

    def _roll_back(self, changes: list[Change]) -> None:
        for each in changes:
            if each.delivery.is_final:
                self.complete_count -= self._in_flight_of(each.first, each.last)
            each.delivery.state, each.delivery.member_id = each.state, each.member_id

    def _commit(self, changes: list[Change]) -> None:
        """Write changes. Raises BrokerError; the states are as before then."""
        if not changes:
            return
        try:
            self._write(self.start_offset, self.complete_count, ranges_of(changes))
        except BrokerError:
            self._roll_back(changes)
            raise
        self._settle(changes)

    def _settle(self, changes: list[Change]) -> None:
        """Follow written changes: records that are available, done or dead letters."""
        if any(each.delivery.state is DeliveryState.AVAILABLE for each in changes):
            self._has_released = True
        self._advance()
        self._released()
        for each in changes:
            if each.delivery.state is DeliveryState.ARCHIVING:
                self._archive_later(DeadLetters(each.first, each.last, each.delivery.count, each.reason))

    def _archive_later(self, letters: DeadLetters) -> None:
        """Copy records to the dead letter queue; then they are done."""
        self._copy(letters, lambda: self._archive_copied(letters))

    def _archive_copied(self, letters: DeadLetters) -> None:
        first, last = letters.first, letters.last
        self.archive(first, last, DeliveryState.ARCHIVING, counts=False)
        self.complete_count += self._in_flight_of(first, last)
        done = DeliveredRange(first, last, DeliveryState.ARCHIVED, letters.delivery_count)
        try:
            self._write(self.start_offset, self.complete_count, [done])
        except BrokerError as error:  # as in Kafka; another leader copies them again
            log.warning("dead letters of offsets %d to %d: %s", first, last, error)
        self._advance()
        self._released()

    def _advance(self) -> None:
        """Move the start offset past the records that are done, and forget them."""
        done, count = self._done()
        if done is None:
            return
        if done == self.in_flight.last.last:
            self.start_offset = self.end_offset = done + 1
            self.in_flight.clear()
            self.complete_count = 0
            return
        batch = self.in_flight.floor(done)
        following = self.in_flight.above(done)
        assert batch is not None
        if done == batch.last and following is not None:
            self.start_offset = max(self.start_offset, following.first)
            if self.gap_start is not None:
                self.start_offset = min(self.gap_start, self.start_offset)
            self.in_flight.drop_below(following.first)
        else:
            self.start_offset = max(self.start_offset, done + 1)
            self.in_flight.drop_below(batch.first)
        self.complete_count -= count

    def _done(self) -> tuple[int | None, int]:
        """Return the last offset up to which all records are done, and how many they are from the start offset on."""
        done, count = None, 0
        floor = self.in_flight.floor(self.start_offset) if len(self.in_flight) else None
        if floor is None:
            return None, 0
        for batch in self.in_flight:
            if self.gap_start is not None and batch.last >= self.gap_start:
                break
            for first, last, delivery in batch.deliveries():
                if not delivery.is_final:
                    return (None if done is None or done < self.start_offset else done), count
                done = last
                count += self._in_flight_of(first, last)
        return (None if done is None or done < self.start_offset else done), count

    def archive(self, first: int, last: int, state: DeliveryState, *, counts: bool = True) -> None:
        """Archive the records of a range that are in a state; nothing is written, as in Kafka.

        counts: whether they count as done.
        """
        for batch in self.in_flight.overlapping(first, last):
            if not (first <= batch.first and batch.last <= last):
                if batch.whole is not None and batch.whole.state is not state:
                    continue
                batch.split()
            for start, end, delivery in batch.deliveries():
                if first <= start and end <= last and delivery.state is state:
                    delivery.state, delivery.member_id = DeliveryState.ARCHIVED, NO_MEMBER
                    self.complete_count += end - start + 1 if counts else 0
                    self._has_released = True

    def log_start_moved(self, log_start_offset: int) -> None:
        """Follow the log, whose first records were deleted."""
        if log_start_offset <= self.start_offset:
            return
        if not len(self.in_flight):
            self.start_offset = self.end_offset = log_start_offset
            self.complete_count = 0
            return
        for batch in self.in_flight.overlapping(self.start_offset, log_start_offset - 1):
            for first, last, delivery in batch.deliveries():
                if delivery.is_final:
                    self.complete_count -= self._in_flight_of(first, min(last, log_start_offset - 1))
        self.archive(self.start_offset, log_start_offset - 1, DeliveryState.AVAILABLE, counts=False)
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)

    # --- locks

    def watch_locks(self, until_ms: int) -> None:
        """Release records at the latest when a lock ends."""
        if self._timer is not None:
            if self._timer_ms <= until_ms:
                return
            self._timer.cancel()
        self._timer_ms = until_ms
        self._timer = self._timers.call_later(until_ms - self._clock.elapsed_ms(), self._expire_locks)

    def _expire_locks(self) -> None:
        """Release the records whose locks have ended."""
        self._timer = None
        now_ms = self._clock.elapsed_ms()
        changes: list[Change] = []
        for batch in self.in_flight:
            self._release_where(batch, changes, lambda delivery: delivery.locked_until_ms <= now_ms)
        if changes:
            try:
                self._write(self.start_offset, self.complete_count, ranges_of(changes))
            except BrokerError as error:  # as in Kafka, they are released; the next write has their state
                log.warning("records with ended locks: %s", error)
            self._settle(changes)
        running = [
            delivery.locked_until_ms
            for batch in self.in_flight
            for _, _, delivery in batch.deliveries()
            if delivery.state is DeliveryState.ACQUIRED
        ]
        if running:
            self.watch_locks(min(running))


def ranges_of(changes: Iterable[Change]) -> list[DeliveredRange]:
    """Return changed states as they are written."""
    return [DeliveredRange(each.first, each.last, int(each.delivery.state), each.delivery.count) for each in changes]
