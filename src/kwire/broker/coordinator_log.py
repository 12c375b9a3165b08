"""Reading a coordinator's topic when the broker starts, or one partition when its leader changes.

Source: kafka.coordinator.group.CoordinatorLoaderImpl.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.broker.stored_records import batches_of
from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.internal_topics.typed_record import Decoder, Problems, TypedRecord, typed_records

if TYPE_CHECKING:
    from kwire.broker.topics import Topic

__all__ = ["read_topic", "warn_of_problems"]

logger = logging.getLogger(__name__)


def read_topic(topic: Topic | None, decoder: Decoder, index: int | None = None) -> Iterator[TypedRecord]:
    """Yield every record of a topic, partition by partition; none for a topic that does not exist. Raises LogError.

    index: of the only partition to read; None for all that have a leader.
    """
    for partition in () if topic is None else topic.partitions.values():
        if partition.log is None or index not in (None, partition.index) or partition.state.leader == NO_LEADER:
            continue
        for batch in batches_of(partition.log):
            yield from typed_records(partition.topic.name, partition.index, batch, decoder)


def warn_of_problems(problems: Problems) -> None:
    """Log a warning for each record that could not be applied."""
    for record in problems.records:
        logger.warning("%s-%d, offset %d: %s", record.topic, record.partition, record.offset, record.error)
