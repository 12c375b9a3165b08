"""The records that --offsets, --since, --until, --topic and --partition select."""

from __future__ import annotations

import datetime
import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.identifiers import MAX_OFFSET

if TYPE_CHECKING:
    from kwire.records import Batch, Record

__all__ = ["MAX_OFFSET", "Selection", "parse_time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Topics, partitions, offsets in [first_offset, end_offset) and timestamps in [since_ms, until_ms).

    None is unbounded; an empty sequence selects every topic or partition.
    """

    first_offset: int = 0
    end_offset: int = MAX_OFFSET + 1
    since_ms: int | None = None
    until_ms: int | None = None
    topics: Sequence[str] = ()
    partitions: Sequence[int] = ()

    @classmethod
    def parse(
        cls,
        topics: Sequence[str] | None,
        partitions: Sequence[int] | None,
        *,
        offsets: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Selection:
        """Return the selection of the options as they were given. Raises OptionError."""
        first, end = (0, MAX_OFFSET + 1) if offsets is None else parse_offsets(offsets)
        return cls(
            first_offset=first,
            end_offset=end,
            since_ms=None if since is None else parse_time(since, "--since"),
            until_ms=None if until is None else parse_time(until, "--until"),
            topics=topics or (),
            partitions=partitions or (),
        )

    def takes_partition(self, topic: str, partition: int) -> bool:
        """Return whether the partition matches --topic (any of its patterns) and --partition."""
        named = not self.topics or any(fnmatch.fnmatchcase(topic, pattern) for pattern in self.topics)
        return named and (not self.partitions or partition in self.partitions)

    def may_take_from(self, batch: Batch) -> bool:
        """Return whether the batch may contain a selected record. False is certain, True is not.

        A header has the largest timestamp and not the smallest: any batch may contain a record from before --until.
        """
        if batch.last_offset < self.first_offset:
            return False
        if batch.magic >= 2 and batch.claimed_offsets()[0] >= self.end_offset:
            return False
        return self.since_ms is None or batch.max_timestamp >= self.since_ms or batch.magic == 0

    def takes_batch(self, batch: Batch) -> bool:
        """Return whether the batch is selected by its offsets, its largest and its first timestamp."""
        if not self.may_take_from(batch):
            return False
        return self.until_ms is None or min(batch.max_timestamp, batch.base_timestamp) < self.until_ms

    def takes_record(self, record: Record) -> bool:
        """Return whether the record is selected."""
        if not self.first_offset <= record.offset < self.end_offset:
            return False
        if self.since_ms is not None and record.timestamp < self.since_ms:
            return False
        return self.until_ms is None or record.timestamp < self.until_ms


def parse_offsets(text: str) -> tuple[int, int]:
    """Parse `A:B` as [A, B). Either side may be empty; a single number is that offset alone. Raises OptionError."""
    first, colon, end = text.partition(":")
    try:
        low = int(first) if first else 0
        high = (int(end) if end else MAX_OFFSET + 1) if colon else low + 1
    except ValueError:
        low, high = 1, 0
    if not text or not 0 <= low <= high:
        raise OptionError(f"--offsets {text!r}: expected A:B (A inclusive, B exclusive), A:, :B or one offset")
    return low, high


def parse_time(text: str, option: str) -> int:
    """Parse milliseconds since 1970, or an ISO 8601 date or time, in UTC unless it has an offset.

    Raises OptionError that names `option`.
    """
    if re.fullmatch(r"-?[0-9]{1,19}", text):
        return int(text)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(
            f"{option} {text!r}: expected milliseconds since 1970 or a time such as 2025-10-09T08:53:20Z"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)
