"""What the coordinator asks of the log it keeps its state in, and how it comes back from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["NO_PRODUCER", "LoggedMarker", "LoggedRecord", "OffsetsLog", "Producer"]


@dataclass(frozen=True, slots=True)
class Producer:
    """Who appends within a transaction. epoch: the producer's."""

    producer_id: int
    epoch: int


NO_PRODUCER = Producer(-1, -1)


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """A record as it stands in a partition. producer_id: -1 outside transactions."""

    partition: int
    offset: int
    producer_id: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class LoggedMarker:
    """The end of a producer's transaction in a partition."""

    partition: int
    producer_id: int
    commit: bool


class OffsetsLog(Protocol):
    """The partitions of `__consumer_offsets`."""

    def partition_count(self) -> int:
        """How many there are, or would be if the topic were made now."""

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], producer: Producer = NO_PRODUCER
    ) -> int:
        """Append one batch of (key, value), making the topic first if it is not there; returns its first offset.

        Either all of it is appended or nothing. Raises BrokerError (MESSAGE_TOO_LARGE and others), LogError.
        """

    def replay(self) -> Iterator[LoggedRecord | LoggedMarker]:
        """Everything in the log, each partition in its order. Raises DecodeError, LogError."""
