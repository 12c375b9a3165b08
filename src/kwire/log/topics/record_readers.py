"""The function that reads the records of each internal topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kwire.internal_topics.names import GROUPS_TOPIC, METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kwire.internal_topics.typed_record import TypedRecord
from kwire.log.topics.cluster_metadata import read_cluster_records
from kwire.log.topics.coordinator_topics import read_group_records, read_share_records, read_transaction_records
from kwire.log.topics.history import Source

__all__ = ["RECORD_READERS", "RecordReader"]


class RecordReader(Protocol):
    """Reads every record of a topic, up to an offset or a time."""

    def __call__(
        self, source: Source, /, *, at_offset: int | None = None, at_time: int | None = None
    ) -> Iterator[TypedRecord]:
        """Yield the records in order. Raises LogError."""


RECORD_READERS: dict[str, RecordReader] = {
    GROUPS_TOPIC: read_group_records,
    METADATA_TOPIC: read_cluster_records,
    SHARE_STATE_TOPIC: read_share_records,
    TRANSACTIONS_TOPIC: read_transaction_records,
}
