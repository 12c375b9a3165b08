"""Reading logs of a running broker on its thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.errors import OptionError, counted, did_you_mean
from kwire.records import read_batches

if TYPE_CHECKING:
    from kwire.broker.topics import TopicRegistry
    from kwire.log.writing.partition_writer import PartitionWriter
    from kwire.records.format.batch import Batch
    from kwire.records.format.record import Record

__all__ = ["batches_of", "records_of"]

LOAD_BYTES = 5 * 1024 * 1024
"""Bytes read at a time. Source: offsets.load.buffer.size, transaction.state.log.load.buffer.size."""


def batches_of(log: PartitionWriter) -> Iterator[Batch]:
    """Yield the batches of a log, from its start to its end."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data, start = log.fetch(offset, LOAD_BYTES).read(), offset
        for batch in read_batches(data):
            yield batch
            offset = batch.last_offset + 1
        if offset == start:  # recovery has truncated what follows
            break


def records_of(topics: TopicRegistry, topic: str, partition: int | None) -> list[Record]:
    """Return the records of a topic by partition and offset, without control records; partition: None for all.

    Raises OptionError for an unknown topic or partition.
    """
    known = topics.get(topic)
    if known is None:
        raise OptionError(f"unknown topic {topic!r}{did_you_mean(str(topic), [each.name for each in topics])}")
    if partition is not None and partition not in known.partitions:
        count = counted(len(known.partitions), "partition")
        raise OptionError(f"unknown partition {partition}: topic {topic!r} has {count}")
    logs = [each.log for index, each in sorted(known.partitions.items()) if partition in (None, index)]
    return [
        record
        for log in logs
        if log is not None
        for batch in batches_of(log)
        if not batch.is_control
        for record in batch.records()
        if record.offset >= log.log_start_offset  # a batch may begin before it
    ]
