"""Damage in a log directory: kinds, severities and findings.

A finding names the place (file, bytes, offsets), the cause, the effect on brokers and consumers, and the remedy. Its
severity follows Kafka's behaviour, so the same flipped bit has another severity below and above the recovery point:
below it, nothing happens until a consumer fails there; above it, a starting broker truncates the log there.
Source: rules G-01 to G-14, F-02 to F-64, D-07; Kafka's LogLoader, LogSegment.recover, UnifiedLog.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from kwire.errors import hide_secrets

__all__ = ["Damage", "Kind", "Severity"]


class Severity(enum.IntEnum):
    """Severity of a finding, lowest first."""

    NOTE = 0  # no damage: traces of an unclean shutdown or of work in progress
    NOT_CHECKED = 1  # this user may not read it; whether it is damaged is unknown
    RECOVERS = 2  # a starting broker repairs it without loss
    MISLEADS = 3  # unnoticed, but some results are wrong
    STOPS_CONSUMERS = 4  # consumers fail there with an error, or wait there
    LOSES_RECORDS = 5  # records are lost, or a starting broker drops them
    STOPS_BROKER = 6  # a broker does not start, or takes the directory offline

    @property
    def text(self) -> str:
        """The severity in lower-case words, as in tables and JSON."""
        return self.name.lower().replace("_", " ")

    @property
    def meaning(self) -> str:
        """One sentence that explains the severity."""
        return MEANINGS[self]


MEANINGS = {
    Severity.NOTE: "no damage: traces of an unclean shutdown or of work in progress",
    Severity.NOT_CHECKED: "this user may not read it; whether it is damaged is unknown",
    Severity.RECOVERS: "a starting broker repairs it; no record is lost",
    Severity.MISLEADS: "unnoticed, but some results are wrong",
    Severity.STOPS_CONSUMERS: "consumers fail there with an error, or wait there",
    Severity.LOSES_RECORDS: "records are lost, or a starting broker drops them",
    Severity.STOPS_BROKER: "a broker does not start, or takes the directory offline",
}


class Kind(enum.StrEnum):
    """Kind of a finding: what it is about."""

    CHECKSUM = "checksum"  # of a batch
    HEADER = "header"  # no batch starts where one should
    RECORDS = "records"  # of a batch with a valid checksum do not decode
    OFFSETS = "offsets"  # do not increase, are outside their segment, or no batch has the last ones
    TIMESTAMPS = "timestamps"
    SEQUENCE = "sequence"  # of an idempotent producer's batches
    CONTROL = "control"  # batches with transaction markers or KRaft control records
    CUT = "cut"  # the file ends inside a batch
    ZEROS = "zeros"  # where batches should be
    OFFSET_INDEX = "index"
    TIME_INDEX = "timeindex"
    TRANSACTION_INDEX = "txnindex"
    SNAPSHOT = "snapshot"  # of producers
    LEADER_EPOCHS = "leader epochs"
    CHECKPOINT = "checkpoint"  # of the directory
    SEGMENT = "segment"  # duplicate or misnamed
    MISSING_RECORDS = "missing records"  # that other files refer to
    METADATA = "metadata"  # meta.properties, partition.metadata, quorum-state, snapshots of the metadata log
    COPY = "copy"  # a segment that is not what the manifest of a copy says
    LEFTOVER = "leftover"  # files and directories that do not belong to a log
    UNCLEAN_STOP = "unclean stop"
    UNREADABLE = "unreadable"  # the operating system reports an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One finding.

    file: path or URL. position, size_bytes: the damaged bytes, None if the finding is about the whole file.
    offsets: (first, last) that are lost or in doubt, as CorruptBatch.offsets; None if none are, or if unknown.
    cause: what is wrong. effect: on brokers and consumers. hint: remedy.
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
        return self.file.partition("::")[0].rpartition("/")[2]  # after '::': the location of an archive

    @property
    def key(self) -> tuple[str | None, int | None]:
        """(topic, partition)."""
        return self.topic, self.partition

    @property
    def is_harmless(self) -> bool:
        """Whether the finding is a note, not damage."""
        return self.severity is Severity.NOTE

    def as_row(self) -> dict[str, Any]:
        """Return all fields as JSON types."""
        return {
            "severity": self.severity.text,
            "kind": self.kind.value,
            "topic": self.topic,
            "partition": self.partition,
            "file": hide_secrets(self.file),
            "position": self.position,
            "size_bytes": self.size_bytes,
            "first_offset": self.offsets[0] if self.offsets else None,
            "last_offset": self.offsets[1] if self.offsets else None,
            "cause": self.cause,
            "effect": self.effect,
            "hint": self.hint,
        }
