"""Kafka's internal topics, typed: groups and offsets, transactions, share groups' state, the cluster's metadata.

read_group_records, read_transaction_records, read_share_records, read_cluster_records, read_snapshot_records
                        every record in order, as TypedRecord
replay_groups, replay_transactions, replay_share_state, replay_cluster
                        the state at the end, or `at_offset`, or `at_time`
"""

from kwire.internal_topics.cluster_state import (
    Acl,
    DelegationToken,
    Endpoint,
    Node,
    Partition,
    ScramCredential,
    Topic,
    Voter,
)
from kwire.internal_topics.cluster_state import ClusterState as Cluster
from kwire.internal_topics.group_members import AssignedPartitions, Member
from kwire.internal_topics.groups_state import CommittedOffset, Group
from kwire.internal_topics.groups_state import GroupsState as Groups
from kwire.internal_topics.names import GROUPS_TOPIC, METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kwire.internal_topics.record_rows import record_row
from kwire.internal_topics.share_state import DeliveredRange, SharePartition, ShareState
from kwire.internal_topics.transactions_state import Transaction
from kwire.internal_topics.transactions_state import TransactionsState as Transactions
from kwire.internal_topics.typed_record import Problems, TypedRecord
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
from kwire.log.internal.topic_names import topic_names

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
