"""Names of the topics in which Kafka keeps its own state.

Source: org.apache.kafka.common.internals.Topic, TopicBasedRemoteLogMetadataManagerConfig.
"""

from __future__ import annotations

__all__ = [
    "COORDINATOR_TOPICS",
    "GROUPS_TOPIC",
    "METADATA_TOPIC",
    "REMOTE_LOG_METADATA_TOPIC",
    "SHARE_STATE_TOPIC",
    "TRANSACTIONS_TOPIC",
]

METADATA_TOPIC = "__cluster_metadata"
GROUPS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
REMOTE_LOG_METADATA_TOPIC = "__remote_log_metadata"
COORDINATOR_TOPICS = frozenset({GROUPS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})
"""The topics that Metadata responses mark as internal. Kafka compacts them."""
