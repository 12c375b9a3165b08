"""Kafka's internal topics, typed: groups and offsets, transactions, share groups' state, the cluster's metadata.

read_group_records, read_transaction_records, read_share_records, read_cluster_records, read_snapshot_records
                        every record in order, as TypedRecord
replay_groups, replay_transactions, replay_share_state, replay_cluster
                        the state at the end, or `at_offset`, or `at_time`
"""

from kwire.log.internal.cluster_metadata import (
    Snapshot,
    list_snapshots,
    read_cluster_records,
    read_snapshot_records,
    replay_cluster,
)
from kwire.log.internal.cluster_state import (
    Acl,
    Cluster,
    DelegationToken,
    Endpoint,
    Node,
    Partition,
    ScramCredential,
    Topic,
    Voter,
)
from kwire.log.internal.coordinator_records import GROUPS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kwire.log.internal.group_members import AssignedPartitions, Member
from kwire.log.internal.groups import CommittedOffset, Group, Groups, read_group_records, replay_groups
from kwire.log.internal.history import Problems
from kwire.log.internal.metadata_records import METADATA_TOPIC
from kwire.log.internal.record_rows import record_row
from kwire.log.internal.share_state import (
    DeliveredRange,
    SharePartition,
    ShareState,
    read_share_records,
    replay_share_state,
)
from kwire.log.internal.topic_names import topic_names
from kwire.log.internal.transactions import (
    Transaction,
    Transactions,
    read_transaction_records,
    replay_transactions,
)
from kwire.log.internal.typed_record import TypedRecord

__all__ = [
    "GROUPS_TOPIC",
    "METADATA_TOPIC",
    "SHARE_STATE_TOPIC",
    "TRANSACTIONS_TOPIC",
    "Acl",
    "AssignedPartitions",
    "Cluster",
    "CommittedOffset",
    "DelegationToken",
    "DeliveredRange",
    "Endpoint",
    "Group",
    "Groups",
    "Member",
    "Node",
    "Partition",
    "Problems",
    "ScramCredential",
    "SharePartition",
    "ShareState",
    "Snapshot",
    "Topic",
    "Transaction",
    "Transactions",
    "TypedRecord",
    "Voter",
    "list_snapshots",
    "read_cluster_records",
    "read_group_records",
    "read_share_records",
    "read_snapshot_records",
    "read_transaction_records",
    "record_row",
    "replay_cluster",
    "replay_groups",
    "replay_share_state",
    "replay_transactions",
    "topic_names",
]
