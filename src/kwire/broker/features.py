"""The features of the cluster: those of Kafka 3.9, so a Kafka 3.9 broker can take over the directory.

kraft.version 0 has static voters. Kafka 3.9 has neither transaction.version nor
group.version; transaction.version is a setting and not stored in records.

Source: org.apache.kafka.server.common.MetadataVersion, KRaftVersion; KIP-584.
"""

from __future__ import annotations

from kwire.internal_topics.metadata_versions import RELEASES

__all__ = ["FINALIZED", "METADATA_VERSION", "RELEASE", "SUPPORTED", "TRANSACTION_VERSION"]

RELEASE = RELEASES["3.9"]
METADATA_VERSION = RELEASE.level

TRANSACTION_VERSION = "transaction.version"
"""From 2 on, every transaction has a new producer epoch, and partitions are added by Produce (KIP-890)."""

SUPPORTED: dict[str, tuple[int, int]] = {
    "kraft.version": (0, 1),
    "metadata.version": (1, METADATA_VERSION),
    TRANSACTION_VERSION: (0, 2),
}
"""Supported version range (lowest, highest) by feature."""

FINALIZED: dict[str, int] = RELEASE.features
"""Version of each feature that is stored in the metadata log."""
