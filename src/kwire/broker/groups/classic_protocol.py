"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic groups.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager (classicGroupJoin, ...Sync, ...Heartbeat, ...Leave).
"""

from __future__ import annotations

from kwire.broker.context import RequestContext
from kwire.broker.groups.classic_group import ClassicGroup, ClassicMember, ClassicState, Protocols
from kwire.broker.groups.classic_rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicRebalance
from kwire.broker.groups.records import empty_group_metadata, group_metadata
from kwire.broker.groups.responses import JoinCallback, SyncCallback
from kwire.broker.groups.store import GroupStore
from kwire.errors import BrokerError
from kwire.messages.join_group_request import JoinGroupRequest
from kwire.messages.join_group_response import JoinGroupResponse
from kwire.messages.leave_group_request import LeaveGroupRequest
from kwire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kwire.messages.sync_group_request import SyncGroupRequest
from kwire.messages.sync_group_response import SyncGroupResponse
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["MEMBER_ID_REQUIRED_VERSION", "ClassicProtocol", "protocols_of"]

MEMBER_ID_REQUIRED_VERSION = 4
"""From this version of JoinGroup on, a member without an id gets one and has to join again with it (KIP-394)."""
SKIP_ASSIGNMENT_VERSION = 9
"""From this version on, a static leader that joins again skips the assignment (KIP-814)."""


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """Return the protocols that a member supports."""
    return tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)


class ClassicProtocol:
    """Requests of classic groups. The coordinator has checked the request itself."""

    def __init__(self, store: GroupStore) -> None:
        self.store = store
        self.rebalance = ClassicRebalance(store)

    # --- JoinGroup ---

    def join(self, context: RequestContext, request: JoinGroupRequest, respond: JoinCallback) -> None:
        """Join a group, creating it for a member without an id. The response follows when the generation begins.

        Raises BrokerError for a rejected request; its response carries the member id of the request.
        """
        group = self.store.find(request.group_id)
        if group is None:
            if request.member_id:
                raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Classic group {request.group_id} not found.")
            group = self._make_group(request.group_id)
        assert isinstance(group, ClassicGroup)
        self._join(group, context, request, respond)

    def _make_group(self, group_id: str) -> ClassicGroup:
        group = self.store.new_classic_group(group_id)
        try:
            self.store.write(group_id, [empty_group_metadata(group)])
        except BrokerError:
            del self.store.classic[group_id]
            raise
        return group

    def _join(
        self, group: ClassicGroup, context: RequestContext, request: JoinGroupRequest, respond: JoinCallback
    ) -> None:
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            respond(JoinGroupResponse(member_id="", error_code=int(ErrorCode.GROUP_MAX_SIZE_REACHED)))
        elif not group.supports(request.protocol_type, [protocol.name for protocol in request.protocols]):
            raise refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "no protocol is common to all members")
        elif not request.member_id:
            self._join_new(group, context, request, respond)
        elif request.member_id in group.pending_joins:
            self._add(group, context, request, request.member_id, respond)
        else:
            group.check_member(request.member_id, request.group_instance_id)
            self._join_again(group, group.members[request.member_id], request, respond)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Return whether the group has room for a member. During a rebalance, members that joined first stay."""
        limit = self.store.settings.group_max_size
        if group.state is ClassicState.EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE:
            return (member is not None and member.awaiting_join is not None) or group.joined_count < limit
        return member is not None or len(group.members) < limit

    def _join_new(
        self, group: ClassicGroup, context: RequestContext, request: JoinGroupRequest, respond: JoinCallback
    ) -> None:
        instance_id = request.group_instance_id
        new_id = group.new_member_id(context.client_id, instance_id)
        if instance_id is None and context.api_version >= MEMBER_ID_REQUIRED_VERSION:
            group.pending_joins.add(new_id)
            self.rebalance.start_session(group, new_id, request.session_timeout_ms)
            respond(JoinGroupResponse(member_id=new_id, error_code=int(ErrorCode.MEMBER_ID_REQUIRED)))
            return
        existing = group.static_members.get(instance_id) if instance_id is not None else None
        if existing is None:
            self._add(group, context, request, new_id, respond)
        else:
            self._replace_static(group, context, request, existing, new_id, respond)

    def _add(
        self,
        group: ClassicGroup,
        context: RequestContext,
        request: JoinGroupRequest,
        member_id: str,
        respond: JoinCallback,
    ) -> None:
        member = ClassicMember(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=context.client_id,
            client_host=context.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=protocols_of(request),
            is_new=True,
            awaiting_join=respond,
        )
        if group.state is ClassicState.PREPARING_REBALANCE and group.previous_state is ClassicState.EMPTY:
            group.new_member_added = True
        group.add(member)
        self.rebalance.restart_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self.rebalance.prepare_or_complete(group, f"{member_id} joins: {request.reason or 'no reason'}")

    def _join_again(
        self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest, respond: JoinCallback
    ) -> None:
        """Let a known member join again. A stable group rebalances only for a change, or for its leader."""
        unchanged = member.protocols == protocols_of(request)
        is_leader = group.leader == member.member_id
        if group.state is ClassicState.COMPLETING_REBALANCE and unchanged:
            respond(group.joined_response(member.member_id, with_members=is_leader))  # its response was lost
        elif group.state is ClassicState.STABLE and unchanged and not is_leader:
            respond(group.joined_response(member.member_id, with_members=False))
        elif group.state is ClassicState.EMPTY:
            raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"group '{group.group_id}' has no members")
        else:
            self._update(member, request, respond)
            self.rebalance.prepare_or_complete(
                group, f"{member.member_id} joins again: {request.reason or 'no reason'}"
            )

    @staticmethod
    def _update(member: ClassicMember, request: JoinGroupRequest, respond: JoinCallback) -> None:
        member.protocols = protocols_of(request)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        member.awaiting_join = respond

    def _replace_static(
        self,
        group: ClassicGroup,
        context: RequestContext,
        request: JoinGroupRequest,
        old_id: str,
        new_id: str,
        respond: JoinCallback,
    ) -> None:
        """Replace the member of an instance that joins without its id (KIP-345); a stable group does not rebalance."""
        assert request.group_instance_id is not None
        leader_before, old = group.leader, group.members[old_id]
        self.store.timers.cancel(("session", group.group_id, old_id))
        member = group.replace_static(request.group_instance_id, old_id, new_id)
        self._update(member, request, respond)
        self.rebalance.restart_session(group, member)
        if group.state is ClassicState.STABLE and group.select_protocol() == group.protocol_name:
            assignments = {member.member_id: member.assignment for member in group.members.values()}
            try:
                self.store.write(group.group_id, [group_metadata(group, assignments)])
            except BrokerError:
                member.awaiting_join = None
                group.replace_static(request.group_instance_id, new_id, old_id)
                group.members[old_id] = old  # with its protocols
                self.rebalance.restart_session(group, old)
                self.store.timers.cancel(("session", group.group_id, new_id))
                raise
            is_leader = group.leader == new_id
            if context.api_version >= SKIP_ASSIGNMENT_VERSION:
                response = group.joined_response(new_id, with_members=is_leader, skip_assignment=is_leader)
            else:  # names its old id as the leader, so it does not act as one
                response = group.joined_response(new_id, with_members=False)
                response.leader = leader_before or ""
            group.complete_join(member, response)
        elif group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
            self.rebalance.prepare(group, f"static member {new_id} joins with other protocols")
        else:
            self.rebalance.complete_if_all_joined(group)

    # --- SyncGroup ---

    def sync(self, group: ClassicGroup, request: SyncGroupRequest, respond: SyncCallback) -> None:
        """Request the assignment of this generation; the leader submits it. Raises BrokerError."""
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise refusal(ErrorCode.ILLEGAL_GENERATION, f"generation is {group.generation_id}")
        for sent, expected in (
            (request.protocol_type, group.protocol_type),
            (request.protocol_name, group.protocol_name),
        ):
            if sent is not None and expected is not None and sent != expected:
                raise refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"member sent {sent}, group has {expected}")
        member = group.members[request.member_id]
        if group.state is ClassicState.PREPARING_REBALANCE:
            raise refusal(ErrorCode.REBALANCE_IN_PROGRESS, "group is rebalancing")
        self._synced(group, request.member_id)
        if group.state is ClassicState.COMPLETING_REBALANCE:
            member.awaiting_sync = respond
            if group.leader == member.member_id:
                self._store_assignment(group, request)
        else:
            respond(
                SyncGroupResponse(
                    protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
                )
            )

    def _synced(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self.store.timers.cancel(("sync", group.group_id))

    def _store_assignment(self, group: ClassicGroup, request: SyncGroupRequest) -> None:
        assignments = {given.member_id: bytes(given.assignment) for given in request.assignments}
        try:
            self.store.write(group.group_id, [group_metadata(group, assignments)])
        except BrokerError as error:
            self.rebalance.assign(group, {}, ErrorCode(error.code))
            self.rebalance.prepare_or_complete(group, f"the assignment could not be stored: {error}")
            return
        self.rebalance.assign(group, assignments, ErrorCode.NONE)
        group.enter(ClassicState.STABLE, self.store.clock.now_ms())

    # --- Heartbeat ---

    def heartbeat(self, group: ClassicGroup, member_id: str, instance_id: str | None, generation_id: int) -> None:
        """Keep a member alive. Raises BrokerError: REBALANCE_IN_PROGRESS makes the member join again."""
        group.check_member(member_id, instance_id)
        if generation_id != group.generation_id:
            raise refusal(ErrorCode.ILLEGAL_GENERATION, f"generation is {group.generation_id}")
        self.rebalance.restart_session(group, group.members[member_id])
        if group.state is ClassicState.PREPARING_REBALANCE:
            raise refusal(ErrorCode.REBALANCE_IN_PROGRESS, "group is rebalancing")

    # --- LeaveGroup ---

    def leave(self, group: ClassicGroup, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Remove members immediately, each with its own result."""
        results, left = [], []
        for identity in request.members:
            result = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
            try:
                member_id = identity.member_id
                if not member_id and identity.group_instance_id in group.static_members:
                    member_id = group.static_members[identity.group_instance_id]
                elif member_id not in group.pending_joins:
                    group.check_member(member_id, identity.group_instance_id)
                self.rebalance.remove(group, member_id)
                left.append(member_id)
            except BrokerError as error:
                result.error_code = error.code
            results.append(result)
        if left:
            if group.state in (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE):
                self.rebalance.prepare(group, f"{', '.join(left)} left")
            else:
                self.rebalance.complete_if_all_joined(group)
        return LeaveGroupResponse(members=results)
