"""Share partitions on a manual clock: gaps in stored states, records delivered often, deleted and aborted records."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kwire.broker.clock import ManualClock
from kwire.broker.shares.acquisition import AcquiredRecords, Acquisition, outside, without_aborted
from kwire.broker.shares.share_partition import Acknowledgement, ShareLimits, SharePartition
from kwire.errors import BrokerError
from kwire.internal_topics.share_state import DeliveredRange
from kwire.log.files.transaction_index import AbortedTransaction
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.records.format.batch_header import BatchHeader

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
ACCEPT, RELEASE = 1, 2
TRANSACTIONAL = 0x10


class Bench:
    """A share partition whose writes are kept. broken: the next writes fail."""

    def __init__(
        self, start: int = 0, ranges: Sequence[DeliveredRange] = (), *, limit: int = 5, locks: int = 2000
    ) -> None:
        self.clock = ManualClock()
        self.written: list[tuple[int, int, list[DeliveredRange]]] = []
        self.broken = False
        self.partition = SharePartition(
            start,
            ranges,
            clock=self.clock,
            timers=self.clock.timers,
            limits=lambda: ShareLimits(limit, locks, 1000, can_renew=True, has_dead_letters=False),
            write=self.write,
            copy=lambda letters, done: None,
            released=lambda: None,
        )

    def write(self, start_offset: int, complete_count: int, ranges: Sequence[DeliveredRange]) -> None:
        if self.broken:
            raise refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "broken")
        self.written.append((start_offset, complete_count, list(ranges)))

    def acquire(
        self, *batches: tuple[int, int], member: str = "m", most: int = 500, by_record: bool = False
    ) -> list[tuple[int, int, int]]:
        """Acquire records of batches with these first and last offsets."""
        return [tuple(each) for each in self.acquired(*batches, member=member, most=most, by_record=by_record)]  # type: ignore[misc]

    def acquired(self, *batches: tuple[int, int], member: str, most: int, by_record: bool) -> list[AcquiredRecords]:
        offset = self.partition.next_fetch_offset()
        headers = [header(*each) for each in batches if each[1] >= offset]
        if not headers or not self.partition.can_acquire():
            return []
        acquisition = Acquisition(
            member, headers, fetch_offset=offset, batch_size=most, max_records=most, by_record=by_record
        )
        return acquisition.run(self.partition)

    def acknowledge(self, first: int, last: int, kind: int = ACCEPT, member: str = "m") -> None:
        self.partition.acknowledge(member, [Acknowledgement(first, last, [kind])])


def header(first: int, last: int, attributes: int = 0, producer_id: int = -1) -> BatchHeader:
    return BatchHeader(
        position=0,
        size_bytes=100,
        stored_offset=first,
        last_offset=last,
        magic=2,
        attributes=attributes,
        max_timestamp=0,
        producer_id=producer_id,
        leader_epoch=0,
    )


def test_gaps_of_stored_states_are_acquired_too() -> None:
    ranges = [DeliveredRange(2, 3, ACKNOWLEDGED, 1), DeliveredRange(6, 7, AVAILABLE, 2)]
    bench = Bench(0, ranges)
    assert (bench.partition.end_offset, bench.partition.next_fetch_offset()) == (7, 0)
    assert bench.acquire((0, 9)) == [(0, 1, 1), (4, 5, 1), (6, 7, 3), (8, 9, 1)]
    bench.acknowledge(0, 1)
    assert bench.partition.start_offset == 4


def test_states_that_are_done_are_forgotten_when_they_are_loaded() -> None:
    bench = Bench(0, [DeliveredRange(0, 4, ACKNOWLEDGED, 1), DeliveredRange(5, 5, ARCHIVED, 5)])
    assert (bench.partition.start_offset, bench.partition.next_fetch_offset(), bench.partition.count) == (6, 6, 0)


def test_records_that_were_delivered_often_are_acquired_in_smaller_numbers() -> None:
    bench = Bench(limit=5)
    assert bench.acquire((0, 7)) == [(0, 7, 1)]
    for count, expected in ((2, (0, 7)), (3, (0, 7))):
        bench.acknowledge(0, 7, RELEASE)
        assert bench.acquire((0, 7)) == [(*expected, count)]
    bench.acknowledge(0, 7, RELEASE)
    assert bench.acquire((0, 7)) == [(0, 3, 4)]  # half of them
    bench.acknowledge(0, 3, RELEASE)
    assert bench.acquire((0, 7)) == [(0, 0, 5)]  # the last time alone
    bench.acknowledge(0, 0, RELEASE)
    assert bench.written[-1][2] == [DeliveredRange(0, 0, ARCHIVED, 5)]


def test_a_failed_write_changes_nothing() -> None:
    bench = Bench()
    bench.acquire((0, 4))
    bench.broken = True
    with pytest.raises(BrokerError):
        bench.acknowledge(0, 4)
    bench.broken = False
    bench.acknowledge(0, 4)
    assert bench.written == [(0, 5, [DeliveredRange(0, 4, ACKNOWLEDGED, 1)])]
    assert bench.partition.start_offset == 5


def test_locks_end_one_after_the_other() -> None:
    bench = Bench()
    bench.acquire((0, 4))
    bench.clock.advance(600)
    bench.acquire((5, 9))
    bench.clock.advance(399)
    assert bench.written == []
    bench.clock.advance(1)
    assert [each[2] for each in bench.written] == [[DeliveredRange(0, 4, AVAILABLE, 1)]]
    bench.clock.advance(600)
    assert bench.acquire((0, 9), member="n") == [(0, 4, 2), (5, 9, 2)]


def test_deleted_records_are_not_delivered() -> None:
    bench = Bench()
    bench.acquire((0, 9))
    bench.acknowledge(0, 9, RELEASE)
    bench.partition.log_start_moved(6)
    assert bench.partition.next_fetch_offset() == 6
    assert bench.acquire((6, 9)) == [(6, 9, 2)]
    bench.acknowledge(6, 9)
    assert (bench.partition.start_offset, bench.partition.complete_count) == (10, 0)


def test_records_of_aborted_transactions_are_done() -> None:
    bench = Bench()
    headers = [header(0, 1), header(2, 3, TRANSACTIONAL, 7), header(5, 6, TRANSACTIONAL, 7)]
    acquired = bench.acquired((0, 1), (2, 3), (5, 6), member="m", most=500, by_record=False)
    left = without_aborted(bench.partition, acquired, headers, [AbortedTransaction(7, 2, 4)])
    assert [tuple(each) for each in left] == [(0, 1, 1), (4, 6, 1)]
    bench.acknowledge(0, 1)
    assert bench.partition.start_offset == 4


@pytest.mark.parametrize(
    ("first", "last", "left"),
    [(0, 9, []), (0, 4, [(5, 9)]), (5, 9, [(0, 4)]), (3, 4, [(0, 2), (5, 9)]), (10, 11, [(0, 9)])],
)
def test_a_range_is_cut_out(first: int, last: int, left: list[tuple[int, int]]) -> None:
    assert [(each.first, each.last) for each in outside(AcquiredRecords(0, 9, 1), first, last)] == left
