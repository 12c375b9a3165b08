"""The log of the group coordinator, as an interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kwire.internal_topics.typed_record import TypedRecord

__all__ = ["NO_PRODUCER", "OffsetsLog", "Producer"]


@dataclass(frozen=True, slots=True)
class Producer:
    """A producer that appends within a transaction. epoch: the producer's."""

    producer_id: int
    epoch: int


NO_PRODUCER = Producer(-1, -1)


class OffsetsLog(Protocol):
    """The partitions of `__consumer_offsets`."""

    def partition_count(self) -> int:
        """Return the number of partitions; of a missing topic, the number it would be created with."""

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], producer: Producer = NO_PRODUCER
    ) -> int:
        """Append one batch of (key, value), creating a missing topic first; return the first offset.

        Appends all records or none. Raises BrokerError (MESSAGE_TOO_LARGE and others), LogError.
        """

    def replay(self) -> Iterator[TypedRecord]:
        """Yield every record of the log, each partition in order, transaction markers too. Raises LogError."""
