"""Versions of the feature metadata.version, and what depends on them.

Each Kafka release supports all versions up to its own, so the version of a release can be used by it and by newer
ones, with the other features as `kafka-storage.sh format --release-version` finalizes them.
Source: org.apache.kafka.server.common.MetadataVersion, Feature 4.4.0; KIP-584.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kwire.errors import OptionError, did_you_mean

__all__ = [
    "ELR_VERSION",
    "KRAFT_VERSION",
    "METADATA_VERSION",
    "NEWEST_RELEASE",
    "RELEASES",
    "MetadataRelease",
    "loses_metadata",
    "release_of",
    "release_of_features",
    "release_of_level",
]

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELR_VERSION = "eligible.leader.replicas.version"
ZK_MIGRATION_LEVELS = range(8, 22)  # 3.4-IV0 to 3.9-IV0
DIRECTORIES_LEVEL, ELR_LEVEL = 17, 23  # 3.7-IV2, 4.0-IV1

CHANGED_LEVELS = frozenset({1, 3, 5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""Levels that add records or fields, which older levels would lose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRelease:
    """A Kafka release. level: its metadata.version. other_features: levels of its other features, without zeros.

    Eligible leader replicas are not among them: see `new_cluster`.
    """

    name: str
    level: int
    other_features: dict[str, int] = field(default_factory=dict)

    @property
    def features(self) -> dict[str, int]:
        """Levels of all features by name."""
        return {METADATA_VERSION: self.level, **self.other_features}

    @property
    def has_zk_migration_state(self) -> bool:
        """Whether snapshots contain the state of a migration from ZooKeeper."""
        return self.level in ZK_MIGRATION_LEVELS

    @property
    def partition_record_version(self) -> int:
        """The version of PartitionRecord: 1 has the directories of replicas, 2 eligible leader replicas."""
        return (self.level >= DIRECTORIES_LEVEL) + (self.level >= ELR_LEVEL)


GROUPS = {"group.version": 1}
TRANSACTIONS = {**GROUPS, "transaction.version": 2}
RELEASES = {
    each.name: each
    for each in (
        MetadataRelease(name="3.3", level=7),
        MetadataRelease(name="3.4", level=8),
        MetadataRelease(name="3.5", level=11),
        MetadataRelease(name="3.6", level=14),
        MetadataRelease(name="3.7", level=19),
        MetadataRelease(name="3.8", level=20),
        MetadataRelease(name="3.9", level=21),
        MetadataRelease(name="4.0", level=25, other_features=TRANSACTIONS),
        MetadataRelease(name="4.1", level=27, other_features=TRANSACTIONS),
        MetadataRelease(
            name="4.2", level=29, other_features={**TRANSACTIONS, "share.version": 1, "streams.version": 1}
        ),
        MetadataRelease(
            name="4.3", level=30, other_features={**TRANSACTIONS, "share.version": 1, "streams.version": 1}
        ),
        MetadataRelease(
            name="4.4", level=33, other_features={**TRANSACTIONS, "share.version": 2, "streams.version": 1}
        ),
    )
}
"""Releases that store metadata.version in the metadata log, oldest first."""
NEWEST_RELEASE = RELEASES["4.4"]


def loses_metadata(level: int, lower: int) -> bool:
    """Return whether a downgrade of metadata.version could lose records or fields.

    Source: MetadataVersion.checkIfMetadataChanged 4.4.0.
    """
    return any(lower < each <= level for each in CHANGED_LEVELS)


def release_of(text: str) -> MetadataRelease:
    """Return the release of a version such as 3.9 or 3.9.1. Raises OptionError."""
    name = ".".join(text.split(".")[:2])
    if name not in RELEASES or not all(part.isdecimal() for part in text.split(".")):
        known = ", ".join(RELEASES)
        raise OptionError(f"unknown Kafka version {text[:40]!r}{did_you_mean(text, RELEASES)}; expected one of {known}")
    return RELEASES[name]


def release_of_level(level: int, other_features: dict[str, int]) -> MetadataRelease:
    """Return the oldest release that supports a metadata.version, with these levels; of unknown ones the newest."""
    names = [each.name for each in RELEASES.values() if each.level >= level]
    return MetadataRelease(name=(names or [NEWEST_RELEASE.name])[0], level=level, other_features=other_features)


def release_of_features(features: Mapping[str, int]) -> MetadataRelease | None:
    """Return the release of a cluster's finalized features; None without metadata.version.

    The release does not depend on kraft.version, which is a property of the quorum.
    """
    level = features.get(METADATA_VERSION)
    if not level:
        return None
    others = {name: each for name, each in features.items() if each and name not in (METADATA_VERSION, KRAFT_VERSION)}
    return release_of_level(level, others)
