"""Rebalances of classic groups: what a group waits for, how long, and what happens at the timeout.

    waits for                        how long                             at the timeout
    first members of an empty group  group.initial.rebalance.delay.ms,    the generation begins with the members that
                                     again while more come, up to the     joined
                                     rebalance timeout
    members to join again            the group's rebalance timeout        missing members are removed; static ones stay
    a pending member id to join      its session timeout                  the id is removed
    a new member's first generation  five minutes                         the member is removed
    members to send SyncGroup        the group's rebalance timeout        missing members are removed, rebalance
    a heartbeat                      the member's session timeout         the member is removed, rebalance

Source: org.apache.kafka.coordinator.group.GroupMetadataManager (classicGroup...), KIP-134, KIP-345, KIP-394.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kwire.broker.groups.classic_group import ClassicGroup, ClassicMember, ClassicState
from kwire.broker.groups.records import group_metadata
from kwire.broker.groups.store import GroupStore
from kwire.errors import BrokerError
from kwire.messages.join_group_response import JoinGroupResponse
from kwire.messages.sync_group_response import SyncGroupResponse
from kwire.protocol.error_codes import ErrorCode

__all__ = ["NEW_MEMBER_JOIN_TIMEOUT_MS", "ClassicRebalance"]

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
UNKNOWN_MEMBER = JoinGroupResponse(member_id="", error_code=int(ErrorCode.UNKNOWN_MEMBER_ID))

log = logging.getLogger(__name__)


class ClassicRebalance:
    """Rebalances and sessions of classic groups."""

    def __init__(self, store: GroupStore) -> None:
        self.store = store

    # --- a rebalance begins ---

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> None:
        """Begin a rebalance, or complete the one that is being prepared if all members joined."""
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.complete_if_all_joined(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Begin a rebalance."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self.assign(group, {}, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_syncs.clear()
        self.store.timers.cancel(("sync", group.group_id))
        is_initial = group.state is ClassicState.EMPTY
        group.enter(ClassicState.PREPARING_REBALANCE, self.store.clock.now_ms())
        log.info("group %s: rebalance after generation %d: %s", group.group_id, group.generation_id, reason)
        if is_initial:
            delay_ms = self.store.settings.group_initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._start_initial_delay(group, delay_ms, remaining_ms)
        elif group.all_joined:
            self.complete_join(group)
        else:
            self._start_join_timeout(group)

    def _start_join_timeout(self, group: ClassicGroup) -> None:
        self.store.timers.start(
            ("join", group.group_id), group.rebalance_timeout_ms, lambda: self._if_exists(group, self.complete_join)
        )

    def _start_initial_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        self.store.timers.start(
            ("join", group.group_id),
            delay_ms,
            lambda: self._if_exists(group, lambda group: self._end_initial_delay(group, delay_ms, remaining_ms)),
        )

    def _end_initial_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        if group.new_member_added and remaining_ms:
            group.new_member_added = False
            next_delay_ms = min(self.store.settings.group_initial_rebalance_delay_ms, remaining_ms)
            self._start_initial_delay(group, next_delay_ms, max(remaining_ms - delay_ms, 0))
        else:
            self.complete_join(group)

    def _if_exists(self, group: ClassicGroup, act: Callable[[ClassicGroup], object]) -> None:
        """Act on a group unless it was deleted or upgraded since."""
        if self.store.classic.get(group.group_id) is group:
            act(group)

    # --- a generation begins ---

    def complete_if_all_joined(self, group: ClassicGroup) -> None:
        """Complete the preparation if no member is missing. A group's first rebalance waits for its delay."""
        if (
            group.state is ClassicState.PREPARING_REBALANCE
            and group.previous_state is not ClassicState.EMPTY
            and group.all_joined
        ):
            self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """Begin the next generation with the members that joined."""
        self.store.timers.cancel(("join", group.group_id))
        for member in list(group.members.values()):
            if member.awaiting_join is None and member.instance_id is None:
                self.remove(group, member.member_id)
        if not group.elect_joined_leader() and group.members:
            log.warning("group %s: no member joined again", group.group_id)  # only static members are left: wait again
            self._start_join_timeout(group)
            return
        group.begin_generation(self.store.clock.now_ms())
        if group.state is ClassicState.EMPTY:
            self._write_emptied(group)
            return
        for member in group.members.values():
            response = group.joined_response(member.member_id, with_members=group.leader == member.member_id)
            group.complete_join(member, response)
            self.restart_session(group, member)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        self.store.timers.start(
            ("sync", group.group_id),
            group.rebalance_timeout_ms,
            lambda: self._if_exists(group, self._expire_sync),
        )

    def _write_emptied(self, group: ClassicGroup) -> None:
        """Store the generation of a group that lost its last member; in memory only if the log cannot be written."""
        try:
            self.store.write(group.group_id, [group_metadata(group, {})])
        except BrokerError as error:
            log.warning("group %s: its generation %d is lost: %s", group.group_id, group.generation_id, error)

    def _expire_sync(self, group: ClassicGroup) -> None:
        missing = sorted(group.pending_syncs)
        if missing and group.state in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
            for member_id in missing:
                self.remove(group, member_id)
            self.prepare(group, f"no SyncGroup from {', '.join(missing)}")

    # --- assignments ---

    def assign(self, group: ClassicGroup, assignments: dict[str, bytes], error: ErrorCode) -> None:
        """Store the leader's assignment and send it to waiting members; or an error, without an assignment."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            fine = error is ErrorCode.NONE
            response = SyncGroupResponse(
                protocol_name=group.protocol_name if fine else None,
                protocol_type=group.protocol_type if fine else None,
                assignment=member.assignment,
                error_code=int(error),
            )
            if group.complete_sync(member, response):
                self.restart_session(group, member)

    # --- sessions ---

    def restart_session(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """Restart a member's session; timeout_ms: the member's session timeout by default."""
        self.start_session(group, member.member_id, member.session_timeout_ms if timeout_ms is None else timeout_ms)

    def start_session(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Start the session of a pending member id."""
        self.store.timers.start(
            ("session", group.group_id, member_id),
            timeout_ms,
            lambda: self._if_exists(group, lambda group: self._expire_session(group, member_id)),
        )

    def _expire_session(self, group: ClassicGroup, member_id: str) -> None:
        if member_id in group.pending_joins:
            group.remove(member_id)
            if group.state is ClassicState.PREPARING_REBALANCE and group.all_joined:
                self.complete_join(group)
            return
        member = group.members.get(member_id)
        if member is None or member.has_satisfied_heartbeat:
            return
        self.remove(group, member_id)
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            self.prepare(group, f"the session of {member_id} expired")
        elif group.state is ClassicState.PREPARING_REBALANCE and group.all_joined:
            self.complete_join(group)

    def remove(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member: cancel its timers, and fail its waiting requests with UNKNOWN_MEMBER_ID."""
        self.store.timers.cancel(("session", group.group_id, member_id))
        member = group.members.get(member_id)
        if member is not None:
            group.complete_join(member, UNKNOWN_MEMBER)
            group.complete_sync(member, SyncGroupResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID)))
        group.remove(member_id)
