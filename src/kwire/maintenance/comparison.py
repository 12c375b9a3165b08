"""Compare a copy of logs with their source, batch by batch: `kwire log verify COPY --against SOURCE`.

Both sides are read once, in step, by the last offset of each batch: what they have in common is compared as bytes, from
the later log start offset to the earlier end. Compaction of the source after the copy was made leaves batches with
fewer records, or none: they are compared by their records, and noted. Memory: a run of batches of each side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kwire.errors import BrokerError, ConnectionFailed, CorruptBatch, LogError
from kwire.identifiers import render_uuid
from kwire.log.files.damage import Damage, Kind, Severity
from kwire.log.reading.readable_log import LogSource, ReadableLog
from kwire.records import Batch

__all__ = ["compare"]

MISSING, REMOVED = "missing in the copy", "missing in the source"
COMPACTED = "compacted in the source since it was copied"
FIELDS = ("magic", "leader_epoch", "compression", "producer_id", "producer_epoch", "base_sequence")
FINDINGS = 100
"""Findings of a partition that are reported one by one."""


def compare(
    copies: Iterable[ReadableLog],
    source: LogSource[ReadableLog],
    *,
    is_compacted: Callable[[str], bool] = lambda topic: True,
    advance: Callable[[int], None] = lambda n: None,
) -> Iterator[Damage]:
    """Yield the differences of each partition, by offset. What cannot be compared is a finding as well.

    is_compacted: whether a topic's records may be compacted in the source. advance: called with bytes of the copy.
    """
    for copy in copies:
        key = copy.topic, copy.partition
        if key not in source:
            yield finding(copy, f"not in {source.url}: the topic was deleted, or the account may not see it")
            continue
        theirs = source[key]
        if copy.topic_id is not None and theirs.topic_id is not None and copy.topic_id != theirs.topic_id:
            ids = f"its id is {render_uuid(copy.topic_id)}, in the source {render_uuid(theirs.topic_id)}"
            yield finding(copy, f"the topic was deleted and created again: {ids}")
            continue
        yield from Comparison(copy, theirs, is_compacted(copy.topic), advance).run()


def finding(
    copy: ReadableLog, cause: str, offsets: tuple[int, int] | None = None, severity: Severity = Severity.MISLEADS
) -> Damage:
    """Return a difference as a finding."""
    harmless = severity is Severity.NOTE
    return Damage(
        kind=Kind.COPY,
        severity=severity,
        file=copy.url,
        cause=cause,
        offsets=offsets,
        effect="" if harmless else "none by itself: the records may differ from the source's",
        hint="" if harmless else "remove the partition's directory and pull it again",
        topic=copy.topic,
        partition=copy.partition,
    )


@dataclass(slots=True)
class Comparison:
    """The comparison of one partition."""

    copy: ReadableLog
    source: ReadableLog
    is_compacted: bool
    advance: Callable[[int], None]
    differences: list[tuple[str, int, int]] = field(default_factory=list)  # cause, first and last offset
    is_cut: bool = False

    def run(self) -> Iterator[Damage]:
        """Compare the batches that both have."""
        failure = None
        try:
            self._compare()
        except CorruptBatch as error:
            failure = f"not compared to its end: {error}"
        except (LogError, BrokerError, ConnectionFailed) as error:
            failure = f"not compared to its end: {error}"
        yield from self._findings()
        if failure is None and self.copy.damage is not None:
            failure = f"not compared to its end: {self.copy.damage}"
        if failure is not None:
            yield finding(self.copy, failure)

    def _compare(self) -> None:
        copy, source = self.copy, self.source
        start = max(copy.log_start_offset, source.log_start_offset)
        end = min(copy.log_end_offset, source.log_end_offset)
        ours, theirs = self._batches(copy, start, end), self._batches(source, start, end)
        mine, other = next(ours, None), next(theirs, None)
        while (mine is not None or other is not None) and not self.is_cut:
            if mine is None or (other is not None and other.last_offset < mine.last_offset):
                assert other is not None
                self._note(MISSING, other)
                other = next(theirs, None)
            elif other is None or mine.last_offset < other.last_offset:
                self._note(COMPACTED if self.is_compacted else REMOVED, mine)
                mine = next(ours, None)
            else:
                if mine.buffer != other.buffer:
                    self._note(difference(mine, other, self.is_compacted), mine)
                mine, other = next(ours, None), next(theirs, None)
        if copy.log_end_offset > source.log_end_offset:
            self.differences.append((f"the source ends at offset {end}", end, copy.log_end_offset - 1))

    def _batches(self, log: ReadableLog, start: int, end: int) -> Iterator[Batch]:
        for _, batch in log.batches(start) if start < end else ():
            if batch.claimed_offsets()[0] >= end:
                break
            if batch.last_offset >= start:
                yield batch
                if log is self.copy:
                    self.advance(len(batch.buffer))

    def _note(self, cause: str, batch: Batch) -> None:
        """Add a difference, to the one before it if it is the same."""
        first, last = batch.claimed_offsets()
        if self.differences and self.differences[-1][0] == cause:
            self.differences[-1] = cause, self.differences[-1][1], last
        elif len(self.differences) == FINDINGS:
            self.differences.append(("more differences follow, which are not listed", first, last))
            self.is_cut = True
        else:
            self.differences.append((cause, first, last))

    def _findings(self) -> Iterator[Damage]:
        removed = [each for each in self.differences if each[0] == REMOVED]
        # retention may have removed them while they were compared
        start = self.source.reopened().log_start_offset if removed else 0
        for cause, first, last in self.differences:
            if cause == REMOVED and last < start:
                continue
            severity = Severity.NOTE if cause == COMPACTED else Severity.MISLEADS
            yield finding(self.copy, cause, (max(first, start) if cause == REMOVED else first, last), severity)


def difference(mine: Batch, other: Batch, is_compacted: bool) -> str:
    """Return how two batches with the same last offset differ."""
    differing = [name.replace("_", " ") for name in FIELDS if getattr(mine, name) != getattr(other, name)]
    for batch, whose in ((mine, "copy"), (other, "source")):
        try:
            batch.check()
        except CorruptBatch as error:
            return f"differs from the source's batch, and that of the {whose} is damaged: {error.what}"
    if is_compacted and not differing and is_part(other, mine):
        return COMPACTED
    return f"differs from the source's batch in {', '.join(differing) or 'its records'}"


def is_part(part: Batch, whole: Batch) -> bool:
    """Return whether all records of a batch are in another one. Raises CorruptBatch."""
    records = {each.offset: each for each in whole.records()}
    for each in part.records():
        known = records.get(each.offset)
        if known is None or (each.timestamp, each.key, each.value, each.headers) != (
            known.timestamp,
            known.key,
            known.value,
            known.headers,
        ):
            return False
    return True
