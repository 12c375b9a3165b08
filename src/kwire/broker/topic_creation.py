"""Topics created on first use: those of producers and consumers, and the coordinators' internal topics.

Source: kafka.server.DefaultAutoTopicCreationManager; GroupCoordinatorConfig, TransactionLogConfigs 3.9.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.topics import Topic
from kwire.internal_topics.names import GROUPS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from kwire.broker.node import Node

__all__ = ["create_missing"]

SMALLEST_SEGMENT_BYTES = 1 << 20
"""Minimum of segment.bytes since Kafka 4.0 (KIP-1030)."""
CODECS = ("producer", "gzip", "snappy", "lz4", "zstd")


def create_missing(node: Node, name: str) -> Topic:
    """Return a topic, creating it if it is missing. Raises BrokerError as Controller.create_topic does."""
    topic = node.topics.get(name)
    if topic is not None:
        return topic
    settings = node.settings
    if name == GROUPS_TOPIC:
        codec = settings.offsets_topic_compression_codec
        configs = {
            "compression.type": CODECS[codec] if 0 <= codec < len(CODECS) else "producer",
            "cleanup.policy": "compact",
            **segment_size(settings.offsets_topic_segment_bytes),
        }
        return node.controller.create_topic(name, settings.offsets_topic_num_partitions, configs)
    if name == TRANSACTIONS_TOPIC:
        configs = {
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": "1",
            **segment_size(settings.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
        return node.controller.create_topic(name, settings.transaction_state_log_num_partitions, configs)
    return node.controller.create_topic(name, settings.num_partitions)


def segment_size(size_bytes: int) -> dict[str, str]:
    """Return the config for a segment size; sizes below 1 MiB need internal.segment.bytes."""
    return {"segment.bytes" if size_bytes >= SMALLEST_SEGMENT_BYTES else "internal.segment.bytes": str(size_bytes)}
