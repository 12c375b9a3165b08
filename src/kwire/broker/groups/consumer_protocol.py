"""ConsumerGroupHeartbeat: one request to join, stay, change the subscription and leave.

A heartbeat is processed in four steps; each works on the result of the previous one:

    1. the member: known, at its epoch and not fenced; or a new one, or the new member of an instance
    2. the subscription; a change of it or of the topics raises the group's epoch
    3. the target assignment, computed if its epoch is below the group's
    4. the member's next step towards its target assignment

All records are written as one batch, and only then applied.

Source: KIP-848; org.apache.kafka.coordinator.group.GroupMetadataManager.consumerGroupHeartbeat.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import msgspec

from kwire.broker.context import RequestContext
from kwire.broker.coordinator_log import CoordinatorRecord
from kwire.broker.groups import assignors, records
from kwire.broker.groups.classic_group import ClassicGroup
from kwire.broker.groups.consumer_group import (
    LEAVE_STATIC_EPOCH,
    Assignment,
    ConsumerGroup,
    group_topics,
    is_owned,
    member_of,
    member_topics,
    preferred_assignor,
    static_member,
    target_of,
    to_assignment,
    topics_metadata,
)
from kwire.broker.groups.reconciliation import reconcile
from kwire.broker.groups.store import GroupStore
from kwire.broker.groups.topic_regex import TopicRegex
from kwire.errors import BrokerError
from kwire.identifiers import new_uuid, render_uuid
from kwire.internal_topics.group_members import AssignedPartitions as StoredPartitions
from kwire.internal_topics.group_members import Member, MemberState
from kwire.internal_topics.groups_state import ResolvedRegex
from kwire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kwire.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kwire.messages.consumer_group_heartbeat_response import TopicPartitions as AssignedPartitions
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["ASSIGNORS", "ConsumerProtocol", "Step"]

ASSIGNORS: dict[str, assignors.Assignor] = {
    "uniform": assignors.assign_uniformly,
    "range": assignors.assign_ranges,
}
CLIENT_MADE_MEMBER_ID_VERSION = 1
"""From this version on, members generate their own ids, so a lost response leaves no dead member."""

log = logging.getLogger(__name__)


class Step(msgspec.Struct, kw_only=True):
    """A member's change in progress: the member before and after it, and the records to write.

    replaces: the member id that the member replaces: its own, or the former one of an instance with a new id. moved:
    whether step 4 changed the member.
    """

    before: Member
    member: Member
    replaces: str
    records: list[CoordinatorRecord]
    moved: bool = False


class ConsumerProtocol:
    """Requests of consumer groups.

    downgrade: turns the group into a classic one if only classic members would remain without some, and returns whether
    it did; see migration.
    """

    def __init__(self, store: GroupStore) -> None:
        self.store = store
        self.downgrade: Callable[[ConsumerGroup, set[str]], bool] = lambda group, leaving: False

    def default_assignor(self) -> str:
        """Return the first of group.consumer.assignors, given by name or by Java class."""
        first = self.store.settings.group_consumer_assignors.split(",")[0].strip()
        name = first.rpartition(".")[2].removesuffix("Assignor").lower()
        return name if name in ASSIGNORS else "uniform"

    # --- the request ---

    def check(self, request: ConsumerGroupHeartbeatRequest, version: int) -> None:
        """Check the fields of a request. Raises BrokerError."""
        for name, text in (
            ("GroupId", request.group_id),
            ("InstanceId", request.instance_id),
            ("RackId", request.rack_id),
        ):
            if text is not None and not text.strip():
                raise refusal(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
        epoch = request.member_epoch
        if (epoch != 0 or version >= CLIENT_MADE_MEMBER_ID_VERSION) and not request.member_id.strip():
            raise refusal(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
        if epoch == 0:
            if request.rebalance_timeout_ms == -1:
                raise refusal(ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
            if request.topic_partitions is None or request.topic_partitions:
                raise refusal(ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
            if not request.subscribed_topic_names and not request.subscribed_topic_regex:
                what = "SubscribedTopicNames"
                if version >= CLIENT_MADE_MEMBER_ID_VERSION:
                    what = "Either SubscribedTopicNames or SubscribedTopicRegex"
                raise refusal(ErrorCode.INVALID_REQUEST, f"{what} must be set in first request.")
        elif epoch == LEAVE_STATIC_EPOCH:
            if request.instance_id is None:
                raise refusal(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
        elif epoch < LEAVE_STATIC_EPOCH:
            raise refusal(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
        if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
            raise refusal(
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                f"ServerAssignor {request.server_assignor} is not supported. "
                f"Supported assignors: {', '.join(ASSIGNORS)}.",
            )
        if request.subscribed_topic_regex:
            TopicRegex(request.subscribed_topic_regex)

    def heartbeat(
        self,
        group: ConsumerGroup,
        context: RequestContext,
        request: ConsumerGroupHeartbeatRequest,
        written_before: list[CoordinatorRecord],
        may_see: Callable[[str], bool],
    ) -> ConsumerGroupHeartbeatResponse:
        """Process a heartbeat that does not leave the group.

        written_before: records that create the group, written in the same batch.
        may_see: whether the sender may see a topic that its regular expression matches. Raises BrokerError.
        """
        member_id = request.member_id or render_uuid(new_uuid())
        self.check_size(group, member_id)
        owned = None if request.topic_partitions is None else to_assignment(request.topic_partitions)
        step = self._find_member(group, member_id, request, owned, written_before)
        names = frozenset(request.subscribed_topic_names or ())
        keeps_names = request.subscribed_topic_names is None or names == frozenset(step.member.subscribed_topics)
        step.member = replace(
            step.member,
            instance_id=request.instance_id or step.member.instance_id,
            rack_id=request.rack_id or step.member.rack_id,
            rebalance_timeout_ms=(
                step.member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
            ),
            assignor=request.server_assignor or step.member.assignor,
            subscribed_topics=step.member.subscribed_topics if keeps_names else tuple(sorted(names)),
            subscribed_regex=(
                step.member.subscribed_regex
                if request.subscribed_topic_regex is None
                else request.subscribed_topic_regex or None  # empty: no regex
            ),
            client_id=context.client_id,
            client_host=context.client_host,
            session_timeout_ms=-1,
            classic_protocols=(),
        )
        member = self.update(group, step, owned, may_see)
        self.start_session(group.group_id, member.member_id, self.store.session_timeout_ms(group.group_id))
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self.store.heartbeat_interval_ms(group.group_id),
        )
        subscribes = request.subscribed_topic_names is not None or bool(request.subscribed_topic_regex)
        reports_all = subscribes and request.rebalance_timeout_ms != -1 and owned is not None
        if request.member_epoch == 0 or reports_all or member.assigned != step.before.assigned:
            response.assignment = ConsumerGroupHeartbeatResponse.Assignment(
                topic_partitions=[
                    AssignedPartitions(topic_id=topic_id, partitions=sorted(partitions))
                    for topic_id, partitions in to_assignment(member.assigned).items()
                ]
            )
        return response

    def check_size(self, group: ConsumerGroup, member_id: str) -> None:
        """Check that the group has room for a member. Raises BrokerError: GROUP_MAX_SIZE_REACHED."""
        limit = self.store.settings.group_consumer_max_size
        if len(group.members) >= limit and member_id not in group.members:
            raise refusal(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {limit} members.",
            )

    # --- 1. the member ---

    def _find_member(
        self,
        group: ConsumerGroup,
        member_id: str,
        request: ConsumerGroupHeartbeatRequest,
        owned: Assignment | None,
        written: list[CoordinatorRecord],
    ) -> Step:
        joins = request.member_epoch == 0
        if request.instance_id is None:
            member = group.members.get(member_id) or Member(member_id=member_id, epoch=0) if joins else None
            member = member or member_of(group, member_id)
            check_epoch(member, request.member_epoch, owned)
            return Step(before=member, member=member, replaces=member_id, records=written)
        static = static_member(group, request.instance_id)
        if joins and static is None:
            member = group.members.get(member_id) or Member(member_id=member_id, epoch=0)
            return Step(before=member, member=member, replaces=member_id, records=written)
        if joins and static is not None:
            if static.epoch != LEAVE_STATIC_EPOCH:
                raise refusal(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {request.instance_id} cannot join the group because "
                    f"the instance id is owned by {static.member_id} member.",
                )
            return self.replace_static(group, static, member_id, written)
        static = self.instance(group, request.instance_id, member_id)
        check_epoch(static, request.member_epoch, owned)
        return Step(before=static, member=static, replaces=member_id, records=written)

    def instance(self, group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
        """Return an instance's member by its member id.

        Raises BrokerError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        static = static_member(group, instance_id)
        if static is None:
            raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if static.member_id != member_id:
            raise refusal(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member {static.member_id}.",
            )
        return static

    def replace_static(
        self, group: ConsumerGroup, static: Member, member_id: str, written: list[CoordinatorRecord]
    ) -> Step:
        """Return a new member that takes over the assignment of an instance's old one."""
        new = replace(static, member_id=member_id, epoch=0, previous_epoch=0)
        if static.member_id != member_id:
            written.extend(self.departure(group.group_id, static.member_id))
        written.append(records.member_subscription(group.group_id, new.member_id, new))
        written.append(records.target_assignment(group.group_id, member_id, to_assignment(static.target or ())))
        written.append(records.current_assignment(group.group_id, new.member_id, new))
        self.cancel_timers(group.group_id, static.member_id)
        return Step(before=new, member=new, replaces=static.member_id, records=written)

    # --- 2. subscriptions ---

    def update(
        self, group: ConsumerGroup, step: Step, owned: Assignment | None, may_see: Callable[[str], bool]
    ) -> Member:
        """Run steps 2 to 4 and write the records; return the member. Raises BrokerError; nothing has changed then."""
        member = step.member
        if member != step.before:
            step.records.append(records.member_subscription(group.group_id, member.member_id, member))
        names_changed = member.subscribed_topics != step.before.subscribed_topics
        regex_changed = member.subscribed_regex != step.before.subscribed_regex
        epoch, target_epoch = group.epoch, group.assignment_epoch
        target = target_of(group, member)
        is_checked = group.group_id in self.store.checked and step.before.member_id in group.members
        checks_topics = names_changed or regex_changed or not is_checked
        if not checks_topics and epoch == target_epoch:
            return self._finish(group, step, target_epoch, target, owned)
        after = {m.member_id: m for m in group.members.values() if m.member_id != step.replaces}
        after[member.member_id] = member
        if checks_topics:
            regexes = self._resolve(group, after, step.records, may_see)
            topics = topics_metadata(
                group_topics(after.values(), regexes), self.store.topics, self.store.settings.broker_rack or None
            )
            rises = names_changed or regex_changed or topics != group.topics
            if topics != group.topics:
                step.records.append(records.subscription_metadata(group.group_id, topics))
            if rises:
                epoch += 1
                step.records.append(records.group_epoch(group.group_id, epoch))
        else:
            regexes, topics = group.regexes, group.topics
        if epoch > target_epoch:
            target = self._assign(group, after, member, step.replaces, regexes, epoch, step.records)
            target_epoch = epoch
        return self._finish(group, step, target_epoch, target, owned)

    def _finish(
        self, group: ConsumerGroup, step: Step, target_epoch: int, target: Assignment, owned: Assignment | None
    ) -> Member:
        """Run step 4 and write all records."""
        member = self._reconcile(group, step, target_epoch, target, owned)
        self.store.write(group.group_id, step.records)
        self.store.checked.add(group.group_id)
        if step.moved:
            self.watch_rebalance(group.group_id, member)
        return member

    def _resolve(
        self,
        group: ConsumerGroup,
        after: dict[str, Member],
        written: list[CoordinatorRecord],
        may_see: Callable[[str], bool],
    ) -> dict[str, ResolvedRegex]:
        """Return the topics that match each regular expression; add records for new and changed results."""
        regexes = {}
        for pattern in dict.fromkeys(m.subscribed_regex for m in after.values() if m.subscribed_regex):
            known = group.regexes.get(pattern)
            try:
                compiled = TopicRegex(pattern)
                matching = frozenset(topic.name for topic in self.store.topics if compiled.matches(topic.name))
            except BrokerError:  # too expensive for the topics that exist by now; only new patterns report it
                if known is None:
                    raise
                matching = known.topics
            visible = frozenset(name for name in matching if may_see(name))
            if known is None or known.topics != visible:
                now_ms = self.store.clock.now_ms()
                known = ResolvedRegex(topics=visible, version=0, timestamp_ms=now_ms)  # 0: Kafka resolves it again
                written.append(records.regex(group.group_id, pattern, known))
            regexes[pattern] = known
        written.extend(records.regex(group.group_id, p, None) for p in group.regexes if p not in regexes)
        return regexes

    # --- 3. the target assignment ---

    def _assign(
        self,
        group: ConsumerGroup,
        after: dict[str, Member],
        member: Member,
        replaces: str,
        regexes: dict[str, ResolvedRegex],
        epoch: int,
        written: list[CoordinatorRecord],
    ) -> Assignment:
        """Compute the target assignment of these members; return the one member's part."""
        counts: dict[UUID, int] = {}
        specifications = {}
        for member_id, one in after.items():
            topics = [topic for name in sorted(member_topics(one, regexes)) if (topic := self.store.topics.get(name))]
            counts.update((topic.topic_id, len(topic.partitions)) for topic in topics)
            specifications[member_id] = assignors.MemberToAssign(
                instance_id=one.instance_id,
                topic_ids=tuple(topic.topic_id for topic in topics),
                target=to_assignment(self._target(group, replaces if one is member else member_id) or ()),
            )
        assignor = ASSIGNORS[preferred_assignor(after.values(), self.default_assignor())]
        assignment = assignor(assignors.GroupToAssign(members=specifications, partition_counts=counts))
        for member_id in after:
            target = assignment.get(member_id, {})
            before = self._target(group, member_id)
            if before is None or to_assignment(before) != target:
                written.append(records.target_assignment(group.group_id, member_id, target))
        written.append(records.target_epoch(group.group_id, epoch))
        return assignment.get(member.member_id, {})

    @staticmethod
    def _target(group: ConsumerGroup, member_id: str) -> tuple[StoredPartitions, ...] | None:
        """Return the target assignment of a member id; None without one."""
        member = group.members.get(member_id)
        return None if member is None else member.target

    # --- 4. the next step ---

    def _reconcile(
        self, group: ConsumerGroup, step: Step, target_epoch: int, target: Assignment, owned: Assignment | None
    ) -> Member:
        member = reconcile(step.member, target_epoch, target, functools.partial(is_owned, group), owned)
        step.moved = member is not step.member
        if step.moved:
            step.records.append(records.current_assignment(group.group_id, member.member_id, member))
        return member

    # --- leaving ---

    def leave(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """Process a heartbeat with member epoch -1 or -2. Raises BrokerError."""
        if request.instance_id is None:
            member = member_of(group, request.member_id)
        else:
            member = self.instance(group, request.instance_id, request.member_id)
        if request.member_epoch == LEAVE_STATIC_EPOCH:
            away = replace(member, epoch=LEAVE_STATIC_EPOCH, revoking=())
            self.store.write(group.group_id, [records.current_assignment(group.group_id, away.member_id, away)])
            self.store.timers.cancel(("rebalance", group.group_id, member.member_id))
        else:
            self.fence(group, [member])
        return ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)

    @staticmethod
    def departure(group_id: str, member_id: str) -> list[CoordinatorRecord]:
        """Return a member's tombstones, in an order that can be replayed."""
        return [
            records.current_assignment(group_id, member_id, None),
            records.target_assignment(group_id, member_id, None),
            records.member_subscription(group_id, member_id, None),
        ]

    def fence(self, group: ConsumerGroup, members: list[Member]) -> None:
        """Remove members from the group, and raise its epoch. Raises BrokerError if the log cannot be written."""
        removed = {member.member_id for member in members}
        if self.downgrade(group, removed):
            return
        written = [record for member_id in sorted(removed) for record in self.departure(group.group_id, member_id)]
        after = {m.member_id: m for m in group.members.values() if m.member_id not in removed}
        used = {m.subscribed_regex for m in after.values()}
        kept = {pattern: resolved for pattern, resolved in group.regexes.items() if pattern in used}
        written.extend(records.regex(group.group_id, p, None) for p in group.regexes if p not in kept)
        topics = topics_metadata(
            group_topics(after.values(), kept), self.store.topics, self.store.settings.broker_rack or None
        )
        if topics != group.topics:
            written.append(records.subscription_metadata(group.group_id, topics))
        written.append(records.group_epoch(group.group_id, group.epoch + 1))
        self.store.write(group.group_id, written)
        for member_id in removed:
            self.cancel_timers(group.group_id, member_id)

    # --- timers ---

    def start_session(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """Restart a member's session."""
        self.store.timers.start(
            ("session", group_id, member_id),
            timeout_ms,
            lambda: self.expire(group_id, member_id, "its session expired"),
        )

    def watch_rebalance(self, group_id: str, member: Member) -> None:
        """Start the rebalance timeout of a member that has to revoke partitions.

        Members of the classic protocol have to join again instead; see migration.
        """
        name = ("rebalance", group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS or member.uses_classic_protocol:
            self.store.timers.cancel(name)
            return

        def late() -> None:
            why = f"it did not leave epoch {member.epoch} in time"
            self.expire(group_id, member.member_id, why, epoch=member.epoch)

        self.store.timers.start(name, member.rebalance_timeout_ms, late)

    def expire(self, group_id: str, member_id: str, why: str, epoch: int | None = None) -> None:
        """Remove a member whose timer expired, unless it has left. epoch: only if it is still at this epoch."""
        group = self.store.find(group_id)
        if group is None or isinstance(group, ClassicGroup):
            return
        member = group.members.get(member_id)
        if member is None or epoch not in (None, member.epoch):
            return
        log.info("group %s: member %s is fenced: %s", group_id, member_id, why)
        try:
            self.fence(group, [member])
        except BrokerError as error:
            log.warning("group %s: member %s could not be removed: %s", group_id, member_id, error)
            self.start_session(group_id, member_id, self.store.session_timeout_ms(group_id))

    def cancel_timers(self, group_id: str, member_id: str) -> None:
        """Cancel all timers of a member."""
        for what in ("session", "rebalance", "join", "sync"):
            self.store.timers.cancel((what, group_id, member_id))


def check_epoch(member: Member, epoch: int, owned: Assignment | None) -> None:
    """Check a member's epoch; its last one is valid too, if the response was lost.

    Raises BrokerError: FENCED_MEMBER_EPOCH.
    """
    if epoch == member.epoch:
        return
    behind = epoch < member.epoch
    assigned = to_assignment(member.assigned)
    if (
        behind
        and epoch == member.previous_epoch
        and owned is not None
        and all(partitions <= assigned.get(topic_id, frozenset()) for topic_id, partitions in owned.items())
    ):
        return
    raise refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'smaller' if behind else 'greater'} member epoch ({epoch}) than the one "
        f"known by the group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )
