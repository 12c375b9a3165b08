"""Severity, effect and remedy of damage, by Kafka's behaviour.

After an unclean shutdown, a starting broker recovers the segments from the recovery point on: it checks every batch and
truncates the log at the first damaged one. Earlier segments are not checked until they are read.
Source: rules G-05, G-07, G-08, D-07; Kafka's LogLoader.recoverLog, LogSegment.recover, FileLogInputStream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kwire.errors import LogError, counted
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.files.damage import Damage, Kind, Severity
from kwire.log.files.segment import Segment
from kwire.log.topics.topic_metadata import TopicMetadata

if TYPE_CHECKING:
    from kwire.log.reading.readable_log import ReadableLog

__all__ = [
    "Assessment",
    "PartitionContext",
    "assess_batch",
    "assess_index",
    "assess_suspect",
    "assess_unreadable",
    "is_refused",
]

SALVAGE = "run kwire log repair to keep the valid batches on both sides"
REBUILD = "run kwire log index to rebuild it"
RESTORE = "restore the records from a replica or a backup"
OFFLINE = "a broker takes the whole directory offline"


class Assessment(NamedTuple):
    """The fields of a Damage that depend on Kafka's behaviour."""

    severity: Severity
    effect: str
    hint: str

    def damage(
        self,
        log: ReadableLog | None,
        file: str,
        kind: Kind,
        cause: str,
        *,
        position: int | None = None,
        size_bytes: int | None = None,
        offsets: tuple[int, int] | None = None,
    ) -> Damage:
        """Return a finding with this assessment. log: None for a file of the directory itself."""
        return Damage(
            file=file,
            cause=cause,
            kind=kind,
            severity=self.severity,
            position=position,
            size_bytes=size_bytes,
            offsets=offsets,
            effect=self.effect,
            hint=self.hint,
            topic=log.topic if log else None,
            partition=log.partition if log else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionContext:
    """Facts about a partition that the log directory has outside of its log.

    is_clean: whether the shutdown was clean; None if unknown (a partition's directory alone). recovery_point: first
    offset that may not be flushed, None without an entry. is_compacted: whether the cleaner has compacted it.
    topic, topics: its topic, and ids and policies of topics by the metadata log, read on first use.
    """

    is_clean: bool | None = None
    recovery_point: int | None = None
    is_compacted: bool = False
    topic: str = ""
    topics: TopicMetadata | None = field(default=None, repr=False, compare=False)

    @property
    def is_compacted_topic(self) -> bool | None:
        """Whether the topic's cleanup.policy contains `compact`; None if unknown."""
        if self.topic == METADATA_TOPIC:
            return False
        return None if self.topics is None else self.topics.is_compacted(self.topic)

    def recovers(self, segment: Segment) -> bool | None:
        """Return whether a starting broker checks every batch of the segment (G-07); None if unknown."""
        if self.is_clean is None:
            return None
        if self.is_clean:
            return False
        return segment.next_base is None or segment.next_base > (self.recovery_point or 0)


def assess_batch(
    kind: Kind, *, recovered: bool | None, is_active: bool, is_tail: bool, offsets_after: int, known_lost: bool
) -> Assessment:
    """Assess bytes of a `.log` file that are not a valid batch.

    offsets_after: number of offsets of the log after the damage. is_tail: no valid batch follows in the file.
    known_lost: other files refer to records stored here.
    """
    if is_tail and is_active and kind in (Kind.CUT, Kind.ZEROS):
        if known_lost:
            return Assessment(Severity.LOSES_RECORDS, "the records stored here are lost", RESTORE)
        if recovered is False:
            effect = "a broker appends after it, and consumers then fail there"
            return Assessment(Severity.STOPS_CONSUMERS, effect, "run kwire log repair to truncate it")
        if kind is Kind.ZEROS:
            return Assessment(
                Severity.RECOVERS, "a starting broker truncates them", "none needed; or run kwire log repair"
            )
        return Assessment(
            Severity.RECOVERS,
            "a starting broker truncates it; this write was never flushed",
            "none needed; or run kwire log repair, which keeps a copy of the bytes",
        )
    if kind is Kind.RECORDS:
        return Assessment(
            Severity.STOPS_CONSUMERS,
            "the checksum is valid, so brokers serve the batch, and consumers fail there with an error",
            f"{SALVAGE}; consumers can seek past it",
        )
    if kind is Kind.OFFSETS and not recovered:
        effect = "brokers serve its records with wrong offsets, or skip them"
        return Assessment(Severity.MISLEADS, effect, "run kwire log repair to restore the offsets if they are certain")
    if recovered:
        lost = f" and drops {counted(offsets_after, 'offset')} after it" if offsets_after else ""
        effect = f"a starting broker truncates the log here{lost}"
        return Assessment(Severity.LOSES_RECORDS, effect, f"before starting a broker, {SALVAGE}")
    if kind is Kind.CUT:
        effect = "the end of the segment is lost; consumers continue with the next segment and do not notice"
        return Assessment(Severity.LOSES_RECORDS, effect, RESTORE)
    unsure = "" if recovered is False else "; a broker that recovers this segment truncates the log here"
    return Assessment(
        Severity.STOPS_CONSUMERS,
        f"consumers fail there with an error{unsure}",
        f"{SALVAGE}; consumers can seek past it",
    )


def assess_suspect(kind: Kind) -> Assessment:
    """Assess a readable batch that no broker would have written."""
    effects = {
        Kind.TIMESTAMPS: (
            "offset lookups by time and retention use the timestamp of the batch header",
            "none without rewriting the batch",
        ),
        Kind.SEQUENCE: (
            "brokers do not check stored batches; records may be duplicated",
            "inspect the records around it",
        ),
        Kind.CONTROL: ("read_committed consumers may fail or wait there", "inspect it with kwire log dump --deep"),
        Kind.OFFSETS: ("consumers receive records with these offsets", "inspect it with kwire log dump --deep"),
        Kind.LEADER_EPOCHS: (
            "followers may truncate at a wrong offset; the checksum does not cover this field",
            "run kwire log repair to restore it if its neighbours agree",
        ),
    }
    return Assessment(Severity.MISLEADS, *effects[kind])


def assess_index(kind: Kind, *, recovered: bool | None, is_missing: bool, is_tail: bool, is_active: bool) -> Assessment:
    """Assess an index that is missing, wrong or untrimmed (is_tail)."""
    if is_tail and is_active and recovered is not False:
        return Assessment(Severity.NOTE, "brokers preallocate the indexes of the active segment", "none needed")
    if recovered or (kind is Kind.OFFSET_INDEX and is_missing) or (kind is Kind.TRANSACTION_INDEX and not is_missing):
        # these make a broker recover the segment, even below the recovery point (G-05)
        return Assessment(Severity.RECOVERS, "a starting broker rebuilds it", f"none needed; or {REBUILD}")
    unsure = "" if recovered is False else ", unless a broker recovers this segment"
    if kind is Kind.OFFSET_INDEX:
        effect = f"brokers search for offsets at wrong positions and may not find them{unsure}"
    elif kind is Kind.TIME_INDEX:
        effect = f"offset lookups by time are wrong, and retention uses wrong timestamps{unsure}"
    else:
        effect = f"read_committed consumers receive records of aborted transactions{unsure}"
    return Assessment(Severity.MISLEADS, effect, REBUILD)


# assessments of files other than segments
NOT_ALLOWED = Assessment(
    Severity.NOT_CHECKED,
    "unknown; a broker of another user may read it",
    "verify as the user that the broker runs as, or as one that may read the files",
)
SNAPSHOT_CORRUPT = Assessment(
    Severity.RECOVERS,
    "a starting broker deletes it and replays the log from an older snapshot",
    f"none needed; or {REBUILD}",
)
SNAPSHOT_WRONG = Assessment(
    Severity.MISLEADS,
    "a broker may reject valid producers, accept duplicates, or miss an open transaction",
    REBUILD,
)
SNAPSHOT_MISSING = Assessment(
    Severity.RECOVERS, "a starting broker replays the log from an older snapshot", f"none needed; or {REBUILD}"
)
EPOCHS_CORRUPT = Assessment(Severity.STOPS_BROKER, OFFLINE, "run kwire log repair to rebuild it from the batches")
EPOCHS_WRONG = Assessment(
    Severity.MISLEADS,
    "a follower may truncate at a wrong offset when the leader changes",
    "run kwire log repair to rebuild it from the batches",
)
METADATA_CORRUPT = Assessment(
    Severity.STOPS_BROKER,
    OFFLINE,
    "run kwire log repair to rewrite it if the metadata log or another partition has the topic id",
)
MISSING = Assessment(
    Severity.LOSES_RECORDS,
    "the records are lost; a broker continues at the log end and assigns their offsets again",
    RESTORE,
)
UNREACHABLE_END = Assessment(
    Severity.STOPS_CONSUMERS,
    "consumers wait there for the next record, with lag; so does what reads the topic to its end when it starts",
    "produce a record; or run kwire log restore with --at a later time, which ends the log with an empty batch",
)
LEFTOVER = Assessment(Severity.NOTE, "a starting broker removes it, or renames it if complete", "none needed")
SHORT_NUMBER = Assessment(
    Severity.NOTE,
    "a starting broker creates an empty segment for a .log with this name, and removes an index",
    "remove it",
)
NOT_A_NUMBER = Assessment(Severity.STOPS_BROKER, OFFLINE, "move it elsewhere")


def assess_unreadable(error: LogError, effect: str = OFFLINE) -> Assessment:
    """Assess a file that cannot be read: the disk's error, unless it is only this user who may not read it."""
    return NOT_ALLOWED if is_refused(error) else Assessment(Severity.STOPS_BROKER, effect, "check the disk")


def is_refused(error: LogError) -> bool:
    """Return whether this user may not read a file, which says nothing about the file."""
    return isinstance(error.__cause__, PermissionError)
