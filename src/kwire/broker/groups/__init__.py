"""Groups: their protocols, committed offsets, and their log.

coordinator        the interface for handlers
classic_protocol   JoinGroup, SyncGroup, Heartbeat, LeaveGroup    classic_rebalance, classic_group: its parts
consumer_protocol  ConsumerGroupHeartbeat                         consumer_group, reconciliation: its parts
share_protocol     ShareGroupHeartbeat                            share_records; delivery of records: broker.shares
assignors          target assignments                             topic_regex: patterns of subscriptions
migration          members of both protocols in one group
offsets            commits, fetches, expiry
store              all groups; writes and applies records         records, placement
"""

from kwire.broker.groups.coordinator import GroupCoordinator

__all__ = ["GroupCoordinator"]
