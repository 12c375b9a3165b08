"""Files of a log directory beside its partitions, and what they say about the ends of logs.

Checkpoints and snapshots are written after the records they refer to. A log that ends below one of them lost its last
records, also if it has no file or no directory any more. A deleted partition has a directory marked so until no
checkpoint names it. Source: rules F-01 to F-05; Kafka's LogManager.asyncDelete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kwire.errors import KwireError, LogError, Malformed
from kwire.identifiers import TopicPartition
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.files.file_names import marked_as
from kwire.log.topics.topic_metadata import TopicMetadata
from kwire.maintenance.verify.assessment import PartitionContext
from kwire.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    parse_offset_checkpoint,
)
from kwire.storage.store import Store

if TYPE_CHECKING:
    from kwire.log.reading.log_directory import LogDirectory
    from kwire.log.reading.partition_log import PartitionLog
    from kwire.storage.checkpoints import LeaderEpoch

__all__ = [
    "CLAIMING_CHECKPOINTS",
    "OWN_FILES",
    "Claim",
    "RootFiles",
    "claims_above",
    "context_of",
    "partitions_without_directory",
    "read_root_files",
    "root_files_above",
]

OWN_FILES = (META_PROPERTIES, RECOVERY_POINTS, HIGH_WATERMARKS, LOG_START_OFFSETS, CLEANER_OFFSETS)
Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RootFiles:
    """The log directory's own files. store: their location. names: existing files. offsets: checkpoints by file name.

    topics: topics by the metadata log.
    """

    store: Store
    names: frozenset[str]
    offsets: Mapping[str, Offsets]
    errors: Sequence[tuple[str, KwireError]]
    topics: TopicMetadata

    @property
    def is_clean(self) -> bool | None:
        """Whether the shutdown was clean; None if these are not files of a broker."""
        return CLEAN_SHUTDOWN in self.names if self.names.intersection(OWN_FILES) else None

    def context(self, key: TopicPartition) -> PartitionContext:
        """Return the context of one partition."""
        if key[0] == METADATA_TOPIC:  # recovered from the start whenever a broker starts
            return PartitionContext(is_clean=False, recovery_point=0, topic=key[0])
        return PartitionContext(
            is_clean=self.is_clean,
            recovery_point=self.offsets[RECOVERY_POINTS].get(key),
            is_compacted=key in self.offsets[CLEANER_OFFSETS],
            topic=key[0],
            topics=self.topics,
        )


def read_root_files(store: Store, topics: TopicMetadata) -> RootFiles:
    """Read the files of a log directory. Raises LogError if it cannot be listed."""
    names = frozenset(entry.name for entry in store.list("") if not entry.is_directory)
    offsets: dict[str, Offsets] = {}
    errors: list[tuple[str, KwireError]] = []
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_START_OFFSETS, CLEANER_OFFSETS):
        offsets[name] = {}
        if name in names:
            try:
                offsets[name] = parse_offset_checkpoint(store.read_all(name))
            except (LogError, Malformed) as error:
                errors.append((name, error))
    return RootFiles(store=store, names=names, offsets=offsets, errors=errors, topics=topics)


def root_files_above(log: PartitionLog) -> RootFiles:
    """Read the files of a partition's log directory. Raises LogError if there is none, or it cannot be listed."""
    metadata_log = log.sibling(METADATA_TOPIC, 0)
    return read_root_files(metadata_log.store, TopicMetadata(metadata_log))


def context_of(log: PartitionLog) -> PartitionContext:
    """Return what a partition's log directory records about it; everything is unknown without one."""
    try:
        return root_files_above(log).context((log.topic, log.partition))
    except LogError:
        return PartitionContext()


CLAIMING_CHECKPOINTS = {
    RECOVERY_POINTS: "recovery point",
    HIGH_WATERMARKS: "high watermark",
    LOG_START_OFFSETS: "log start offset",
}
"""Checkpoints of a log directory that name its partitions, and what their offsets are."""


class Claim(NamedTuple):
    """A log end offset that a file implies, and the words for it."""

    offset: int
    text: str


def claims_above(
    end: int, log: PartitionLog, *, recovery_point: int | None, epochs: Sequence[LeaderEpoch]
) -> list[Claim]:
    """Return what implies a higher log end offset; of snapshots and leader epochs the newest one."""
    watermark, point = log.high_watermark or 0, recovery_point or 0
    snapshots = sorted(log.snapshots)[-1:]
    claims = [
        Claim(watermark, f"the high watermark checkpoint has {watermark}"),
        Claim(point, f"the recovery point checkpoint has {point}"),
        *(Claim(offset, f"a producer snapshot has offset {offset}") for offset in snapshots),
        *(
            Claim(each.start_offset, f"leader epoch {each.leader_epoch} starts at {each.start_offset}")
            for each in epochs[-1:]
        ),
    ]
    return [each for each in claims if each.offset > end]


def partitions_without_directory(
    directory: LogDirectory, checkpoints: Mapping[str, Mapping[TopicPartition, int]]
) -> dict[TopicPartition, Claim]:
    """Return the partitions that checkpoints name and that have no directory, not even a marked one.

    checkpoints: offsets by file name. Of several offsets, the highest one.
    """
    claims: dict[TopicPartition, Claim] = {}
    for name, offsets in checkpoints.items():
        for key in offsets.keys() - directory.keys() if name in CLAIMING_CHECKPOINTS else ():
            claim = Claim(offsets[key], f"the {CLAIMING_CHECKPOINTS[name]} checkpoint has {offsets[key]}")
            claims[key] = max(claims.get(key, claim), claim, key=lambda each: each.offset)
    marked = [each.name for each in directory.ignored]
    return {key: claims[key] for key in sorted(claims) if not any(marked_as(name, *key) for name in marked)}
