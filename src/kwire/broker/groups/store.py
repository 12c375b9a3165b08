"""All groups and their offsets: the state of `__consumer_offsets`, and the live groups of the coordinator.

A change is a list of records. They are appended as one batch and then applied by the code that replays the log at
start, so a restart restores the same state. Generations of classic groups are the exception: members wait for each
other in memory, and the record is written when the leader's assignment arrives.

`GroupsState` folds the records. A live group follows it: a classic group is built from its record, a consumer group
takes over the part that a record changed.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager.replay, OffsetMetadataManager.replay,
runtime.CoordinatorRuntime.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from kwire.broker.clock import Clock, Timers
from kwire.broker.coordinator_log import warn_of_problems
from kwire.broker.groups.classic_group import ClassicGroup, ClassicMember, ClassicState
from kwire.broker.groups.consumer_group import ConsumerGroup
from kwire.broker.groups.consumer_member import ConsumerMember, to_assignment
from kwire.broker.groups.offsets_log import NO_PRODUCER, OffsetsLog, Producer
from kwire.broker.groups.placement import partition_for
from kwire.broker.groups.records import GroupRecord
from kwire.broker.groups.timers import NamedTimers
from kwire.broker.settings import Settings
from kwire.broker.topics import TopicRegistry
from kwire.errors import BrokerError, EncodeError, LogError
from kwire.internal_topics.groups_state import Group as StoredGroup
from kwire.internal_topics.groups_state import GroupsState, group_of
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.internal_topics.typed_record import TypedRecord, usable
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.messages import (
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
    )

__all__ = ["Group", "GroupStore"]

Group = ClassicGroup | ConsumerGroup

log = logging.getLogger(__name__)

# Errors for clients when the coordinator cannot write: no details of the log, only whether to retry.
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
    """The groups of a node: the log's state with all offsets, the live groups, and what both protocols share."""

    def __init__(
        self, clock: Clock, timers: Timers, settings: Settings, topics: TopicRegistry, offsets_log: OffsetsLog
    ) -> None:
        self.clock = clock
        self.timers = NamedTimers(timers)
        self.settings = settings
        self.topics = topics
        self.groups: dict[str, Group] = {}
        self.state = GroupsState()
        self._log = offsets_log

    # --- groups ---

    def group(self, group_id: str) -> Group:
        """Return a live group. Raises BrokerError: GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if group is None:
            raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return a live consumer group. Raises BrokerError: GROUP_ID_NOT_FOUND, also for classic groups."""
        group = self.group(group_id)
        if not isinstance(group, ConsumerGroup):
            raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return group

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        """Create an empty live group, without a record."""
        group = ClassicGroup(group_id=group_id, state_since_ms=self.clock.now_ms())
        self.groups[group_id] = group
        return group

    # --- writing ---

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that holds a group."""
        return partition_for(group_id, self._log.partition_count())

    def write(
        self, group_id: str, records: Sequence[GroupRecord], producer: Producer = NO_PRODUCER, *, apply: bool = True
    ) -> None:
        """Append records of one group as a batch and apply them. apply: to the live group, too.

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
            log.warning("group %r could not be written: %s", group_id, error)
            reported = APPEND_ERRORS.get(ErrorCode(code), ErrorCode(code))
            raise refusal(reported, f"group '{group_id}' could not be written") from error
        now_ms = self.clock.now_ms()
        for index, record in enumerate(records, offset):
            typed = TypedRecord(
                topic=GROUPS_TOPIC,
                partition=partition,
                offset=index,
                timestamp=now_ms,
                kind=type(record.key).__name__.removesuffix("Key"),
                version=record.version,
                key=record.key,
                value=record.value,
                is_transactional=producer != NO_PRODUCER,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
            )
            self.state.apply(typed)
            if apply:
                self._update(typed)

    # --- reading ---

    def load(self) -> None:
        """Apply the whole log. Records that cannot be read are skipped, with a warning. Raises LogError."""
        for record in usable(self._log.replay(), self.state.problems):
            self.state.apply(record)
            self._update(record)
        warn_of_problems(self.state.problems)

    def _update(self, record: TypedRecord) -> None:
        """Let the live group follow a record that was applied to the state."""
        group_id, update = group_of(record), UPDATES.get(record.kind)
        if group_id is not None and update is not None:
            update(self, group_id, record)

    def _update_offset(self, group_id: str, record: TypedRecord) -> None:
        if record.value is not None and group_id not in self.groups:
            self.new_classic_group(group_id)

    def _update_classic_group(self, group_id: str, record: TypedRecord) -> None:
        if record.value is not None:
            self.groups[group_id] = classic_group(self.state.groups[group_id])
        elif isinstance(self.groups.get(group_id), ClassicGroup):
            del self.groups[group_id]

    def _update_consumer_group(self, group_id: str, record: TypedRecord) -> None:
        live = self.groups.get(group_id)
        if not isinstance(live, ConsumerGroup):
            if record.value is None:
                return
            live = self.groups[group_id] = ConsumerGroup(group_id=group_id)
        if record.kind == "ConsumerGroupMetadata" and record.value is None:
            del self.groups[group_id]
            return
        stored = self.state.groups.get(group_id) or StoredGroup(group_id=group_id, partition=record.partition)
        PARTS[record.kind](live, stored, record)


