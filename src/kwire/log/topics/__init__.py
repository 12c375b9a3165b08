"""Reading Kafka's internal topics from a log directory or a partition's log.

read_group_records, read_transaction_records, read_share_records, read_cluster_records, read_snapshot_records
                        every record in order, as TypedRecord
RECORD_READERS          the first four by topic
replay_groups, replay_transactions, replay_share_state, replay_cluster
                        the state at the end of the log, or `at_offset`, or `at_time`

The records and states themselves are in `kwire.internal_topics`.
"""

from __future__ import annotations

from kwire.log.topics.cluster_metadata import (
    Snapshot,
    list_snapshots,
    read_cluster_records,
    read_snapshot_records,
    replay_cluster,
)
from kwire.log.topics.coordinator_topics import (
    read_group_records,
    read_share_records,
    read_transaction_records,
    replay_groups,
    replay_share_state,
    replay_transactions,
)
from kwire.log.topics.record_readers import RECORD_READERS
from kwire.log.topics.topic_names import topic_names

__all__ = [
    "RECORD_READERS",
    "Snapshot",
    "list_snapshots",
    "read_cluster_records",
    "read_group_records",
    "read_share_records",
    "read_snapshot_records",
    "read_transaction_records",
    "replay_cluster",
    "replay_groups",
    "replay_share_state",
    "replay_transactions",
    "topic_names",
]
