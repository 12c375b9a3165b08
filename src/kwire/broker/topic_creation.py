"""Topics created on first use, by producers and consumers, for dead letters, or as internal topics of the coordinators.

Source: kafka.server.DefaultAutoTopicCreationManager; GroupCoordinatorConfig, TransactionLogConfigs 3.9.1;
ShareCoordinatorService.shareGroupStateTopicConfigs, ShareGroupDLQStateManager 4.4.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.topics import Topic
from kwire.internal_topics.names import GROUPS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.configs.broker_configs import BrokerConfigs
    from kwire.broker.controller import Controller
    from kwire.broker.topics import TopicRegistry

__all__ = ["TopicCreation"]

SMALLEST_SEGMENT_BYTES = 1 << 20
"""Minimum of segment.bytes since Kafka 4.0 (KIP-1030)."""
CODECS = ("producer", "gzip", "snappy", "lz4", "zstd")


class TopicCreation:
    """Creation of topics on first use, with the broker's configs for them."""

    def __init__(self, topics: TopicRegistry, controller: Controller, configs: BrokerConfigs) -> None:
        self._topics, self._controller, self._configs = topics, controller, configs

    def create_missing(self, name: str) -> Topic:
        """Return a topic, creating it if it is missing. Raises BrokerError as Controller.create_topic does."""
        topic = self._topics.get(name)
        if topic is not None:
            return topic
        settings, create = self._configs.settings, self._controller.create_topic
        if name == GROUPS_TOPIC:
            codec = settings.offsets_topic_compression_codec
            configs = {
                "compression.type": CODECS[codec] if 0 <= codec < len(CODECS) else "producer",
                "cleanup.policy": "compact",
                **segment_size(settings.offsets_topic_segment_bytes),
            }
            factor = self._within(settings.offsets_topic_replication_factor)
            return create(name, settings.offsets_topic_num_partitions, configs, factor)
        if name == TRANSACTIONS_TOPIC:
            configs = {
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(self._within(settings.transaction_state_log_min_isr)),
                **segment_size(settings.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            }
            factor = self._within(settings.transaction_state_log_replication_factor)
            return create(name, settings.transaction_state_log_num_partitions, configs, factor)
        if name == SHARE_STATE_TOPIC:
            configs = {
                "cleanup.policy": "delete",  # of records that a snapshot replaces; none for their age
                "compression.type": "producer",
                "retention.ms": "-1",
                "min.insync.replicas": str(self._within(settings.share_coordinator_state_topic_min_isr)),
                **segment_size(settings.share_coordinator_state_topic_segment_bytes),
            }
            factor = self._within(settings.share_coordinator_state_topic_replication_factor)
            return create(name, settings.share_coordinator_state_topic_num_partitions, configs, factor)
        return create(name, settings.num_partitions)

    def dead_letter_topic(self, name: str) -> Topic:
        """Return the topic for dead letters of a share group, creating it if that is enabled.

        Raises BrokerError: INVALID_CONFIG if the broker's or the topic's configs forbid it, and as
        Controller.create_topic does.
        """
        topic, settings = self._topics.get(name), self._configs.settings
        problem = None
        if not name:
            problem = "the group has no errors.deadletterqueue.topic.name"
        elif not name.startswith(settings.errors_deadletterqueue_topic_name_prefix):
            problem = f"topic '{name}' does not begin with errors.deadletterqueue.topic.name.prefix"
        elif topic is None and not settings.errors_deadletterqueue_auto_create_topics_enable:
            problem = f"topic '{name}' does not exist; errors.deadletterqueue.auto.create.topics.enable is false"
        elif topic is not None and not topic.partitions[0].opened.config.errors_deadletterqueue_group_enable:
            problem = f"errors.deadletterqueue.group.enable of topic '{name}' is false"
        if problem is not None:
            raise refusal(ErrorCode.INVALID_CONFIG, problem)
        configs = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
        return topic or self._controller.create_topic(name, settings.num_partitions, configs)

    def _within(self, count: int) -> int:
        """Return a number of replicas that the cluster can have."""
        return max(1, min(count, len(self._controller.members.all)))


def segment_size(size_bytes: int) -> dict[str, str]:
    """Return the config for a segment size; sizes below 1 MiB need internal.segment.bytes."""
    return {"segment.bytes" if size_bytes >= SMALLEST_SEGMENT_BYTES else "internal.segment.bytes": str(size_bytes)}
