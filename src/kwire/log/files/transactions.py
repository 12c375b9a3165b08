"""Find aborted and open transactions without a coordinator.

Brokers send the aborted transactions, from `.txnindex` files, to consumers with read_committed. Here they come from the
batch headers; only markers are decoded. The files have no checksum, and one that lost its last entries, as in a copy of
a log that grew, looks as if it were whole: the records of an aborted transaction would be read as committed.

Open transactions come from the newest producer snapshot and a scan of the batches after it.
Source: rules F-30 to F-44, P-05, P-06, G-13, D-04; Kafka's UnifiedLog.collectAbortedTransactions, ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

from kwire.errors import CorruptBatch
from kwire.identifiers import MAX_OFFSET
from kwire.log.files.segment import Segment
from kwire.log.files.transaction_index import AbortedTransaction
from kwire.records import ControlRecordType, parse_control_record, read_batches
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.header_walk import HeaderWalk, plain_batches
from kwire.storage.store import DescriptorFile, StoredFile

Open = dict[int, int]  # producer id -> first offset of its open transaction


def is_abort(file: StoredFile, header: BatchHeader) -> bool:
    """Return whether a transactional control batch is an abort marker, not a commit or unknown (R-40, R-41)."""
    data = file.pread(header.position, header.size_bytes)
    for batch in read_batches(data, position=header.position, file=file.url):
        for record in batch.records():
            return parse_control_record(record).type == ControlRecordType.ABORT
    return False


def walk_transactions(
    segment: Segment,
    open_now: Open,
    aborted: list[AbortedTransaction],
    *,
    from_offset: int = 0,
    plain_until: int | None = None,
) -> Iterator[int]:
    """Scan a segment's headers; update open_now in place, and add each abort of a transaction with data to aborted.

    Yields the offset of each batch before it counts, so that the caller can end the scan or go on later. A marker
    without data in [from_offset, its own offset] adds nothing (P-08). plain_until: batches of no transaction may be
    skipped up to this offset. Raises CorruptBatch for bytes that are not a header.
    """
    with closing(segment.open()) as file:
        start = segment.start_for(file, from_offset)
        if isinstance(file, DescriptorFile):
            plain = plain_batches(file, start, plain_until, segment.plain_batches)  # most topics have no transactions
            if plain is not None:
                segment.plain_batches, start = plain, plain.end
        walk = HeaderWalk(file, start)
        for header in walk:
            if header.last_offset < from_offset:
                continue
            yield header.stored_offset
            if not header.is_transactional:
                continue
            if not header.is_control:
                open_now.setdefault(header.producer_id, header.stored_offset)
                continue
            first = open_now.pop(header.producer_id, None)
            if first is not None and is_abort(file, header):
                aborted.append(AbortedTransaction(header.producer_id, first, header.last_offset))
        if walk.damage and not segment.ends_in_zeros(file, walk.position):
            raise walk.damage


def is_settled(open_now: Open, to_offset: int) -> bool:
    """Return whether no transaction with data below to_offset is open."""
    return all(first >= to_offset for first in open_now.values())


class AbortedSearch:
    """Finds the aborted transactions with data from an offset on, like a broker (F-32), as far as it is asked to.

    Ranges that are asked for in order read each header once, also those of transactions that stay open for long.
    start, reached: the offsets from which on, and up to which, batches have been searched and what was found is kept.
    """

    def __init__(
        self, segments: Sequence[Segment], from_offset: int, missing_after: Callable[[Segment], int | None]
    ) -> None:
        """segments: of the log, in order.

        missing_after: returns the end of the offsets after a segment that are in no segment, None without any, or
        raises an error for them. It is called where a transaction may end in them. Where it returns, such a transaction
        counts as aborted: consumers do not see records before they know that they are committed.
        """
        self._segments, self._from, self._missing_after = segments, from_offset, missing_after
        self._open: Open = {}  # what began before from_offset does not matter
        self._found: list[AbortedTransaction] = []
        self._to = self.start = self.reached = from_offset
        self._steps = self._search()

    def within(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Return those with data in a range from `start` on, and forget those that end before it.

        Their first_offset may be cut to the one that the search began at. Not to be used again after an error.
        """
        self._to, self.start = max(self._to, to_offset), from_offset
        while self.reached < self._to or not is_settled(self._open, self._to):
            if next(self._steps, self) is self:
                break
        self._found[:] = [each for each in self._found if each.last_offset >= from_offset]
        return [each for each in self._found if each.first_offset < to_offset]

    def _search(self) -> Iterator[None]:
        for segment in self._segments:
            if segment.next_base is not None and segment.next_base <= self._from:
                continue
            for offset in walk_transactions(
                segment, self._open, self._found, from_offset=self._from, plain_until=self._to
            ):
                self.reached = offset
                yield
            end = self._missing_after(segment) if self._open else None
            if end is not None:
                self._found += [AbortedTransaction(producer, first, end - 1) for producer, first in self._open.items()]
                self._open.clear()
            self.reached = MAX_OFFSET if segment.next_base is None else segment.next_base
            yield


def open_transactions(
    segments: Sequence[Segment], snapshots: Iterable[int], snapshot: Callable[[int], Open | None], log_start_offset: int
) -> Open:
    """Return the transactions open at the end of the log: the newest valid snapshot, then a scan from there (G-13)."""
    end = segments[-1].end().next_offset
    start, open_now = log_start_offset, Open()
    for offset in sorted(snapshots, reverse=True):
        if offset <= end and (known := snapshot(offset)) is not None:
            start, open_now = offset, known
            break
    if start >= end:
        return open_now
    for segment in segments:
        if segment.next_base is None or segment.next_base > start:
            try:
                for _ in walk_transactions(segment, open_now, [], from_offset=start):
                    pass
            except CorruptBatch:
                if not segment.is_active:
                    raise
    return open_now
