"""Acquiring records of a share partition for a member.

Batches of the log are acquired whole, so that clients do not get parts of one. Exceptions: in the mode "record limit"
no more records than asked for are acquired; and records that were delivered often are acquired in ever smaller numbers,
the last time alone, so that one that cannot be processed does not spoil others.

Source: KIP-932, KIP-1206; kafka.server.share.SharePartition.acquire 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kwire.broker.shares.in_flight import Delivery, InFlightBatch
from kwire.broker.shares.share_partition import SharePartition
from kwire.internal_topics.share_state import DeliveryState

if TYPE_CHECKING:
    from kwire.log.files.transaction_index import AbortedTransaction
    from kwire.records.format.batch_header import BatchHeader

__all__ = ["AcquiredRecords", "Acquisition", "without_aborted"]

FEWEST_THROTTLED = 2
"""Records that were delivered less often are never throttled."""


class AcquiredRecords(NamedTuple):
    """Offsets that a member has acquired, both ends included, with their delivery count."""

    first: int
    last: int
    delivery_count: int


class Acquisition:
    """One member's acquisition of fetched batches.

    batches: from the fetch offset on, whole; there is one. batch_size: acquired records are divided into parts of at
    least this size, at the borders of batches. max_records: how many to acquire. by_record: the mode "record limit".
    """

    def __init__(
        self,
        member_id: str,
        batches: Sequence[BatchHeader],
        *,
        fetch_offset: int,
        batch_size: int,
        max_records: int,
        by_record: bool,
    ) -> None:
        self._member_id, self._batches, self._fetch_offset = member_id, batches, fetch_offset
        self._batch_size, self._max_records, self._by_record = batch_size, max_records, by_record

    def run(self, partition: SharePartition) -> list[AcquiredRecords]:
        """Acquire records of a share partition."""
        acquired = self._acquire(partition)
        if acquired:
            partition.watch_locks(partition.lock_until_ms())
        return acquired

    def _acquire(self, partition: SharePartition) -> list[AcquiredRecords]:
        last = self._batches[-1].last_offset
        if self._max_records <= 0 or last < partition.start_offset:
            return []
        left = min(self._max_records, partition.limits().record_locks - partition.count)
        if left <= 0 and self._fetch_offset <= partition.end_offset:
            last = min(last, partition.end_offset)
            left = min(self._max_records, partition.end_offset - self._fetch_offset + 1)
        if left <= 0:
            return []
        base = self._batches[0].base_offset
        if self._fetch_offset < base and len(partition.in_flight):  # compaction has removed what is below
            partition.archive(self._fetch_offset, base - 1, DeliveryState.AVAILABLE)
        floor = partition.in_flight.floor(base)
        start = max(base, partition.start_offset) if floor is None else base
        if floor is not None and floor.last >= base:
            start = floor.first
        known = partition.in_flight.starting_in(min(base, start), last)
        if not known:
            return self._acquire_new(partition, start, last, left)
        return self._acquire_known(partition, known, start, last, left)

    def _acquire_known(
        self, partition: SharePartition, known: Sequence[InFlightBatch], start: int, last: int, left: int
    ) -> list[AcquiredRecords]:
        """Acquire available records of batches in flight, and new ones in their gaps and behind them."""
        acquired: list[AcquiredRecords] = []
        base, gap = self._batches[0].base_offset, start
        for batch in known:
            if left <= 0:
                break
            if partition.gap_start is not None:
                if gap < batch.first:
                    new = self._acquire_new(partition, gap, batch.first - 1, left)
                    acquired += new
                    left -= counted(new)
                gap = batch.last + 1
                if left <= 0:
                    break
            throttled = self._is_throttled(partition, batch, base, last)
            if throttled and acquired:
                left = 0
                break
            is_part = not (base <= batch.first and batch.last <= last)
            too_large = self._by_record and batch.last - batch.first + 1 > left
            whole = batch.whole
            if whole is not None and whole.state is not DeliveryState.AVAILABLE:
                continue
            if whole is not None and not (is_part or too_large or throttled):
                whole.acquire(self._member_id, partition.lock_until_ms())
                new = [AcquiredRecords(batch.first, batch.last, whole.count)]
            else:
                new = self._acquire_part(partition, batch, base, last, left)
            acquired += new
            left -= counted(new)
            if throttled and new:
                left = 0
        if left > 0 and known[-1].last < last:
            acquired += self._acquire_new(partition, known[-1].last + 1, last, left)
        if acquired:
            partition.acquired_through(acquired[-1].last)
        return acquired

    def _acquire_new(self, partition: SharePartition, first: int, last: int, left: int) -> list[AcquiredRecords]:
        """Acquire records that are not in flight, to the end of the batch with the last one that is wanted."""
        if not len(partition.in_flight) and partition.end_offset > first:
            first = partition.end_offset
        end = last
        if left < last - first + 1:
            end = self._end_of_batch(first + left - 1, last)
            if partition.gap_start is not None:
                end = min(end, last)
        acquired = self._add(partition, first, end, left)
        if partition.in_flight.first.first == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, end)
        partition.acquired_through(acquired[0].last if self._by_record else end)
        return acquired

    def _end_of_batch(self, offset: int, default: int) -> int:
        """Return the last offset of the batch that holds an offset, or precedes it."""
        found = default
        for batch in self._batches:
            if offset < batch.base_offset:
                break
            found = batch.last_offset
        return found

    def _add(self, partition: SharePartition, first: int, last: int, left: int) -> list[AcquiredRecords]:
        """Add acquired records, in parts of about batch_size."""
        if self._by_record and last - first + 1 > left:
            batch = InFlightBatch.of(first, last, self._delivery(partition))
            batch.split(first + left - 1)
            partition.in_flight.add(batch)
            partition.search_released()
            return [AcquiredRecords(first, first + left - 1, 1)]
        parts = []
        if not self._by_record and last - first + 1 > self._batch_size:
            for each in self._batches:
                if each.base_offset > last:
                    break
                if each.base_offset - first >= self._batch_size:
                    parts.append(AcquiredRecords(first, each.base_offset - 1, 1))
                    first = each.base_offset
        parts.append(AcquiredRecords(first, last, 1))
        for part in parts:
            partition.in_flight.add(InFlightBatch.of(part.first, part.last, self._delivery(partition)))
        return parts

    def _delivery(self, partition: SharePartition) -> Delivery:
        return Delivery(DeliveryState.ACQUIRED, 1, self._member_id, partition.lock_until_ms())

    def _acquire_part(
        self, partition: SharePartition, batch: InFlightBatch, first: int, last: int, left: int
    ) -> list[AcquiredRecords]:
        """Acquire available records of a batch one by one, fewer of those that were delivered often."""
        most = partition.limits().delivery_count
        throttled_from, most_throttled = throttle_limit(most), 0
        offsets = batch.split()
        acquired: list[AcquiredRecords] = []
        for offset, delivery in offsets.items():
            if offset < first or offset > last or delivery.state is not DeliveryState.AVAILABLE:
                continue
            if most > FEWEST_THROTTLED and delivery.count == most - 1 and acquired:
                break  # is delivered alone, the last time
            if delivery.count >= throttled_from and not most_throttled:
                most_throttled = max(1, len(offsets) >> (delivery.count - throttled_from + 1))
            delivery.acquire(self._member_id, partition.lock_until_ms())
            acquired.append(AcquiredRecords(offset, offset, delivery.count))
            if (most > FEWEST_THROTTLED and delivery.count == most) or (self._by_record and len(acquired) == left):
                break
            if most_throttled and len(acquired) == most_throttled:
                break
        return joined(acquired)

    @staticmethod
    def _is_throttled(partition: SharePartition, batch: InFlightBatch, first: int, last: int) -> bool:
        """Return whether an available record of a batch was delivered so often that fewer are acquired."""
        limit = throttle_limit(partition.limits().delivery_count)
        return any(
            delivery.state is DeliveryState.AVAILABLE and delivery.count >= limit
            for start, end, delivery in batch.deliveries()
            if batch.whole is not None or (first <= start and end <= last)
        )


def throttle_limit(most: int) -> int:
    """Return the delivery count from which on fewer records are acquired at once."""
    return max(FEWEST_THROTTLED, -(-most // 2))


def counted(acquired: Iterable[AcquiredRecords]) -> int:
    """Return the number of acquired offsets."""
    return sum(each.last - each.first + 1 for each in acquired)


def joined(acquired: Iterable[AcquiredRecords]) -> list[AcquiredRecords]:
    """Return records with neighbours of the same delivery count joined."""
    result: list[AcquiredRecords] = []
    for each in acquired:
        if result and result[-1].last + 1 == each.first and result[-1].delivery_count == each.delivery_count:
            result[-1] = result[-1]._replace(last=each.last)
        else:
            result.append(each)
    return result


def without_aborted(
    partition: SharePartition,
    acquired: list[AcquiredRecords],
    batches: Iterable[BatchHeader],
    aborted: Iterable[AbortedTransaction],
) -> list[AcquiredRecords]:
    """Archive acquired records of aborted transactions; return the others. aborted: from the first batch on."""
    transactions = list(aborted)
    for batch in batches:
        if batch.is_control or not batch.is_transactional:
            continue
        if any(
            each.producer_id == batch.producer_id and each.first_offset <= batch.last_offset < each.last_offset
            for each in transactions
        ):
            partition.archive(batch.base_offset, batch.last_offset, DeliveryState.ACQUIRED)
            acquired = [part for each in acquired for part in outside(each, batch.base_offset, batch.last_offset)]
    return acquired


def outside(each: AcquiredRecords, first: int, last: int) -> list[AcquiredRecords]:
    """Return the parts of acquired records that are not in a range."""
    before = each._replace(last=min(each.last, first - 1))
    after = each._replace(first=max(each.first, last + 1))
    return [part for part in (before, after) if part.first <= part.last]
