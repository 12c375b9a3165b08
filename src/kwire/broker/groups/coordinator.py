"""The group coordinator: the interface for handlers, which selects the protocol of a request.

It runs in one thread. Requests that wait (JoinGroup, SyncGroup) take a callable for the response; all others return
the response. A rejected request raises BrokerError with Kafka's error code and changes nothing.

Source: org.apache.kafka.coordinator.group.GroupCoordinatorService, GroupCoordinatorShard.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from kwire.broker.context import RequestContext
from kwire.broker.coordinator_log import CoordinatorRecord
from kwire.broker.groups import records
from kwire.broker.groups.classic_group import ClassicGroup, ClassicState
from kwire.broker.groups.classic_protocol import ClassicProtocol
from kwire.broker.groups.consumer_group import LEAVE_EPOCH, LEAVE_STATIC_EPOCH, ConsumerGroup, new_group
from kwire.broker.groups.consumer_protocol import ConsumerProtocol
from kwire.broker.groups.migration import Migration
from kwire.broker.groups.offsets import GroupOffsets, group_tombstones, is_empty
from kwire.broker.groups.responses import JoinCallback, SyncCallback
from kwire.broker.groups.share_protocol import ShareProtocol
from kwire.broker.groups.store import GroupStore
from kwire.broker.shares.coordinator import ShareCoordinator
from kwire.broker.topics import Topic
from kwire.errors import BrokerError
from kwire.internal_topics.group_members import MemberState
from kwire.internal_topics.groups_state import SHARE, Group
from kwire.internal_topics.names import GROUPS_TOPIC
from kwire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kwire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kwire.messages.join_group_request import JoinGroupRequest
from kwire.messages.join_group_response import JoinGroupResponse
from kwire.messages.leave_group_request import LeaveGroupRequest
from kwire.messages.leave_group_response import LeaveGroupResponse
from kwire.messages.sync_group_request import SyncGroupRequest
from kwire.messages.sync_group_response import SyncGroupResponse
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["GroupCoordinator"]

log = logging.getLogger(__name__)


class GroupCoordinator:
    """The coordinator of a node.

    store: the groups, for handlers that describe them. offsets: for handlers of offsets. shares: for those of share
    groups.
    """

    def __init__(self, store: GroupStore, states: ShareCoordinator) -> None:
        self.store = store
        self.shares = ShareProtocol(store, states)
        self.offsets = GroupOffsets(store)
        self.classic = ClassicProtocol(store)
        self.consumers = ConsumerProtocol(store)
        self.migration = Migration(store, self.classic.rebalance, self.consumers)

    # --- starting and stopping ---

    def start(self) -> None:
        """Read the log and start every member's session. Raises LogError."""
        self.store.load()
        self._start_sessions(self.store.groups())
        self._start_share_sessions(self.store.share_groups())
        self._expire_later()

    def elect(self, partition: int) -> None:
        """Read the groups of a partition of `__consumer_offsets` whose leader has changed. Raises LogError."""
        self.store.load(partition)
        groups = self.store.groups()
        self._start_sessions([group for group in groups if self.store.partition_of(group.group_id) == partition])
        shared = self.store.share_groups()
        self._start_share_sessions([group for group in shared if self.store.partition_of(group.group_id) == partition])

    def _start_share_sessions(self, groups: Iterable[Group]) -> None:
        for group in groups:
            for member_id in group.members:
                self.shares.start_session(group.group_id, member_id)

    def _start_sessions(self, groups: Iterable[ClassicGroup | ConsumerGroup]) -> None:
        """Start every member's session."""
        settings = self.store.settings
        for classic in [group for group in groups if isinstance(group, ClassicGroup)]:
            for member in classic.members.values():
                self.classic.rebalance.restart_session(classic, member)
            if len(classic.members) > settings.group_max_size:
                self.classic.rebalance.prepare(classic, "it has more members than group.max.size")
        for group in [group for group in groups if not isinstance(group, ClassicGroup)]:
            default_ms = self.store.session_timeout_ms(group.group_id)
            for one in group.members.values():
                timeout_ms = one.session_timeout_ms if one.uses_classic_protocol else default_ms
                self.consumers.start_session(group.group_id, one.member_id, timeout_ms)
                if one.state is MemberState.UNREVOKED_PARTITIONS:
                    self.consumers.watch_rebalance(group.group_id, one)

    def stop(self) -> None:
        """Cancel all timers, and fail waiting requests with NOT_COORDINATOR."""
        self.store.timers.cancel_all()
        self._dismiss(self.store.groups())

    def resign(self, partition: int) -> None:
        """Forget the groups of a partition of `__consumer_offsets`, as `stop` does."""
        self._dismiss(self.store.unload(partition))

    def _dismiss(self, groups: Iterable[ClassicGroup | ConsumerGroup]) -> None:
        code = int(ErrorCode.NOT_COORDINATOR)
        for group in groups:
            if not isinstance(group, ClassicGroup):
                continue
            for member in group.members.values():
                group.complete_join(member, JoinGroupResponse(member_id=member.member_id, error_code=code))
                group.complete_sync(member, SyncGroupResponse(error_code=code))

    def _expire_later(self) -> None:
        def expire() -> None:
            self.offsets.expire()
            self._expire_later()

        self.store.timers.start(("expire",), self.store.settings.offsets_retention_check_interval_ms, expire)

    # --- events ---

    def topic_changed(self, topic: Topic, exists: bool) -> None:
        """Follow a topic that got a partition, or was deleted."""
        if exists:
            self.topics_changed()
        elif topic.name != GROUPS_TOPIC:
            self.topics_deleted([topic.name])
            try:
                self.shares.topic_deleted(topic.topic_id)
            except BrokerError as error:
                log.warning("state of share groups of a deleted topic could not be deleted: %s", error)

    def topics_changed(self) -> None:
        """Let consumer groups check their topics again at the next heartbeat."""
        self.store.checked.clear()

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Delete all offsets of deleted topics."""
        try:
            self.offsets.delete_topics(names)
        except BrokerError as error:
            log.warning("offsets of deleted topics could not be deleted: %s", error)
        self.topics_changed()

    def complete_transaction(self, producer_id: int, commit: bool, partitions: Iterable[int] | None = None) -> None:
        """Apply a producer's transaction markers in partitions of `__consumer_offsets`.

        partitions: None for all partitions to which the producer has written.
        """
        state = self.store.state
        chosen = None if partitions is None else frozenset(partitions)
        for partition in state.open_transactions(producer_id):
            if chosen is None or partition in chosen:
                state.end_transaction(partition, producer_id, commit=commit)

    # --- the classic protocol ---

    def join(
        self,
        context: RequestContext,
        request: JoinGroupRequest,
        respond: JoinCallback,
        may_see: Callable[[str], bool] = lambda topic: True,
    ) -> None:
        """Handle JoinGroup. Raises BrokerError."""
        check_group_id(request.group_id)
        settings = self.store.settings
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            raise refusal(ErrorCode.INVALID_SESSION_TIMEOUT, f"session timeout is outside {shortest} to {longest} ms")
        if self.store.is_share_group(request.group_id):
            raise refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Group {request.group_id} is not a classic group.")
        group = self.store.find(request.group_id)
        if isinstance(group, ConsumerGroup):
            if group.members:
                self.migration.join(group, context, request, respond, may_see)
                return
            self.store.write(group.group_id, group_tombstones(group))
        self.classic.join(context, request, respond)

    def sync(self, request: SyncGroupRequest, respond: SyncCallback) -> None:
        """Handle SyncGroup. Raises BrokerError."""
        check_group_id(request.group_id)
        group = self.store.find(request.group_id)
        if group is None or is_empty(group):
            raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {request.group_id} has no members.")
        if isinstance(group, ClassicGroup):
            self.classic.sync(group, request, respond)
        else:
            respond(self.migration.sync(group, request))

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation_id: int) -> None:
        """Handle Heartbeat. Raises BrokerError."""
        group = self._group_of_member(group_id)
        protocol = self.classic if isinstance(group, ClassicGroup) else self.migration
        protocol.heartbeat(group, member_id, instance_id, generation_id)  # type: ignore[arg-type]

    def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Handle LeaveGroup, version 3 and above: with members. Raises BrokerError."""
        group = self._group_of_member(request.group_id)
        if isinstance(group, ClassicGroup):
            return self.classic.leave(group, request)
        return self.migration.leave(group, request)

    def _group_of_member(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        check_group_id(group_id)
        group = self.store.find(group_id)
        if group is None:
            raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
        return group

    # --- the consumer protocol ---

    def consumer_heartbeat(
        self,
        context: RequestContext,
        request: ConsumerGroupHeartbeatRequest,
        may_see: Callable[[str], bool] = lambda topic: True,
    ) -> ConsumerGroupHeartbeatResponse:
        """Handle ConsumerGroupHeartbeat. Raises BrokerError."""
        self.consumers.check(request, context.api_version)
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            return self.consumers.leave(self.store.consumer_group(request.group_id), request)
        self.store.refuse_share_group(request.group_id)
        existing = self.store.find(request.group_id)
        written: list[CoordinatorRecord] = []
        if request.member_epoch != 0:
            if existing is None:
                raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
            group = self.store.consumer_group(request.group_id)
        elif isinstance(existing, ConsumerGroup):
            group = existing
        elif existing is None or is_empty(existing):
            group = new_group(request.group_id)
            if existing is not None:
                written.append(records.group_metadata_tombstone(request.group_id))
        else:
            group, written = self.migration.upgrade(existing)
        response = self.consumers.heartbeat(group, context, request, written, may_see)
        if isinstance(existing, ClassicGroup):
            self.migration.upgraded(existing)
        return response

    # --- groups ---

    def delete(self, group_id: str) -> None:
        """Delete a group without members, with its offsets.

        Raises BrokerError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        if self.store.is_share_group(group_id):
            self.shares.delete(group_id)
            return
        group = self.store.group(group_id)
        if not is_empty(group):
            raise refusal(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
        self.store.write(group_id, [*self.offsets.all_tombstones(group_id), *group_tombstones(group)])
        if isinstance(group, ClassicGroup):
            for member_id in group.pending_joins:
                self.store.timers.cancel(("session", group_id, member_id))

    def listed(self, states: Iterable[str], types: Iterable[str]) -> list[tuple[str, str, str, str]]:
        """Return (group id, protocol type, state, type) of the groups in these states and of these types.

        Empty filters match all groups. Case is ignored.
        """
        state_filter = {state.strip().lower() for state in states}
        type_filter = {kind.lower() for kind in types}
        groups = []
        for group in self.store.groups():
            classic = isinstance(group, ClassicGroup)
            kind = "classic" if classic else "consumer"
            protocol = (group.protocol_type or "") if isinstance(group, ClassicGroup) else "consumer"
            if (not state_filter or group.state.lower() in state_filter) and (not type_filter or kind in type_filter):
                groups.append((group.group_id, protocol, str(group.state), kind))
        if not type_filter or SHARE in type_filter:
            groups += [
                (each.group_id, SHARE, each.state, SHARE)
                for each in self.store.share_groups()
                if not state_filter or each.state.lower() in state_filter
            ]
        return groups

    def restart_session(self, group: ClassicGroup | ConsumerGroup, member_id: str) -> None:
        """Restart the session of a member of a classic group that committed offsets."""
        if isinstance(group, ClassicGroup) and group.state in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE):
            member = group.members.get(member_id)
            if member is not None:
                self.classic.rebalance.restart_session(group, member)


def check_group_id(group_id: str) -> None:
    """Check that a group id is not empty; only simple consumers may use the empty one.

    Raises BrokerError: INVALID_GROUP_ID.
    """
    if not group_id:
        raise refusal(ErrorCode.INVALID_GROUP_ID, "group id is empty")
