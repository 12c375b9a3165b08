"""The features of the cluster: Kafka 3.9's, so that a Kafka 3.9 can take the data over.

metadata.version 21 is 3.9-IV0. kraft.version 0 has fixed voters. transaction.version and group.version are not in 3.9:
what clients are told of the first is a setting and stands in no record.
Source: org.apache.kafka.server.common.MetadataVersion, KRaftVersion; KIP-584.
"""

from __future__ import annotations

__all__ = ["FINALIZED", "METADATA_VERSION", "SUPPORTED", "TRANSACTION_VERSION"]

METADATA_VERSION = 21

TRANSACTION_VERSION = "transaction.version"
"""From 2 on producers get a new epoch with every transaction and do not add partitions themselves (KIP-890)."""

SUPPORTED: dict[str, tuple[int, int]] = {
    "kraft.version": (0, 1),
    "metadata.version": (1, METADATA_VERSION),
    TRANSACTION_VERSION: (0, 2),
}
"""Name -> lowest and highest version that the node could have."""

FINALIZED: dict[str, int] = {"metadata.version": METADATA_VERSION}
"""Name -> the version the cluster has, as records say it."""
