"""Members of both protocols in one group, and groups that change their protocol while members are active (KIP-848).

A classic group of consumers becomes a consumer group when the first member joins with the consumer protocol. Its other
members continue with JoinGroup, SyncGroup and Heartbeat, which are translated:

    JoinGroup   a heartbeat with the member's subscription and owned partitions; generation = member epoch; no leader
    SyncGroup   the member's assignment
    Heartbeat   REBALANCE_IN_PROGRESS when the member has to join again
    LeaveGroup  leaves

It becomes a classic group again when the last member of the consumer protocol leaves.
group.consumer.migration.policy allows upgrades, downgrades, both or neither.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager (convertToConsumerGroup, convertToClassicGroup,
classicGroupJoinToConsumerGroup and the others), ConsumerGroup.fromClassicGroup, ClassicGroup.fromConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from uuid import UUID

from kwire.broker.context import RequestContext
from kwire.broker.coordinator_log import CoordinatorRecord
from kwire.broker.groups import records
from kwire.broker.groups.classic_group import ClassicGroup, ClassicMember, ClassicState
from kwire.broker.groups.classic_protocol import MEMBER_ID_REQUIRED_VERSION, protocols_of
from kwire.broker.groups.classic_rebalance import ClassicRebalance
from kwire.broker.groups.consumer_group import (
    Assignment,
    ConsumerGroup,
    member_of,
    new_group,
    static_member,
    supports_classic,
    to_assignment,
    to_partitions,
    waits_for_others,
)
from kwire.broker.groups.consumer_protocol import ConsumerProtocol, Step
from kwire.broker.groups.responses import JoinCallback
from kwire.broker.groups.store import GroupStore
from kwire.errors import BrokerError, DecodeError
from kwire.identifiers import new_uuid, render_uuid
from kwire.internal_topics.consumer_protocol import PROTOCOL_TYPE, read_assignment, read_subscription, stored_version
from kwire.internal_topics.group_members import Member, MemberState
from kwire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kwire.messages.consumer_protocol_assignment import TopicPartition as EmbeddedTopicPartition
from kwire.messages.join_group_request import JoinGroupRequest
from kwire.messages.join_group_response import JoinGroupResponse
from kwire.messages.leave_group_request import LeaveGroupRequest
from kwire.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kwire.messages.sync_group_request import SyncGroupRequest
from kwire.messages.sync_group_response import SyncGroupResponse
from kwire.protocol.error_codes import ErrorCode, refusal
from kwire.protocol.record_values import write_prefixed

__all__ = ["Migration"]


class Migration:
    """Upgrades and downgrades of groups, and classic requests to consumer groups."""

    def __init__(self, store: GroupStore, rebalance: ClassicRebalance, consumers: ConsumerProtocol) -> None:
        self.store, self.rebalance, self.consumers = store, rebalance, consumers
        consumers.downgrade = self.downgrade

    def _allows(self, direction: str) -> bool:
        return self.store.settings.group_consumer_migration_policy.strip().lower() in (direction, "bidirectional")

    # --- groups ---

    def upgrade(self, classic: ClassicGroup) -> tuple[ConsumerGroup, list[CoordinatorRecord]]:
        """Return the consumer group that replaces a classic one, and the records to write.

        Raises BrokerError: GROUP_ID_NOT_FOUND if the group cannot be upgraded.
        """
        rejected = refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {classic.group_id} is not a consumer group.")
        too_many = len(classic.members) > self.store.settings.group_consumer_max_size
        if not self._allows("upgrade") or not classic.uses_consumer_protocol or too_many:
            raise rejected
        group = new_group(classic.group_id, epoch=classic.generation_id)
        try:
            for member in classic.members.values():
                self._upgrade_member(group, classic, member)
        except DecodeError as error:
            raise refusal(
                ErrorCode.GROUP_ID_NOT_FOUND, f"{rejected.what} Its members are unreadable: {error}"
            ) from error
        group_id = group.group_id
        members = list(group.members.values())
        written = [records.group_metadata_tombstone(group_id)]
        written += [records.member_subscription(group_id, member.member_id, member) for member in members]
        written.append(records.group_epoch(group_id, group.epoch))
        written += [records.target_assignment(group_id, m.member_id, to_assignment(m.assigned)) for m in members]
        written.append(records.target_epoch(group_id, group.assignment_epoch))
        written += [records.current_assignment(group_id, member.member_id, member) for member in members]
        return group, written

    def _upgrade_member(self, group: ConsumerGroup, classic: ClassicGroup, member: ClassicMember) -> None:
        subscription = read_subscription(member.metadata(classic.protocol_name)) if classic.protocol_name else None
        assigned = to_partitions(
            self._by_id((t.topic, t.partitions) for t in read_assignment(member.assignment).assigned_partitions)
        )
        group.members[member.member_id] = Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None if subscription else None,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            subscribed_topics=tuple(sorted(set(subscription.topics))) if subscription else (),
            epoch=group.epoch,
            previous_epoch=group.epoch,
            assigned=assigned,
            target=assigned,
            session_timeout_ms=member.session_timeout_ms,
            classic_protocols=member.protocols,
        )

    def upgraded(self, classic: ClassicGroup) -> None:
        """Finish a written upgrade: waiting members join again, and sessions continue."""
        for what in ("join", "sync"):
            self.store.timers.cancel((what, classic.group_id))
        again = int(ErrorCode.REBALANCE_IN_PROGRESS)
        for member in classic.members.values():
            classic.complete_join(member, JoinGroupResponse(member_id=member.member_id, error_code=again))
            classic.complete_sync(member, SyncGroupResponse(error_code=again))
            self.consumers.start_session(classic.group_id, member.member_id, member.session_timeout_ms)

    def downgrade(self, group: ConsumerGroup, leaving: set[str]) -> bool:
        """Turn a group into a classic one if only classic members remain without these members.

        Returns whether it did. Raises BrokerError if the log cannot be written.
        """
        rest = [member for member in group.members.values() if member.member_id not in leaving]
        if not rest or not all(member.uses_classic_protocol for member in rest):
            return False
        if not self._allows("downgrade") or len(rest) > self.store.settings.group_max_size:
            return False
        group_id, member_ids = group.group_id, list(group.members)
        classic = ClassicGroup(
            group_id=group_id,
            state=ClassicState.STABLE,
            state_since_ms=self.store.clock.now_ms(),
            generation_id=group.epoch,
            protocol_type=PROTOCOL_TYPE,
        )
        for one in rest:
            classic.add(self._downgraded_member(one))
        classic.protocol_name = classic.select_protocol()
        classic.subscribed_topics = classic.find_subscribed_topics()
        for down in classic.members.values():
            target = to_assignment(group.members[down.member_id].target or ())
            down.assignment = self._embed(target, down.metadata(classic.protocol_name))
        written = [records.current_assignment(group_id, member_id, None) for member_id in member_ids]
        written += [records.target_assignment(group_id, member_id, None) for member_id in member_ids]
        written.append(records.target_epoch(group_id, None))
        written += [records.member_subscription(group_id, member_id, None) for member_id in member_ids]
        written += [records.regex(group_id, pattern, None) for pattern in group.regexes]
        written.append(records.subscription_metadata(group_id, None))
        written.append(records.group_epoch(group_id, None))
        assignments = {down.member_id: down.assignment for down in classic.members.values()}
        written.append(records.group_metadata(classic, assignments))
        self.store.write(group_id, written)
        for member_id in member_ids:
            self.consumers.cancel_timers(group_id, member_id)
        self.store.classic[group_id] = classic
        for down in classic.members.values():
            self.rebalance.restart_session(classic, down)
        self.rebalance.prepare(classic, "the last member of the consumer protocol left")
        return True

    @staticmethod
    def _downgraded_member(member: Member) -> ClassicMember:
        return ClassicMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.session_timeout_ms,
            protocol_type=PROTOCOL_TYPE,
            protocols=member.classic_protocols,
        )

    def _by_id(self, topics: Iterable[tuple[str, list[int]]]) -> Assignment:
        """Convert partitions by topic name to partitions by topic id, without deleted topics."""
        assignment: dict[UUID, frozenset[int]] = {}
        for name, partitions in topics:
            topic = self.store.topics.get(name)
            if topic is not None and partitions:
                assignment[topic.topic_id] = assignment.get(topic.topic_id, frozenset()) | frozenset(partitions)
        return assignment

    def _embed(self, assignment: Assignment, metadata: bytes) -> bytes:
        """Encode an assignment in the version of the member's metadata. Raises BrokerError if that is unreadable."""
        topics = [
            EmbeddedTopicPartition(topic=topic.name, partitions=sorted(partitions))
            for topic_id, partitions in assignment.items()
            if (topic := self.store.topics.with_id(topic_id)) is not None
        ]
        try:
            version = min(stored_version(metadata), ConsumerProtocolAssignment.VALID_VERSIONS.highest)
        except DecodeError as error:
            raise refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"member metadata is unreadable: {error}") from error
        return write_prefixed(ConsumerProtocolAssignment(assigned_partitions=topics), version)

    # --- classic requests to a consumer group ---

    def join(
        self,
        group: ConsumerGroup,
        context: RequestContext,
        request: JoinGroupRequest,
        respond: JoinCallback,
        may_see: Callable[[str], bool],
    ) -> None:
        """Handle JoinGroup of a classic member. Raises BrokerError."""
        member_id = request.member_id or render_uuid(new_uuid())
        self.consumers.check_size(group, member_id)
        protocols = protocols_of(request)
        if not supports_classic(group, request.protocol_type, [name for name, _ in protocols]):
            raise refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")
        is_new, instance_id = not request.member_id, request.group_instance_id
        if is_new and instance_id is None and context.api_version >= MEMBER_ID_REQUIRED_VERSION:
            respond(JoinGroupResponse(member_id=member_id, error_code=int(ErrorCode.MEMBER_ID_REQUIRED)))
            return
        try:
            subscription = read_subscription(protocols[0][1])
        except DecodeError as error:
            raise refusal(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"member subscription is unreadable: {error}"
            ) from error
        step = self._find_member(group, member_id, instance_id, is_new)
        step.member = replace(
            step.member,
            instance_id=instance_id or step.member.instance_id,
            rack_id=subscription.rack_id or step.member.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            subscribed_topics=tuple(sorted(set(subscription.topics))),
            subscribed_regex=None,
            client_id=context.client_id,
            client_host=context.client_host,
            session_timeout_ms=request.session_timeout_ms,
            classic_protocols=protocols,
        )
        owned = self._by_id((topic.topic, topic.partitions) for topic in subscription.owned_partitions)
        member = self.consumers.update(group, step, owned, may_see)
        self.store.timers.cancel(("join", group.group_id, member_id))
        self.consumers.start_session(group.group_id, member_id, request.session_timeout_ms)
        self.store.timers.start(
            ("sync", group.group_id, member_id),
            request.rebalance_timeout_ms,
            lambda: self.consumers.expire(group.group_id, member_id, "it did not send SyncGroup in time"),
        )
        respond(
            JoinGroupResponse(
                member_id=member.member_id,
                generation_id=member.epoch,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=protocols[0][0],
            )
        )

    def _find_member(self, group: ConsumerGroup, member_id: str, instance_id: str | None, is_new: bool) -> Step:
        known = group.members.get(member_id) or Member(member_id=member_id, epoch=0)
        if instance_id is not None:
            static = static_member(group, instance_id)
            if static is not None and is_new:
                return self.consumers.replace_static(group, static, member_id, [])
            if not is_new:
                known = self.consumers.instance(group, instance_id, member_id)
        return Step(before=known, member=known, replaces=member_id, records=[])

    def _classic_member(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
        """Return a classic member.

        Raises BrokerError: UNKNOWN_MEMBER_ID, also for members of the consumer protocol; FENCED_INSTANCE_ID.
        """
        if instance_id is None:
            member = member_of(group, member_id)
        else:
            member = self.consumers.instance(group, instance_id, member_id)
        if not member.uses_classic_protocol:
            raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
        return member

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
        """Handle SyncGroup of a classic member. Raises BrokerError."""
        member = self._classic_member(group, request.member_id, request.group_instance_id)
        check_generation(member, request.generation_id)
        name, metadata = member.classic_protocols[0]
        if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, name):
            raise refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"protocol of the member is '{name}'")
        if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._wait_for_join(group, member)
            raise refusal(ErrorCode.REBALANCE_IN_PROGRESS, f"group '{group.group_id}' is at epoch {group.epoch}")
        self.store.timers.cancel(("sync", group.group_id, member.member_id))
        self.consumers.start_session(group.group_id, member.member_id, member.session_timeout_ms)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=self._embed(to_assignment(member.assigned), metadata),
        )

    def heartbeat(self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int) -> None:
        """Handle Heartbeat of a classic member. Raises BrokerError."""
        member = self._classic_member(group, member_id, instance_id)
        check_generation(member, generation_id)
        self.consumers.start_session(group.group_id, member_id, member.session_timeout_ms)
        if (
            member.epoch < group.epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not waits_for_others(group, member))
        ):
            self._wait_for_join(group, member)
            raise refusal(ErrorCode.REBALANCE_IN_PROGRESS, "member has to join again")

    def _wait_for_join(self, group: ConsumerGroup, member: Member) -> None:
        self.store.timers.start_if_absent(
            ("join", group.group_id, member.member_id),
            member.rebalance_timeout_ms,
            lambda: self.consumers.expire(group.group_id, member.member_id, "it did not join again in time"),
        )

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Handle LeaveGroup of members of either protocol, each with its own result.

        Administrators remove static members by their instance id alone (KIP-345); results name members as requested.
        """
        results, left = [], {}
        for identity in request.members:
            member_id, instance_id = identity.member_id, identity.group_instance_id
            result = MemberResponse(member_id=member_id, group_instance_id=instance_id)
            try:
                if instance_id is None:
                    member = member_of(group, member_id)
                else:
                    static = static_member(group, instance_id)
                    known_id = static.member_id if static is not None and not member_id else member_id
                    member = self.consumers.instance(group, instance_id, known_id)
                left[member.member_id] = member
            except BrokerError as error:
                result.error_code = error.code
            results.append(result)
        if left:
            self.consumers.fence(group, list(left.values()))
        return LeaveGroupResponse(members=results)


def check_generation(member: Member, generation_id: int) -> None:
    """Check that a generation is the member's epoch. Raises BrokerError: ILLEGAL_GENERATION."""
    if member.epoch != generation_id:
        raise refusal(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation_id} is not equal to the member epoch {member.epoch} of member "
            f"{member.member_id}.",
        )
