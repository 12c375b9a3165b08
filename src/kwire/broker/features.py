"""The features of the cluster. A new cluster is one of Kafka 3.9, so a Kafka 3.9 broker can take over the directory.

    metadata.version      of the records that this broker writes; a directory of a newer Kafka keeps its own
    kraft.version         0 for static voters, 1 for those in the log; is not changed
    transaction.version   that of the metadata log, or the setting while the log has none: Kafka 3.9 has no such feature
    share.version         likewise
    eligible.leader.replicas.version  the setting, 0 by default; is not changed

UpdateFeatures writes a record for every feature it names, also if the level stays the same, as Kafka does.

Source: org.apache.kafka.server.common.MetadataVersion, KRaftVersion, TransactionVersion, ShareVersion;
org.apache.kafka.controller.FeatureControlManager.updateFeatures 4.4.0; KIP-584, KIP-778.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from kwire.errors import OptionError
from kwire.internal_topics.metadata_versions import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    RELEASES,
    loses_metadata,
)

if TYPE_CHECKING:
    from kwire.broker.configs.settings import Settings
    from kwire.internal_topics.cluster_state import ClusterState

__all__ = ["RELEASE", "FeatureUpdate", "Features", "UpgradeType"]

RELEASE = RELEASES["3.9"]
LOWEST_METADATA_VERSION = 7
"""The oldest that Kafka 4 supports."""
TRANSACTION_VERSION = "transaction.version"
"""From 2 on, every transaction has a new producer epoch, and partitions are added by Produce (KIP-890)."""
HIGHEST_TRANSACTION_VERSION = 2
SHARE_VERSION = "share.version"
"""1 enables share groups (KIP-932), 2 their dead letter queues (KIP-1191)."""
HIGHEST_SHARE_VERSION, DEAD_LETTERS_VERSION = 2, 2
HIGHEST_ELR_VERSION = 1
"""1 enables eligible leader replicas (KIP-966)."""


class UpgradeType(IntEnum):
    """Whether an update may lower a level. Source: org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """An update of a feature to a level. kind: UpgradeType, or an unknown number."""

    name: str
    level: int
    kind: int


class Features:
    """The features of a cluster.

    settings: the broker's at start. Raises OptionError for a transaction version that is not supported.
    """

    def __init__(self, cluster: ClusterState, settings: Settings) -> None:
        self._cluster = cluster
        self._initial = {
            TRANSACTION_VERSION: settings.transaction_version,
            SHARE_VERSION: settings.share_version,
            ELR_VERSION: settings.eligible_leader_replicas_version,
        }
        for name, highest in (
            (TRANSACTION_VERSION, HIGHEST_TRANSACTION_VERSION),
            (SHARE_VERSION, HIGHEST_SHARE_VERSION),
            (ELR_VERSION, HIGHEST_ELR_VERSION),
        ):
            if not 0 <= self._initial[name] <= highest:
                setting = name.replace(".", "_")
                raise OptionError(f"{setting} {self._initial[name]} is not supported; use 0 to {highest}")

    @property
    def transaction_version(self) -> int:
        """The level of transaction.version."""
        return self._level(TRANSACTION_VERSION)

    @property
    def share_version(self) -> int:
        """The level of share.version."""
        return self._level(SHARE_VERSION)

    @property
    def has_share_groups(self) -> bool:
        """Whether there are share groups."""
        return self.share_version > 0

    @property
    def has_dead_letter_queues(self) -> bool:
        """Whether share groups can have dead letter queues."""
        return self.share_version >= DEAD_LETTERS_VERSION

    @property
    def eligible_leader_replicas_version(self) -> int:
        """The level of eligible.leader.replicas.version."""
        return self._level(ELR_VERSION)

    def _level(self, name: str) -> int:
        if name in self._cluster.disabled_features:
            return 0
        return self._cluster.features.get(name, self._initial[name])

    def as_new(self) -> dict[str, int]:
        """Return the levels to set so that the features are those of a new cluster.

        A metadata.version of a newer Kafka is kept.
        """
        metadata_version = self._cluster.features.get(METADATA_VERSION, 0)
        new = {**self._initial, METADATA_VERSION: max(metadata_version, RELEASE.level)}
        levels = {**{name: self._level(name) for name in self._initial}, METADATA_VERSION: metadata_version}
        return {name: level for name, level in new.items() if level != levels[name]}

    def supported(self) -> dict[str, tuple[int, int]]:
        """Return the levels (lowest, highest) to which features can be set."""
        return {
            KRAFT_VERSION: (0, self._cluster.kraft_version),
            METADATA_VERSION: (LOWEST_METADATA_VERSION, RELEASE.level),
            TRANSACTION_VERSION: (0, HIGHEST_TRANSACTION_VERSION),
            SHARE_VERSION: (0, HIGHEST_SHARE_VERSION),
            **({ELR_VERSION: (elr, elr)} if (elr := self.eligible_leader_replicas_version) else {}),
        }

    def finalized(self) -> dict[str, int]:
        """Return the levels of the features that are not 0."""
        levels = {
            **self._cluster.features,
            KRAFT_VERSION: self._cluster.kraft_version,
            TRANSACTION_VERSION: self.transaction_version,
            SHARE_VERSION: self.share_version,
            ELR_VERSION: self.eligible_leader_replicas_version,
        }
        return {name: level for name, level in levels.items() if level > 0}

    def problem_of(self, updates: Iterable[FeatureUpdate], node_id: int) -> str | None:
        """Return Kafka's message for the first update that is refused, None if all are possible."""
        problems = (self._problem_of(update, f"Local controller {node_id}") for update in updates)
        return next((problem for problem in problems if problem is not None), None)

    def _problem_of(self, update: FeatureUpdate, controller: str) -> str | None:
        """Return Kafka's message for an update that is refused, None for a possible one."""
        name, level, kind = update
        refused = f"Invalid update version {level} for feature {name}. "
        known, levels = self.supported(), self.finalized()
        if kind not in UpgradeType.__members__.values():
            return f"{refused}The controller does not support the given upgrade type."
        if level < 0:
            return f"{refused}A feature version cannot be less than 0."
        if name not in known:
            if level == 0:
                return f"{refused}Feature {name} not found."
            return f"{refused}{controller} does not support this feature."
        low, high = known[name]
        if not low <= level <= high:
            return f"{refused}{controller} only supports versions {low}-{high}"
        now = levels.get(name, 0)
        if level > now and kind != UpgradeType.UPGRADE:
            return f"{refused}Can't downgrade to a newer version."
        if level >= now:
            return None
        if kind == UpgradeType.UPGRADE:
            return (
                f"{refused}Can't downgrade the version of this feature without setting the upgrade type to either safe "
                "or unsafe downgrade."
            )
        if name == KRAFT_VERSION:
            return f"{refused}Can't downgrade the version of this feature."
        if name == METADATA_VERSION and loses_metadata(now, level):
            what = (
                "Unsafe metadata downgrade is not supported in this version."
                if kind == UpgradeType.UNSAFE_DOWNGRADE
                else "Refusing to perform the requested downgrade because it might delete metadata information."
            )
            return f"Unsupported metadata.version downgrade from {now} to {level}. {what}"
        return None
