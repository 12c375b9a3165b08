"""The features of the cluster: Kafka 3.9's, so that a Kafka 3.9 can take the data over.

metadata.version 21 is 3.9-IV0. kraft.version 0 has fixed voters. transaction.version and group.version are not in 3.9.
Source: org.apache.kafka.server.common.MetadataVersion, KRaftVersion; KIP-584.
"""

from __future__ import annotations

__all__ = ["FINALIZED", "METADATA_VERSION", "SUPPORTED"]

METADATA_VERSION = 21

SUPPORTED: dict[str, tuple[int, int]] = {"kraft.version": (0, 1), "metadata.version": (1, METADATA_VERSION)}
"""Name -> lowest and highest version that the node could have."""

FINALIZED: dict[str, int] = {"metadata.version": METADATA_VERSION}
"""Name -> the version the cluster has."""
