"""Severity, effect and remedy of damage, by Kafka's behaviour.

After an unclean shutdown, a starting broker recovers the segments from the recovery point on: it checks every batch and
truncates the log at the first bad one. Earlier segments are not checked until they are read.
Source: rules G-05, G-07, G-08, D-07; Kafka's LogLoader.recoverLog, LogSegment.recover, FileLogInputStream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.damage import Kind, Severity
from kwire.log.segment import Segment
from kwire.log.verify.topic_facts import TopicFacts

__all__ = ["Circumstances", "Judgement", "judge_batch", "judge_index", "judge_odd"]

SALVAGE = "kwire log repair keeps what is good on both sides"
REBUILD = "kwire log index rebuilds it"


class Judgement(NamedTuple):
    """The fields of a Damage that depend on Kafka's behaviour."""

    severity: Severity
    effect: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What the log directory records about one partition.

    is_clean: whether the shutdown was clean; None if unknown (a partition's directory alone). recovery_point: first
    offset that may not be flushed, None without an entry. is_compacted: whether the cleaner has compacted it.
    topic, facts: its topic, and the metadata log's facts about topics, read on first use.
    """

    is_clean: bool | None = None
    recovery_point: int | None = None
    is_compacted: bool = False
    topic: str = ""
    facts: TopicFacts | None = field(default=None, repr=False, compare=False)

    @property
    def is_compacted_topic(self) -> bool | None:
        """Whether the topic's cleanup.policy contains `compact`; None if unknown."""
        if self.topic == METADATA_TOPIC:
            return False
        return None if self.facts is None else self.facts.is_compacted(self.topic)

    def recovers(self, segment: Segment) -> bool | None:
        """Return whether a starting broker checks every batch of the segment (G-07); None if unknown."""
        if self.is_clean is None:
            return None
        if self.is_clean:
            return False
        return segment.next_base is None or segment.next_base > (self.recovery_point or 0)


def judge_batch(
    kind: Kind, *, recovered: bool | None, is_active: bool, is_tail: bool, offsets_behind: int, known_lost: bool
) -> Judgement:
    """Judge bytes of a `.log` file that are not a valid batch.

    offsets_behind: number of offsets of the log after the damage. is_tail: no valid batch follows in the file.
    known_lost: other files show that records were here.
    """
    if is_tail and is_active and kind in (Kind.CUT, Kind.ZEROS):
        if known_lost:
            return Judgement(
                Severity.LOSES_RECORDS, "the records that were here are gone", "a replica or a backup may have them"
            )
        if recovered is False:
            effect = "a broker appends behind it, and consumers then stop there"
            return Judgement(Severity.STOPS_CONSUMERS, effect, "kwire log repair cuts it off")
        if kind is Kind.ZEROS:
            return Judgement(Severity.RECOVERS, "a starting broker cuts them off", "nothing; or kwire log repair")
        return Judgement(
            Severity.RECOVERS,
            "a starting broker cuts it off; what was being written was not acknowledged by a flush",
            "nothing; or kwire log repair, which keeps the bytes",
        )
    if kind is Kind.RECORDS:
        return Judgement(
            Severity.STOPS_CONSUMERS,
            "the checksum holds, so brokers hand it out; consumers end there with an error",
            f"{SALVAGE}; consumers can seek behind it",
        )
    if kind is Kind.OFFSETS and not recovered:
        effect = "brokers hand its records out with wrong offsets, or pass over them"
        return Judgement(Severity.MISLEADS, effect, "kwire log repair gives it its offsets back where they are certain")
    if recovered:
        behind = f" with {offsets_behind} offsets behind it" if offsets_behind else ""
        effect = f"a starting broker cuts the log here{behind}"
        return Judgement(Severity.LOSES_RECORDS, effect, f"before a broker starts: {SALVAGE}")
    if kind is Kind.CUT:
        effect = "its end is lost; brokers go on in the next segment, and consumers do not notice"
        return Judgement(Severity.LOSES_RECORDS, effect, "a replica or a backup may have the records")
    unsure = "" if recovered is False else "; a broker that recovers this segment cuts the log here"
    return Judgement(
        Severity.STOPS_CONSUMERS,
        f"consumers end there with an error{unsure}",
        f"{SALVAGE}; consumers can seek behind it",
    )


def judge_odd(kind: Kind) -> Judgement:
    """Judge a batch that is readable, but that no broker would have written."""
    effects = {
        Kind.TIMESTAMPS: ("time look-ups and retention go by the batch's own time", "none that keeps the bytes"),
        Kind.SEQUENCE: ("brokers do not look; records may be there twice", "look at the records around"),
        Kind.CONTROL: ("consumers of committed data may stop, or wait, there", "look at it with kwire log dump --deep"),
        Kind.OFFSETS: ("consumers get records with these offsets", "look at it with kwire log dump --deep"),
        Kind.LEADER_EPOCHS: (
            "it is outside the checksum; followers may truncate at a wrong offset",
            "kwire log repair restores it where its neighbours agree",
        ),
    }
    return Judgement(Severity.MISLEADS, *effects[kind])


def judge_index(kind: Kind, *, recovered: bool | None, is_missing: bool, is_tail: bool, is_active: bool) -> Judgement:
    """Judge an index that is missing, wrong or untrimmed (is_tail)."""
    if is_tail and is_active and recovered is not False:
        return Judgement(Severity.NOTE, "the file of an active segment is allocated in advance", "nothing")
    if recovered or (kind is Kind.OFFSET_INDEX and is_missing) or (kind is Kind.TRANSACTION_INDEX and not is_missing):
        # both make a broker recover this segment, also below the recovery point (G-05)
        return Judgement(Severity.RECOVERS, "a starting broker rebuilds it", f"nothing; or {REBUILD}")
    unsure = "" if recovered is False else ", unless a broker recovers this segment"
    if kind is Kind.OFFSET_INDEX:
        effect = f"brokers look for offsets in wrong places and may not find them{unsure}"
    elif kind is Kind.TIME_INDEX:
        effect = f"offsets for times are wrong, and retention goes by the wrong time{unsure}"
    else:
        effect = f"consumers of committed data get records of aborted transactions{unsure}"
    return Judgement(Severity.MISLEADS, effect, REBUILD)


# of files other than segments
UNREADABLE = Judgement(
    Severity.STOPS_BROKER, "a broker takes the whole directory offline", "look at the disk, and at the file's owner"
)
SNAPSHOT_CORRUPT = Judgement(
    Severity.RECOVERS, "a starting broker deletes it and replays the log from an older one", f"nothing; or {REBUILD}"
)
SNAPSHOT_WRONG = Judgement(
    Severity.MISLEADS,
    "a broker may refuse producers that are right, take what is there twice, or not know an open transaction",
    REBUILD,
)
SNAPSHOT_MISSING = Judgement(
    Severity.RECOVERS, "a starting broker replays the log from an older one", f"nothing; or {REBUILD}"
)
EPOCHS_CORRUPT = Judgement(
    Severity.STOPS_BROKER, "a broker takes the whole directory offline", "kwire log repair rebuilds it from the batches"
)
EPOCHS_WRONG = Judgement(
    Severity.MISLEADS,
    "a follower may truncate at a wrong offset when the leader changes",
    "kwire log repair rebuilds it from the batches",
)
METADATA_CORRUPT = Judgement(
    Severity.STOPS_BROKER,
    "a broker takes the whole directory offline",
    "kwire log repair writes it again where the metadata log or another partition of the topic has the topic id",
)
MISSING = Judgement(
    Severity.LOSES_RECORDS,
    "records are gone; a broker goes on at the log's end, and gives their offsets to others",
    "a replica or a backup may have them",
)
LEFTOVER = Judgement(Severity.NOTE, "a starting broker removes it, or renames what is complete", "nothing")
SHORT_NUMBER = Judgement(
    Severity.NOTE, "a starting broker makes an empty segment for a .log of this name, and removes an index", "remove it"
)
NOT_A_NUMBER = Judgement(Severity.STOPS_BROKER, "a broker takes the whole directory offline", "move it elsewhere")
