"""Consumer groups: both protocols, committed offsets, and the log they live in.

coordinator        what handlers call
classic_protocol   JoinGroup, SyncGroup, Heartbeat, LeaveGroup    classic_rebalance, classic_group: its parts
consumer_protocol  ConsumerGroupHeartbeat                         consumer_group, consumer_member, reconciliation
assignors          who is to have what                            subscription, topic_regex: of which topics
migration          members of both protocols in one group         embedded_protocol: what consumers put into bytes
offsets            commits, fetches, expiry
store              groups out of records, records before belief   records, offsets_log, placement
"""

from kwire.broker.groups.coordinator import GroupCoordinator
from kwire.broker.groups.offsets_log import NO_PRODUCER, OffsetsLog, Producer

__all__ = ["NO_PRODUCER", "GroupCoordinator", "OffsetsLog", "Producer"]
