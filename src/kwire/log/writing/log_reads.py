"""Read from an open partition: parts of files for a fetch, aborted transactions, offsets by time.

A fetch returns bytes of one segment file unchanged, starting with the batch that contains the offset. It may end inside
a later batch, which the consumer fetches again. The payload is not read.
Source: kafka.log.LocalLog.read, collectAbortedTransactions; UnifiedLog.fetchOffsetByTimestamp; rules F-12, F-22, F-32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from kwire.errors import LogError
from kwire.log.files.time_lookup import TimestampAndOffset
from kwire.log.files.transaction_index import AbortedTransaction
from kwire.log.writing.segment_list import SegmentList
from kwire.storage.file_system import OpenFile
from kwire.storage.header_walk import HeaderWalk

__all__ = ["Fetched", "FilePart"]


class FilePart(NamedTuple):
    """Bytes [position, position + size_bytes) of a file. To send them later, hold the file with file.hold()."""

    file: OpenFile
    position: int
    size_bytes: int

    def read(self) -> bytes:
        """Read the bytes. Raises LogError if the file is shorter."""
        data = self.file.pread(self.position, self.size_bytes)
        if len(data) != self.size_bytes:
            raise LogError(f"ends at byte {self.position + len(data)}, inside a fetch", self.file.url)
        return data


class Fetched(msgspec.Struct, frozen=True):
    """Result of a fetch: parts of files, in order; empty if no batch is available.

    offset: the fetch offset. next_offset_bound: above every offset in parts.
    """

    offset: int
    parts: Sequence[FilePart] = ()
    next_offset_bound: int = 0

    @property
    def size_bytes(self) -> int:
        """Total size of the parts."""
        return sum(part.size_bytes for part in self.parts)

    def read(self) -> bytes:
        """Read the bytes of all parts."""
        return b"".join(part.read() for part in self.parts)

    def has_compatible_magic(self, magic: int) -> bool:
        """Return whether no whole batch has a newer format than magic; reads headers only. Raises CorruptBatch.

        Source: org.apache.kafka.common.record.AbstractRecords.hasCompatibleMagic.
        """
        for part in self.parts:
            end = part.position + part.size_bytes
            walk = HeaderWalk(part.file, part.position, end)
            for header in walk:
                if header.position + header.size_bytes > end:
                    break
                if header.magic > magic:
                    return False
            if walk.damage is not None:
                raise walk.damage
        return True


def fetch(
    segments: SegmentList,
    offset: int,
    max_bytes: int,
    *,
    limit: int,
    log_end_offset: int,
    at_least_one: bool,
    may_cut_first: bool,
) -> Fetched:
    """Fetch batches from the one that contains offset, below limit, up to max_bytes.

    at_least_one: return the first batch whole even if it is larger than max_bytes. may_cut_first: return the beginning
    of a larger first batch, instead of nothing.
    """
    if offset >= limit:
        return Fetched(offset, next_offset_bound=offset)
    for i in range(max(segments.number_of(offset), 0), len(segments)):
        segment, next_base = segments[i], segments.next_base(i)
        if segment.base_offset >= limit:
            break
        segments.reading(segment)
        place = segment.find_batch(offset)
        if place is None:
            continue  # compaction has left a gap up to the next segment
        end, bound = segment.size_bytes, log_end_offset if next_base is None else next_base
        if limit < bound:
            above = segment.find_batch(limit)
            end, bound = end if above is None else above.position, limit
        size = min(max(max_bytes, place.size_bytes) if at_least_one else max_bytes, end - place.position)
        if size <= 0 or (size < place.size_bytes and not may_cut_first):
            break
        bound = min(segment.offset_index.offset_after(place.position + size) or bound, bound)
        part = FilePart(segment.log, place.position, size)
        return Fetched(offset, (part,), bound)
    return Fetched(offset, next_offset_bound=offset)


def aborted_transactions(segments: SegmentList, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
    """Return the aborted transactions with data in [from_offset, to_offset) from the transaction indexes (F-32)."""
    aborted = []
    for i in range(max(segments.number_of(from_offset), 0), len(segments)):
        for entry in segments[i].transaction_index.entries:
            if entry.last_offset >= from_offset and entry.first_offset < to_offset:
                aborted.append(AbortedTransaction(entry.producer_id, entry.first_offset, entry.last_offset))
            if entry.last_stable_offset >= to_offset:
                return aborted
    return aborted


def offset_for_time(segments: SegmentList, timestamp: int, log_start_offset: int) -> TimestampAndOffset | None:
    """Find the first record at or after timestamp (ms) in the first segment whose largest timestamp is not below it."""
    for segment in segments:
        if segment.largest_timestamp >= timestamp:
            record = segment.find_timestamp(timestamp, log_start_offset)
            if segment is not segments.active:
                segment.unload()
            return record
    return None


def offset_of_largest_time(segments: SegmentList) -> TimestampAndOffset | None:
    """Find the first record with the largest timestamp of the log."""
    return max(segments, key=lambda segment: segment.largest[0]).find_largest_timestamp()