def classic_group(stored: StoredGroup) -> ClassicGroup:
    """Return the classic group that a record describes, with no member waiting."""
    group = ClassicGroup(
        group_id=stored.group_id,
        state=ClassicState.STABLE if stored.members else ClassicState.EMPTY,
        state_since_ms=stored.state_timestamp,
        generation_id=stored.epoch,
        protocol_type=stored.protocol_type or None,
        protocol_name=stored.protocol,
        leader=stored.leader,
    )
    for member in stored.members.values():
        has_timeout = member.rebalance_timeout_ms != -1
        group.add(
            ClassicMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms if has_timeout else member.session_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                protocol_type=stored.protocol_type,
                protocols=((stored.protocol or "", member.subscription),),
                assignment=member.assignment,
            )
        )
    if group.leader not in group.members:
        group.leader = next(iter(group.members), None)
    group.subscribed_topics = group.find_subscribed_topics()
    return group


# ---- Parts of a consumer group that one record changes


def _epoch(live: ConsumerGroup, stored: StoredGroup, record: TypedRecord) -> None:
    live.epoch = stored.epoch


def _assignment_epoch(live: ConsumerGroup, stored: StoredGroup, record: TypedRecord) -> None:
    live.assignment_epoch = stored.assignment_epoch


def _topics(live: ConsumerGroup, stored: StoredGroup, record: TypedRecord) -> None:
    live.topics = stored.topics


def _regexes(live: ConsumerGroup, stored: StoredGroup, record: TypedRecord) -> None:
    live.regexes = stored.regexes


def _member(live: ConsumerGroup, stored: StoredGroup, record: TypedRecord) -> None:
    member_id = cast("ConsumerGroupMemberMetadataKey", record.key).member_id
    if member_id in stored.members:
        live.put(ConsumerMember.of(stored.members[member_id]))
    else:
        live.remove(member_id)


def _current_assignment(live: ConsumerGroup, stored: StoredGroup, record: TypedRecord) -> None:
    member_id = cast("ConsumerGroupCurrentMemberAssignmentKey", record.key).member_id
    if member_id in stored.members and (record.value is not None or member_id in live.members):
        live.put(ConsumerMember.of(stored.members[member_id]))


def _target_assignment(live: ConsumerGroup, stored: StoredGroup, record: TypedRecord) -> None:
    member_id = cast("ConsumerGroupTargetAssignmentMemberKey", record.key).member_id
    member = stored.members.get(member_id)
    if member is None or member.target is None:
        live.target.pop(member_id, None)
    else:
        live.target[member_id] = to_assignment(member.target)


PARTS: dict[str, Callable[[ConsumerGroup, StoredGroup, TypedRecord], None]] = {
    "ConsumerGroupMetadata": _epoch,
    "ConsumerGroupPartitionMetadata": _topics,
    "ConsumerGroupMemberMetadata": _member,
    "ConsumerGroupTargetAssignmentMetadata": _assignment_epoch,
    "ConsumerGroupTargetAssignmentMember": _target_assignment,
    "ConsumerGroupCurrentMemberAssignment": _current_assignment,
    "ConsumerGroupRegularExpression": _regexes,
}
UPDATES: dict[str, Callable[[GroupStore, str, TypedRecord], None]] = {
    "OffsetCommit": GroupStore._update_offset,
    "GroupMetadata": GroupStore._update_classic_group,
    **dict.fromkeys(PARTS, GroupStore._update_consumer_group),
}
"""Kinds that are missing (share and streams groups, transaction markers) change no live group."""
