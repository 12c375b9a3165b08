"""Find aborted and open transactions without a coordinator.

Brokers send the aborted transactions, from `.txnindex` files, to consumers with read_committed. Here they come from the
same files if they are valid. A segment without one usually has no abort marker, but a copy may have lost the file, so
its batch headers are scanned instead; only markers are decoded. Both ways give the same result.

Open transactions come from the newest producer snapshot and a scan of the batches after it.
Source: rules F-30 to F-44, P-05, P-06, G-13, D-04; Kafka's UnifiedLog.collectAbortedTransactions, ProducerStateManager.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

from kwire.errors import CorruptBatch, LogError
from kwire.identifiers import MAX_OFFSET
from kwire.log.files.segment import Segment
from kwire.log.files.transaction_index import AbortedTransaction, TransactionIndexEntry
from kwire.records import ControlRecordType, parse_control_record, read_batches
from kwire.records.format.batch_header import BatchHeader
from kwire.storage.header_walk import HeaderWalk, plain_batches
from kwire.storage.store import DescriptorFile, StoredFile

MOST_ENTRIES_CHECKED = 100

Open = dict[int, int]  # producer id -> first offset of its open transaction


class NeedsWalk(LogError):
    """A scan of the log is required; raised with may_walk=False only."""


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
        self,
        segments: Sequence[Segment],
        from_offset: int,
        *,
        snapshot: Callable[[int], Open | None],
        may_walk: bool = True,
    ) -> None:
        """segments: of the log, in order. snapshot(offset): transactions open at offset by a valid producer snapshot.

        may_walk=False raises NeedsWalk if indexes and snapshots are not sufficient; planners leave the scan to readers.
        """
        self._segments, self._from, self._snapshot, self._may_walk = segments, from_offset, snapshot, may_walk
        self._open: Open | None = {}  # what began before from_offset does not matter; None if it is unknown
        self._found: list[AbortedTransaction] = []
        self._to = self.start = self.reached = from_offset
        self._steps = self._search()

    def within(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Return those with data in a range from `start` on, and forget those that end before it.

        Their first_offset may be cut to the one that the search began at. Not to be used again after an error.
        """
        self._to, self.start = max(self._to, to_offset), from_offset
        while self.reached < self._to or self._open is None or not is_settled(self._open, self._to):
            if next(self._steps, self) is self:
                break
        self._found[:] = [each for each in self._found if each.last_offset >= from_offset]
        return [each for each in self._found if each.first_offset < to_offset]

    def _search(self) -> Iterator[None]:
        relevant = [each for each in self._segments if each.next_base is None or each.next_base > self._from]
        for i, segment in enumerate(relevant):
            entries = segment.transaction_index
            if entries and are_true(entries, self._segments):  # an empty file may have lost its entries
                self._found += [AbortedTransaction(*e[:3]) for e in entries if e.last_offset >= self._from]
                # F-32 would let an entry's last_stable_offset end the search; a snapshot says it with a checksum.
                self._open = self._snapshot(segment.next_base) if segment.next_base is not None else None
            else:
                if not self._may_walk:
                    raise NeedsWalk("no transaction index", segment.url)
                if self._open is None:
                    self._open = _open_at(relevant[:i], self._from)
                for offset in walk_transactions(
                    segment, self._open, self._found, from_offset=self._from, plain_until=self._to
                ):
                    self.reached = offset
                    yield
            self.reached = MAX_OFFSET if segment.next_base is None else segment.next_base
            yield


def are_true(entries: Sequence[TransactionIndexEntry], segments: Sequence[Segment]) -> bool:
    """Return whether the log confirms the entries: first offset and marker are batches of the producer.

    The file has no checksum, and a wrong producer id would expose aborted records. For a long list a scan is cheaper
    than lookups, so it is not confirmed.
    """
    return len(entries) <= MOST_ENTRIES_CHECKED and all(
        _belongs(segments, entry.first_offset, entry.producer_id, is_control=False)
        and _belongs(segments, entry.last_offset, entry.producer_id, is_control=True)
        for entry in entries
    )


def _belongs(segments: Sequence[Segment], offset: int, producer_id: int, *, is_control: bool) -> bool:
    i = bisect_right(segments, offset, key=lambda segment: segment.base_offset)
    if i == 0:
        return False  # before the first segment: deleted by now
    with segments[i - 1].open() as file:
        at = segments[i - 1].batch_at(file, offset)
    return (
        at is not None
        and at.stored_offset == offset
        and at.producer_id == producer_id
        and at.is_transactional
        and at.is_control == is_control
    )


def _open_at(segments: Iterable[Segment], from_offset: int) -> Open:
    """Return the transactions open after these segments, by scanning them."""
    open_now: Open = {}
    for segment in segments:
        for _ in walk_transactions(segment, open_now, [], from_offset=from_offset):
            pass
    return open_now


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
