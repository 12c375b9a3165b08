"""Rebalances of classic groups: who is waited for, how long, and what happens when the time is over.

    what is waited for               how long                             then
    first members of an empty group  group.initial.rebalance.delay.ms,    the generation begins with whoever is there
                                     again while more come, up to the
                                     rebalance timeout
    members to join again            the group's rebalance timeout        those that did not are gone; static ones stay
    a member id to come back         its session timeout                  the id is forgotten
    a new member's first generation  five minutes                         the member is gone: nobody hears it
    members to send SyncGroup        the group's rebalance timeout        those that did not are gone, rebalance
    a heartbeat                      the member's session timeout         the member is gone, rebalance

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
    """See the module's head."""

    def __init__(self, store: GroupStore) -> None:
        self.store = store

    # --- a rebalance begins ---

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> None:
        """Begin a rebalance, or end the one that is being prepared if this was what it waited for."""
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
            ("join", group.group_id), group.rebalance_timeout_ms, lambda: self._if_there(group, self.complete_join)
        )

    def _start_initial_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        self.store.timers.start(
            ("join", group.group_id),
            delay_ms,
            lambda: self._if_there(group, lambda group: self._end_initial_delay(group, delay_ms, remaining_ms)),
        )

    def _end_initial_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        if group.new_member_added and remaining_ms:
            group.new_member_added = False
            next_delay_ms = min(self.store.settings.group_initial_rebalance_delay_ms, remaining_ms)
            self._start_initial_delay(group, next_delay_ms, max(remaining_ms - delay_ms, 0))
        else:
            self.complete_join(group)

    def _if_there(self, group: ClassicGroup, act: Callable[[ClassicGroup], object]) -> None:
        """Act on a group that is still the one of its id: it may have been deleted or upgraded since."""
        if self.store.groups.get(group.group_id) is group:
            act(group)

    # --- a generation begins ---

    def complete_if_all_joined(self, group: ClassicGroup) -> None:
        """End the preparation if nobody is missing. The first one of a group always waits for its delay."""
        if (
            group.state is ClassicState.PREPARING_REBALANCE
            and group.previous_state is not ClassicState.EMPTY
            and group.all_joined
        ):
            self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """Begin the next generation with those that have joined."""
        self.store.timers.cancel(("join", group.group_id))
        for member in list(group.members.values()):
            if member.awaiting_join is None and member.instance_id is None:
                self.remove(group, member.member_id)
        if not group.elect_joined_leader() and group.members:
            log.warning("group %s: no member joined again", group.group_id)  # static ones are all away: wait on
            self._start_join_timeout(group)
            return
        group.begin_generation(self.store.clock.now_ms())
        if group.state is ClassicState.EMPTY:
            self._write_emptied(group)
            return
        for member in group.members.values():
            response = group.joined_response(member.member_id, with_members=group.leader == member.member_id)
            group.answer_join(member, response)
            self.restart_session(group, member)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        self.store.timers.start(
            ("sync", group.group_id),
            group.rebalance_timeout_ms,
            lambda: self._if_there(group, self._expire_sync),
        )

    def _write_emptied(self, group: ClassicGroup) -> None:
        """Keep the generation of a group that has lost its last member; in memory only, if it cannot be written."""
        try:
            self.store.write(group.group_id, [group_metadata(group, {})], apply=False)
        except BrokerError as error:
            log.warning("group %s: its generation %d is lost: %s", group.group_id, group.generation_id, error)

    def _expire_sync(self, group: ClassicGroup) -> None:
        missing = sorted(group.pending_syncs)
        if missing and group.state in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
            for member_id in missing:
                self.remove(group, member_id)
            self.prepare(group, f"no SyncGroup came from {', '.join(missing)}")

    # --- assignments ---

    def assign(self, group: ClassicGroup, assignments: dict[str, bytes], error: ErrorCode) -> None:
        """Give members what the leader decided, to those that wait at once; or an error, and nothing."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            fine = error is ErrorCode.NONE
            response = SyncGroupResponse(
                protocol_name=group.protocol_name if fine else None,
                protocol_type=group.protocol_type if fine else None,
                assignment=member.assignment,
                error_code=int(error),
            )
            if group.answer_sync(member, response):
                self.restart_session(group, member)

    # --- sessions ---

    def restart_session(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """The member was heard of; it has its session timeout, or that one, until it must be again."""
        self.start_session(group, member.member_id, member.session_timeout_ms if timeout_ms is None else timeout_ms)

    def start_session(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """The same for a member id that was only given out."""
        self.store.timers.start(
            ("session", group.group_id, member_id),
            timeout_ms,
            lambda: self._if_there(group, lambda group: self._expire_session(group, member_id)),
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
        """Let a member go: whoever waits under its id hears that it is unknown, and no timer runs for it."""
        self.store.timers.cancel(("session", group.group_id, member_id))
        member = group.members.get(member_id)
        if member is not None:
            group.answer_join(member, UNKNOWN_MEMBER)
            group.answer_sync(member, SyncGroupResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID)))
        group.remove(member_id)
