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
    segment: Segment, open_now: Open, *, from_offset: int = 0, to_offset: int | None = None
) -> Iterator[AbortedTransaction]:
    """Scan a segment's headers; yield each abort of a transaction with data, and update open_now in place.

    A marker without data in [from_offset, its own offset] yields nothing (P-08). Ends early once no transaction with
    data below to_offset is open. Raises CorruptBatch for bytes that are not a header.
    """
    with closing(segment.open()) as file:
        start = segment.start_for(file, from_offset)
        if isinstance(file, DescriptorFile):
            plain = plain_batches(file, start, to_offset, segment.plain_batches)  # most topics have no transactions
            if plain is not None:
                segment.plain_batches, start = plain, plain.end
        walk = HeaderWalk(file, start)
        for header in walk:
            if header.last_offset < from_offset:
                continue
            if to_offset is not None and header.stored_offset >= to_offset and is_settled(open_now, to_offset):
                return
            if not header.is_transactional:
                continue
            if not header.is_control:
                open_now.setdefault(header.producer_id, header.stored_offset)
                continue
            first = open_now.pop(header.producer_id, None)
            if first is not None and is_abort(file, header):
                yield AbortedTransaction(header.producer_id, first, header.last_offset)
        if walk.damage and not segment.ends_in_zeros(file, walk.position):
            raise walk.damage


def is_settled(open_now: Open, to_offset: int) -> bool:
    """Return whether no transaction with data below to_offset is open."""
    return all(first >= to_offset for first in open_now.values())


def aborted_transactions(
    segments: Sequence[Segment],
    from_offset: int,
    to_offset: int,
    *,
    snapshot: Callable[[int], Open | None],
    may_walk: bool = True,
) -> list[AbortedTransaction]:
    """Return the aborted transactions with data in [from_offset, to_offset), like a broker (F-32).

    segments: of the log, in order. snapshot(offset): transactions open at offset by a valid producer snapshot, else
    None. may_walk=False raises NeedsWalk if indexes and snapshots are not sufficient; planners leave the scan to
    readers.
    first_offset may be cut to from_offset for transactions that began before it.
    """
    aborted: list[AbortedTransaction] = []
    relevant = [s for s in segments if s.next_base is None or s.next_base > from_offset]
    open_now: Open | None = {}  # what began before from_offset does not matter
    for i, segment in enumerate(relevant):
        entries = segment.transaction_index
        if entries and are_true(entries, segments):  # an empty file may have lost its entries
            aborted += [AbortedTransaction(*e[:3]) for e in entries if e.last_offset >= from_offset]
            # F-32 would let an entry's last_stable_offset end the search; a snapshot says it with a checksum.
            open_now = snapshot(segment.next_base) if segment.next_base is not None else None
        else:
            if not may_walk:
                raise NeedsWalk("no transaction index", segment.url)
            if open_now is None:
                open_now = _open_at(relevant[:i], from_offset)
            aborted += walk_transactions(segment, open_now, from_offset=from_offset, to_offset=to_offset)
        beyond = segment.next_base is None or segment.next_base >= to_offset
        if beyond and open_now is not None and is_settled(open_now, to_offset):
            break
    return [each for each in aborted if each.first_offset < to_offset]


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
        for _ in walk_transactions(segment, open_now, from_offset=from_offset):
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
    for segment in segments:
        if segment.next_base is None or segment.next_base > start:
            try:
                for _ in walk_transactions(segment, open_now, from_offset=start):
                    pass
            except CorruptBatch:
                if not segment.is_active:
                    raise
    return open_now
