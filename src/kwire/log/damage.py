"""What can be wrong in a log directory, how bad it is, and what to do.

A finding names a place (file, bytes, offsets), what is there instead of what should be, what a broker or consumer makes
of it, and what to do. Kafka's own answer decides the severity, so the same flipped bit weighs differently below and
above the recovery point: below it nobody looks until a consumer stops there; above it a starting broker cuts the log
at that place and drops everything behind.
Source: rules G-01 to G-14, F-02 to F-64, D-07; Kafka's LogLoader, LogSegment.recover, UnifiedLog.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

__all__ = ["Damage", "Kind", "Severity"]


class Severity(enum.IntEnum):
    """How bad a finding is, from nothing lost to nothing starts."""

    NOTE = 0  # nothing is wrong: what a stop without shutdown, or work under way, leaves
    RECOVERS = 1  # a broker puts it right by itself when it starts, and loses nothing
    MISLEADS = 2  # nobody notices, and some answers are wrong
    STOPS_CONSUMERS = 3  # readers end there with an error
    LOSES_RECORDS = 4  # records are gone, or a starting broker will drop them
    STOPS_BROKER = 5  # a broker does not start with it, or takes the directory offline

    @property
    def text(self) -> str:
        """The words that tables and JSON show."""
        return self.name.lower().replace("_", " ")

    @property
    def meaning(self) -> str:
        """One sentence about it."""
        return MEANINGS[self]


MEANINGS = {
    Severity.NOTE: "nothing is wrong: what a stop without shutdown, or work that was under way, leaves behind",
    Severity.RECOVERS: "a broker puts it right when it starts, and no record is lost",
    Severity.MISLEADS: "nobody notices, and some answers are wrong",
    Severity.STOPS_CONSUMERS: "consumers end there with an error",
    Severity.LOSES_RECORDS: "records are gone, or a starting broker drops them",
    Severity.STOPS_BROKER: "a broker does not start, or takes the directory offline",
}


class Kind(enum.StrEnum):
    """What a finding is about."""

    CHECKSUM = "checksum"  # of a batch
    HEADER = "header"  # no batch starts where one should
    RECORDS = "records"  # of a batch whose checksum holds do not decode
    OFFSETS = "offsets"  # that do not rise or leave their segment
    TIMESTAMPS = "timestamps"
    SEQUENCE = "sequence"  # of an idempotent producer's batches
    CONTROL = "control"  # batches with transaction markers or what KRaft writes
    CUT = "cut"  # the file ends inside a batch
    ZEROS = "zeros"  # where batches should be
    OFFSET_INDEX = "index"
    TIME_INDEX = "timeindex"
    TRANSACTION_INDEX = "txnindex"
    SNAPSHOT = "snapshot"  # of producers
    LEADER_EPOCHS = "leader epochs"
    CHECKPOINT = "checkpoint"  # of the directory
    SEGMENT = "segment"  # twice there, or under a wrong name
    MISSING_RECORDS = "missing records"  # that other files speak of
    METADATA = "metadata"  # meta.properties, partition.metadata, quorum-state, snapshots of the metadata log
    LEFTOVER = "leftover"  # files and directories that are no part of a log
    UNCLEAN_STOP = "unclean stop"
    UNREADABLE = "unreadable"  # the operating system refuses


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One finding.

    file: path or URL. position, size_bytes: bytes of it that are concerned, None where it is about the whole file.
    offsets: (first, last) that are lost or in doubt, as CorruptBatch.offsets; None where none are, or nobody knows.
    cause: what is there. effect: what a broker or a consumer makes of it. hint: what to do.
    topic, partition: of the log, None for the directory's own files.
    """

    file: str
    cause: str
    kind: Kind
    severity: Severity
    position: int | None = None
    size_bytes: int | None = None
    offsets: tuple[int, int] | None = None
    effect: str = ""
    hint: str = ""
    topic: str | None = None
    partition: int | None = None

    def __str__(self) -> str:
        where = "" if self.position is None else f" at byte {self.position}"
        return f"{self.file}{where}: {self.cause} ({self.severity.text}{self._offsets_text()})"

    def _offsets_text(self) -> str:
        if self.offsets is None:
            return ""
        first, last = self.offsets
        return f", offset {first}" if first == last else f", offsets {first} to {last}"

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.file.partition("::")[0].rpartition("/")[2]  # what follows :: says where an archive is

    @property
    def key(self) -> tuple[str | None, int | None]:
        """(topic, partition)."""
        return self.topic, self.partition

    @property
    def is_harmless(self) -> bool:
        """Whether it is a note: no damage."""
        return self.severity is Severity.NOTE

    def as_row(self) -> dict[str, Any]:
        """For JSON: every field, in JSON's own types."""
        return {
            "severity": self.severity.text,
            "kind": self.kind.value,
            "topic": self.topic,
            "partition": self.partition,
            "file": self.file,
            "position": self.position,
            "size_bytes": self.size_bytes,
            "first_offset": self.offsets[0] if self.offsets else None,
            "last_offset": self.offsets[1] if self.offsets else None,
            "cause": self.cause,
            "effect": self.effect,
            "hint": self.hint,
        }
