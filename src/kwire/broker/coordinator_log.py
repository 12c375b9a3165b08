"""Reading a coordinator's topic when the broker starts.

Source: kafka.coordinator.group.CoordinatorLoaderImpl.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.internal_topics.typed_record import Decoder, Problems, TypedRecord, typed_records
from kwire.records import read_batches

if TYPE_CHECKING:
    from kwire.broker.topics import Topic

__all__ = ["read_topic", "warn_of_problems"]

logger = logging.getLogger(__name__)

LOAD_BYTES = 5 * 1024 * 1024
"""Bytes read at a time. Source: offsets.load.buffer.size, transaction.state.log.load.buffer.size."""


def read_topic(topic: Topic | None, decoder: Decoder) -> Iterator[TypedRecord]:
    """Yield every record of a topic, partition by partition; none for a topic that does not exist. Raises LogError."""
    for partition in () if topic is None else topic.partitions.values():
        if partition.log is None:
            continue
        offset = partition.log.log_start_offset
        while offset < partition.log.log_end_offset:
            data, start = partition.log.fetch(offset, LOAD_BYTES).read(), offset
            for batch in read_batches(data):
                yield from typed_records(partition.topic.name, partition.index, batch, decoder)
                offset = batch.last_offset + 1
            if offset == start:  # recovery has truncated what follows
                break


def warn_of_problems(problems: Problems) -> None:
    """Log a warning for each record that could not be applied."""
    for record in problems.records:
        logger.warning("%s-%d, offset %d: %s", record.topic, record.partition, record.offset, record.error)
