"""Reading Kafka's internal topics from a log directory or a partition's log.

read_group_records, read_transaction_records, read_share_records, read_cluster_records, read_snapshot_records
                        every record in order, as TypedRecord
RECORD_READERS          the first four by topic
replay_groups, replay_transactions, replay_share_state, replay_cluster
                        the state at the end of the log, or `at_offset`, or `at_time`

The records and states themselves are in `kwire.internal_topics`.
"""

from __future__ import annotations

import importlib
import warnings

from kwire.log.internal.cluster_metadata import (
    Snapshot,
    list_snapshots,
    read_cluster_records,
    read_snapshot_records,
    replay_cluster,
)
from kwire.log.internal.coordinator_topics import (
    read_group_records,
    read_share_records,
    read_transaction_records,
    replay_groups,
    replay_share_state,
    replay_transactions,
)
from kwire.log.internal.record_readers import RECORD_READERS
from kwire.log.internal.topic_names import topic_names

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

# Modules of kwire.internal_topics -> the names that moved there, as they were called here.
MOVED = {
    "cluster_state": (
        "Acl",
        "Cluster",
        "DelegationToken",
        "Endpoint",
        "Node",
        "Partition",
        "Topic",
        "Voter",
        "ScramCredential",
    ),
    "group_members": ("AssignedPartitions", "Member"),
    "groups_state": ("CommittedOffset", "Group", "Groups"),
    "names": ("GROUPS_TOPIC", "METADATA_TOPIC", "SHARE_STATE_TOPIC", "TRANSACTIONS_TOPIC"),
    "record_rows": ("record_row",),
    "share_state": ("DeliveredRange", "SharePartition", "ShareState"),
    "transactions_state": ("Transaction", "Transactions"),
    "typed_record": ("Problems", "TypedRecord"),
}
RENAMED = {"Cluster": "ClusterState", "Groups": "GroupsState", "Transactions": "TransactionsState"}


def __getattr__(name: str) -> object:
    for module, names in MOVED.items():
        if name in names:
            new = f"kwire.internal_topics.{module}.{RENAMED.get(name, name)}"
            warnings.warn(f"kwire.log.internal.{name} has moved to {new}", DeprecationWarning, stacklevel=2)
            return getattr(importlib.import_module(f"kwire.internal_topics.{module}"), RENAMED.get(name, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
