"""Reading all records of an internal topic in order, with control records, tombstones and damage.

The state at an offset N consists of the records below N. The state at a time T consists of the records before the
first one with a later timestamp, so it is a state that existed. Brokers set the timestamps.

Unreadable records are rows. Reading continues with the next batch after a batch with a wrong checksum, and with the
next segment after bytes that are not a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from kwire.errors import CorruptBatch, LogError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.typed_record import Decoder, TypedRecord, damage_row, typed_records
from kwire.log.files.offset_checks import check_offsets
from kwire.log.files.segment_batches import open_batches

if TYPE_CHECKING:
    from kwire.log.reading.readable_log import ReadableLog

__all__ = ["Source", "partitions_of", "read_history"]

Source: TypeAlias = "Mapping[TopicPartition, ReadableLog] | ReadableLog"
"""Where internal topics are: partitions by (topic, partition), as in a LogDirectory, or one partition's log."""


def partitions_of(source: Source, topic: str) -> list[ReadableLog]:
    """Return the logs of a topic in a directory, or the one log given. Raises LogError if there is none."""
    if not isinstance(source, Mapping):
        return [source]
    partitions = [log for (name, _), log in source.items() if name == topic]
    if not partitions:
        topics = ", ".join(sorted({name for name, _ in source}))[:500]
        raise LogError(f"no partition of '{topic}'; available topics: {topics}", getattr(source, "url", None))
    return partitions


def read_history(
    log: ReadableLog,
    decoder: Decoder,
    *,
    start_offset: int = 0,
    at_offset: int | None = None,
    at_time: int | None = None,
) -> Iterator[TypedRecord]:
    """Yield the records from start_offset on, in order. Memory: one batch.

    at_offset: the end, exclusive. at_time: stop before the first record with a later timestamp (ms). Raises LogError
    for missing or unreadable files.
    """
    pinned = log.pin(start_offset, at_offset)
    start, end = pinned.start_offset, pinned.end_offset
    expected = start
    for run in pinned.runs:
        try:
            for batch in check_offsets(run.segment, open_batches(run.segment, run.file, start)):
                if batch.last_offset < start:
                    continue
                if batch.magic == 2 and batch.base_offset >= end:
                    return
                for typed in typed_records(log.topic, log.partition, batch, decoder):
                    if typed.offset >= end or (at_time is not None and typed.timestamp > at_time):
                        return
                    if typed.offset >= start:
                        yield typed
                expected = batch.last_offset + 1
        except CorruptBatch as error:
            yield damage_row(log.topic, log.partition, max(expected, run.segment.base_offset), error)
