"""The partitions, offsets and times that a filter can match, found without reading records.

A filter is an Arrow expression, which Python cannot take apart. But Arrow prunes the fragments of a dataset by their
partition expressions: it says whether a filter can be true for rows with `offset < 100`. Asking this for ranges gives
the bounds that the filter implies, whatever form it has. What Arrow does not understand, it takes for possible, so no
row is lost. Ranges are also cut at the numbers in the filter's text, since no search would find a hole of few offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

__all__ = ["Matching", "named_columns"]

TIME = pa.timestamp("us", "UTC")
PARTS = 16  # into which a range is cut at once
MOST_RANGES = 64  # of offsets; more would cost more requests than the records between them
NUMBER = re.compile(r"(?<!\d)\d{1,19}(?!\d)")  # longer ones are not offsets
SMALLEST_TIME, LARGEST_TIME = -(2**63), 2**63 - 1  # microseconds

_FORMAT, _FILES = ds.IpcFileFormat(), fs.LocalFileSystem()


class Matching:
    """Answers what a filter can match among the rows of a topic; None as filter matches all of them.

    filter: over the columns of the schema, which has `topic`, `partition`, `offset` and `timestamp`.
    """

    def __init__(self, filter: pc.Expression | None, schema: pa.Schema, topic: str) -> None:
        self._filter, self._schema = filter, schema
        self._of_topic = pc.field("topic") == pa.scalar(topic)
        named = [int(number[0]) for number in islice(NUMBER.finditer(str(filter)), MOST_RANGES)]
        self._borders = sorted({border for number in named for border in (number, number + 1)})

    def partitions(self, partitions: Sequence[int]) -> list[int]:
        """Return the partitions that may have matches."""
        possible = self._possible([self._of(partition) for partition in partitions])
        return [partition for partition, kept in zip(partitions, possible, strict=True) if kept]

    def offset_ranges(self, partition: int, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """Return disjoint ranges [from, to) of these offsets of a partition, in order, with all matches in them."""
        ranges = [(start_offset, end_offset)] if start_offset < end_offset else []
        while ranges:
            parts = [part for start, end in ranges for part in _cut(start, end, self._borders)]
            kept = _joined([part for part, can in zip(parts, self._can_match(partition, parts), strict=True) if can])
            kept = [each for part in kept if (each := self._narrowed(partition, *part))[0] < each[1]]
            if len(kept) > MOST_RANGES or kept == ranges:
                break
            ranges = kept
        return ranges

    def _narrowed(self, partition: int, start: int, end: int) -> tuple[int, int]:
        """Return a range that has matches without the offsets at its ends that have none."""
        begin_can, end_can = self._can_match(partition, [(start, start + 1), (end - 1, end)])
        if not begin_can:
            start = _last_where(start, end, lambda to: not self._can_match(partition, [(start, to)])[0])
        if not end_can:
            end = -_last_where(-end, -start, lambda minus: not self._can_match(partition, [(-minus, end)])[0])
        return start, end

    def _can_match(self, partition: int, ranges: Sequence[tuple[int, int]]) -> list[bool]:
        return self._possible([self._of(partition) & _offsets(start, end) for start, end in ranges])

    def earliest_time(self) -> int | None:
        """Return a time in ms before which no row matches; None if earlier rows, or rows without a time, may match."""
        if self._can_match_until(SMALLEST_TIME):
            return None
        latest = _last_where(SMALLEST_TIME, LARGEST_TIME, lambda time: not self._can_match_until(time))
        return latest // 1000 + 1

    def _can_match_until(self, time: int) -> bool:
        """Return whether a row without a timestamp, or with one at or before `time` (us), can match."""
        timestamp = pc.field("timestamp")
        return self._possible([self._of_topic & ((timestamp <= pa.scalar(time, TIME)) | timestamp.is_null())])[0]

    def _of(self, partition: int) -> pc.Expression:
        return self._of_topic & (pc.field("partition") == pa.scalar(partition, pa.int32()))

    def _possible(self, guarantees: Sequence[pc.Expression]) -> list[bool]:
        """Return for each guarantee whether a row for which it holds can match."""
        if self._filter is None:
            return [True] * len(guarantees)
        fragments = [
            _FORMAT.make_fragment(str(i), filesystem=_FILES, partition_expression=guarantee)
            for i, guarantee in enumerate(guarantees)
        ]
        dataset = ds.FileSystemDataset(fragments, self._schema, _FORMAT, filesystem=_FILES)
        try:
            kept = {int(fragment.path) for fragment in dataset.get_fragments(filter=self._filter)}
        except pa.ArrowException:  # such as NOT NULL: reading says what is wrong with it
            return [True] * len(guarantees)
        return [i in kept for i in range(len(guarantees))]


def named_columns(filter: pc.Expression | None, schema: pa.Schema) -> list[str]:
    """Return the columns that a filter may read: those whose names occur in its text, which may be too many."""
    if filter is None:
        return []
    text = str(filter)
    by_number = "FieldPath" in text
    return [name for name in schema.names if by_number or name in text]


def _offsets(start: int, end: int) -> pc.Expression:
    offset = pc.field("offset")
    return (offset >= pa.scalar(start, pa.int64())) & (offset <= pa.scalar(end - 1, pa.int64()))


def _cut(start: int, end: int, borders: Iterable[int]) -> list[tuple[int, int]]:
    step = -(-(end - start) // PARTS)
    inside = (border for border in borders if start < border < end)
    return list(pairwise(sorted({*range(start, end, step), *inside, end})))


def _joined(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _last_where(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the largest number in [low, high] for which `holds`, which holds at low and up to that number."""
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
