"""Which records a command is asked for: --offsets, --since, --until, --topic, --partition."""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import OptionError

if TYPE_CHECKING:
    from kwire.records import Batch, Record

__all__ = ["Selection", "parse_offsets", "parse_time"]

MAX_OFFSET = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Offsets in [first_offset, end_offset), timestamps in [since_ms, until_ms); None is no bound."""

    first_offset: int = 0
    end_offset: int = MAX_OFFSET + 1
    since_ms: int | None = None
    until_ms: int | None = None
    topics: Sequence[str] = ()
    partitions: Sequence[int] = ()

    def takes_partition(self, topic: str, partition: int) -> bool:
        """Whether --topic (any of its patterns) and --partition let it through."""
        named = not self.topics or any(fnmatch.fnmatchcase(topic, pattern) for pattern in self.topics)
        return named and (not self.partitions or partition in self.partitions)

    def may_take_from(self, batch: Batch) -> bool:
        """Whether the batch can hold a record that is asked for; False is certain.

        A header has the largest timestamp and no smallest one: any batch may hold a record from before --until.
        """
        if batch.last_offset < self.first_offset:
            return False
        if batch.magic >= 2 and batch.claimed_offsets()[0] >= self.end_offset:
            return False
        return self.since_ms is None or batch.max_timestamp >= self.since_ms or batch.magic == 0

    def takes_batch(self, batch: Batch) -> bool:
        """Whether the batch as a whole is asked for: by its offsets, largest timestamp and first record's timestamp."""
        if not self.may_take_from(batch):
            return False
        return self.until_ms is None or min(batch.max_timestamp, batch.base_timestamp) < self.until_ms

    def takes_record(self, record: Record) -> bool:
        """Whether the record is asked for."""
        if not self.first_offset <= record.offset < self.end_offset:
            return False
        if self.since_ms is not None and record.timestamp < self.since_ms:
            return False
        return self.until_ms is None or record.timestamp < self.until_ms


def parse_offsets(text: str) -> tuple[int, int]:
    """`A:B` as [A, B), either side may be empty; a single number is that offset alone. Raises OptionError."""
    first, colon, end = text.partition(":")
    try:
        low = int(first) if first else 0
        high = (int(end) if end else MAX_OFFSET + 1) if colon else low + 1
    except ValueError:
        low, high = 1, 0
    if not text or not 0 <= low <= high:
        raise OptionError(f"--offsets {text!r}: expected A:B (from A up to, without, B), A:, :B or one offset")
    return low, high


def parse_time(text: str, option: str) -> int:
    """Milliseconds since 1970 from a number of them or an ISO 8601 date or time, in UTC unless it says otherwise.

    Raises OptionError naming `option`.
    """
    if text.lstrip("-").isascii() and text.lstrip("-").isdigit():
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
