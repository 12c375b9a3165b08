"""Configs of adopted topics: of the old metadata, of a copy's manifest, or safe ones.

Kafka would apply its defaults to a topic without configs, and delete records after log.retention.hours. Topics whose
configs are unknown therefore keep everything, until an operator decides.
Source: GroupCoordinatorConfig, TransactionLogConfig, ShareGroupConfig, TopicBasedRemoteLogMetadataManagerConfig 4.4.0.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from kwire.errors import LogError
from kwire.internal_topics.metadata_versions import MetadataRelease, release_of_features
from kwire.internal_topics.names import (
    GROUPS_TOPIC,
    REMOTE_LOG_METADATA_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from kwire.maintenance.pull.manifest import MANIFEST, Manifest

__all__ = ["KEEP_ALL", "configs_of_copies", "default_configs", "features_of_copies"]

KEEP_ALL = {"retention.ms": "-1", "retention.bytes": "-1"}
SEGMENT_BYTES = {"segment.bytes": "104857600"}
INTERNAL = {
    GROUPS_TOPIC: {"cleanup.policy": "compact", "compression.type": "producer", **SEGMENT_BYTES},
    TRANSACTIONS_TOPIC: {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
        **SEGMENT_BYTES,
    },
    SHARE_STATE_TOPIC: {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "retention.ms": "-1",
        **SEGMENT_BYTES,
    },
    REMOTE_LOG_METADATA_TOPIC: {"cleanup.policy": "delete", "retention.ms": "-1", "remote.storage.enable": "false"},
}
MIN_ISR_TOPICS = (TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)
LARGEST_MIN_ISR = 2


def default_configs(topic: str, *, is_compacted: bool, replicas: int) -> dict[str, str]:
    """Return configs for a topic whose own are unknown. is_compacted: whether the cleaner worked on it."""
    if topic in INTERNAL:
        min_isr = {"min.insync.replicas": str(min(replicas, LARGEST_MIN_ISR))} if topic in MIN_ISR_TOPICS else {}
        return INTERNAL[topic] | min_isr
    return {"cleanup.policy": "compact"} if is_compacted else dict(KEEP_ALL)


def configs_of_copies(directories: Iterable[str], notes: list[str]) -> dict[str, dict[str, str]]:
    """Return configs of topics in the manifests of pulled copies. notes: receives the manifests that are unreadable."""
    configs: dict[str, dict[str, str]] = {}
    for manifest in manifests_of(directories, notes):
        configs |= {name: entry.configs for name, entry in manifest.topics.items() if entry.configs is not None}
    return configs


def features_of_copies(directories: Iterable[str]) -> MetadataRelease | None:
    """Return the features in the manifest of a pulled copy; None without one."""
    described = (each.cluster.features or {} for each in manifests_of(directories, []) if each.cluster is not None)
    return next(filter(None, map(release_of_features, described)), None)


def manifests_of(directories: Iterable[str], notes: list[str]) -> Iterator[Manifest]:
    """Yield the manifests of pulled copies. notes: receives those that are unreadable."""
    for directory in directories:
        path = f"{directory}/{MANIFEST}"
        if not os.path.isfile(path):
            continue
        try:
            with open(path, "rb") as file:
                yield Manifest.parse(file.read(), path)
        except (OSError, LogError) as error:
            notes.append(f"{path}: cannot be read: {error}")
