"""All groups and their offsets: what records make of them, and records written before anything is believed.

A change is a list of records. They are appended as one batch, and only then applied, by the very code that reads the
log at start; so what a restart finds is what was there. The one exception are generations of classic groups: their
members live in memory, waiting for each other, and the record is written when the leader's assignment has come.

Reading is lenient where compaction may have taken a record's companion: a tombstone for what is not there does
nothing.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager.replay, OffsetMetadataManager.replay,
runtime.CoordinatorRuntime.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kwire.broker.clock import Clock, Timers
from kwire.broker.groups.classic_group import ClassicGroup, ClassicMember, ClassicState
from kwire.broker.groups.consumer_group import ConsumerGroup
from kwire.broker.groups.consumer_member import LEAVE_EPOCH, ConsumerMember, MemberState, to_assignment
from kwire.broker.groups.offset_table import CommittedOffset, OffsetTable
from kwire.broker.groups.offsets_log import NO_PRODUCER, LoggedMarker, OffsetsLog, Producer
from kwire.broker.groups.placement import partition_for
from kwire.broker.groups.records import GroupRecord, read_record
from kwire.broker.groups.subscription import ResolvedRegex, TopicMetadata
from kwire.broker.groups.timers import NamedTimers
from kwire.broker.settings import Settings
from kwire.broker.topics import TopicRegistry
from kwire.errors import BrokerError, DecodeError, EncodeError, LogError, UnsupportedVersion
from kwire.messages.base import Message
from kwire.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from kwire.messages.consumer_group_current_member_assignment_value import ConsumerGroupCurrentMemberAssignmentValue
from kwire.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kwire.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kwire.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kwire.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kwire.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kwire.messages.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue
from kwire.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kwire.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from kwire.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kwire.messages.consumer_group_target_assignment_member_value import ConsumerGroupTargetAssignmentMemberValue
from kwire.messages.consumer_group_target_assignment_metadata_key import ConsumerGroupTargetAssignmentMetadataKey
from kwire.messages.consumer_group_target_assignment_metadata_value import ConsumerGroupTargetAssignmentMetadataValue
from kwire.messages.group_metadata_key import GroupMetadataKey
from kwire.messages.group_metadata_value import GroupMetadataValue
from kwire.messages.offset_commit_key import OffsetCommitKey
from kwire.messages.offset_commit_value import OffsetCommitValue
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["Group", "GroupStore"]

Group = ClassicGroup | ConsumerGroup

log = logging.getLogger(__name__)

# What clients are told when the coordinator cannot write: nothing of the log, but whether to try again.
# Source: GroupMetadataManager.appendGroupMetadataErrorToResponseError.
APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class GroupStore:
    """See the module's head. What the protocols share: time, settings, topics, groups, offsets."""

    def __init__(
        self, clock: Clock, timers: Timers, settings: Settings, topics: TopicRegistry, offsets_log: OffsetsLog
    ) -> None:
        self.clock = clock
        self.timers = NamedTimers(timers)
        self.settings = settings
        self.topics = topics
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetTable()
        self._log = offsets_log

    # --- groups ---

    def group(self, group_id: str) -> Group:
        """Raises BrokerError: GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if group is None:
            raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Raises BrokerError: GROUP_ID_NOT_FOUND, for a classic group too."""
        group = self.group(group_id)
        if not isinstance(group, ConsumerGroup):
            raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        """An empty one, which no record tells of yet."""
        group = ClassicGroup(group_id=group_id, state_since_ms=self.clock.now_ms())
        self.groups[group_id] = group
        return group

    # --- writing ---

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group lives in."""
        return partition_for(group_id, self._log.partition_count())

    def write(
        self, group_id: str, records: Sequence[GroupRecord], producer: Producer = NO_PRODUCER, *, apply: bool = True
    ) -> None:
        """Append records of one group as a batch and, unless told otherwise, apply them. Nothing is done with none.

        Raises BrokerError with a code for clients; nothing has changed then.
        """
        if not records:
            return
        partition = self.partition_of(group_id)
        try:
            offset = self._log.append(partition, [record.encode() for record in records], producer)
        except (BrokerError, LogError, EncodeError) as error:
            code = error.code if isinstance(error, BrokerError) else ErrorCode.KAFKA_STORAGE_ERROR
            if isinstance(error, EncodeError):
                code = ErrorCode.INVALID_REQUEST
            log.warning("group %s: could not write: %s", group_id, error)
            told = APPEND_ERRORS.get(ErrorCode(code), ErrorCode(code))
            raise refusal(told, f"group {group_id}: its state could not be written") from error
        if apply:
            for index, record in enumerate(records):
                self.apply(record, partition=partition, offset=offset + index, producer_id=producer.producer_id)

    # --- reading ---

    def load(self) -> None:
        """Apply the whole log. A record that cannot be read is passed over. Raises LogError, DecodeError of batches."""
        for logged in self._log.replay():
            if isinstance(logged, LoggedMarker):
                self.offsets.end((logged.partition, logged.producer_id), commit=logged.commit)
                continue
            try:
                record = read_record(logged.key, logged.value)
            except (DecodeError, UnsupportedVersion) as error:
                log.warning("__consumer_offsets-%d, offset %d: %s", logged.partition, logged.offset, error)
                continue
            if record is not None:
                self.apply(record, partition=logged.partition, offset=logged.offset, producer_id=logged.producer_id)

    def apply(self, record: GroupRecord, *, partition: int, offset: int, producer_id: int = -1) -> None:
        """Believe a record that stands at that offset of a partition."""
        key, value = record.key, record.value
        match key:
            case OffsetCommitKey():
                self._apply_offset(key, value, (partition, producer_id), offset)
            case GroupMetadataKey():
                self._apply_classic_group(key.group, value)
            case ConsumerGroupMetadataKey():
                if isinstance(value, ConsumerGroupMetadataValue):
                    self._make_consumer_group(key.group_id).epoch = value.epoch
                elif isinstance(self.groups.get(key.group_id), ConsumerGroup):
                    del self.groups[key.group_id]
            case ConsumerGroupMemberMetadataKey():
                self._apply_member(key.group_id, key.member_id, value)
            case (
                ConsumerGroupPartitionMetadataKey()
                | ConsumerGroupTargetAssignmentMetadataKey()
                | ConsumerGroupTargetAssignmentMemberKey()
                | ConsumerGroupCurrentMemberAssignmentKey()
                | ConsumerGroupRegularExpressionKey()
            ):
                group = self.groups.get(key.group_id)
                if value is not None:
                    group = self._make_consumer_group(key.group_id)
                if isinstance(group, ConsumerGroup):
                    self._apply_to_consumer_group(group, key, value)

    def _apply_offset(self, key: OffsetCommitKey, value: Message | None, transaction: tuple[int, int], at: int) -> None:
        topic_partition = (key.topic, key.partition)
        if not isinstance(value, OffsetCommitValue):
            self.offsets.remove(key.group, topic_partition)
            return
        if key.group not in self.groups:
            self.new_classic_group(key.group)
        if transaction[1] == NO_PRODUCER.producer_id:
            self.offsets.put(key.group, topic_partition, CommittedOffset(value, at))
        else:
            self.offsets.put_pending(transaction, key.group, topic_partition, CommittedOffset(value, at))

    def _apply_classic_group(self, group_id: str, value: Message | None) -> None:
        if not isinstance(value, GroupMetadataValue):
            if isinstance(self.groups.get(group_id), ClassicGroup):
                del self.groups[group_id]
            return
        group = ClassicGroup(
            group_id=group_id,
            state=ClassicState.STABLE if value.members else ClassicState.EMPTY,
            state_since_ms=value.current_state_timestamp,
            generation_id=value.generation,
            protocol_type=value.protocol_type or None,
            protocol_name=value.protocol,
            leader=value.leader,
        )
        for member in value.members:
            group.add(
                ClassicMember(
                    member_id=member.member_id,
                    instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=(
                        member.session_timeout if member.rebalance_timeout == -1 else member.rebalance_timeout
                    ),
                    session_timeout_ms=member.session_timeout,
                    protocol_type=value.protocol_type,
                    protocols=((value.protocol or "", member.subscription),),
                    assignment=member.assignment,
                )
            )
        if group.leader not in group.members:
            group.leader = next(iter(group.members), None)
        group.subscribed_topics = group.find_subscribed_topics()
        self.groups[group_id] = group

    def _make_consumer_group(self, group_id: str) -> ConsumerGroup:
        """The consumer group; a classic one of that id makes room, as its tombstone stands in front."""
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            group = self.groups[group_id] = ConsumerGroup(group_id=group_id)
        return group

    def _apply_member(self, group_id: str, member_id: str, value: Message | None) -> None:
        if not isinstance(value, ConsumerGroupMemberMetadataValue):
            group = self.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                group.remove(member_id)
            return
        group = self._make_consumer_group(group_id)
        classic = value.classic_member_metadata
        group.put(
            (group.members.get(member_id) or ConsumerMember(member_id=member_id)).replace(
                instance_id=value.instance_id,
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                rebalance_timeout_ms=value.rebalance_timeout_ms,
                topic_names=frozenset(value.subscribed_topic_names),
                topic_regex=value.subscribed_topic_regex or None,
                assignor=value.server_assignor,
                classic_session_timeout_ms=None if classic is None else classic.session_timeout_ms,
                classic_protocols=(
                    () if classic is None else tuple((p.name, p.metadata) for p in classic.supported_protocols)
                ),
            )
        )

    def _apply_to_consumer_group(self, group: ConsumerGroup, key: Message, value: Message | None) -> None:
        match key:
            case ConsumerGroupPartitionMetadataKey():
                group.topics = {}
                if isinstance(value, ConsumerGroupPartitionMetadataValue):
                    for topic in value.topics:
                        racks = [rack for partition in topic.partition_metadata for rack in partition.racks]
                        group.topics[topic.topic_name] = TopicMetadata(
                            topic_id=topic.topic_id,
                            name=topic.topic_name,
                            partition_count=topic.num_partitions,
                            rack=racks[0] if racks else None,
                        )
            case ConsumerGroupTargetAssignmentMetadataKey():
                known = isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
                group.assignment_epoch = value.assignment_epoch if known else -1  # type: ignore[union-attr]
            case ConsumerGroupTargetAssignmentMemberKey():
                if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
                    group.target[key.member_id] = to_assignment(value.topic_partitions)
                else:
                    group.target.pop(key.member_id, None)
            case ConsumerGroupCurrentMemberAssignmentKey():
                self._apply_current_assignment(group, key.member_id, value)
            case ConsumerGroupRegularExpressionKey():
                if isinstance(value, ConsumerGroupRegularExpressionValue):
                    group.regexes[key.regular_expression] = ResolvedRegex(
                        topics=frozenset(value.topics), version=value.version, timestamp_ms=value.timestamp
                    )
                else:
                    group.regexes.pop(key.regular_expression, None)

    @staticmethod
    def _apply_current_assignment(group: ConsumerGroup, member_id: str, value: Message | None) -> None:
        member = group.members.get(member_id)
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            group.put(
                (member or ConsumerMember(member_id=member_id)).replace(
                    epoch=value.member_epoch,
                    previous_epoch=value.previous_member_epoch,
                    state=MemberState(value.state),
                    assigned=to_assignment(value.assigned_partitions),
                    pending_revocation=to_assignment(value.partitions_pending_revocation),
                )
            )
        elif member is not None:
            group.put(member.replace(epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, pending_revocation={}))
