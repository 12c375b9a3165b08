"""Share groups: heartbeats of members, and the partitions whose delivery state the group needs.

Members get partitions only after the share coordinator has initialized their state:

    heartbeat 1   joins the group; no partition is assigned; then the partitions of its topics are initialized
    heartbeat 2   the group's epoch rises, and partitions are assigned

Nothing has to be revoked, because members of a share group may read the same partition. A member is at the epoch of the
target assignment as soon as it has sent a heartbeat.

Source: KIP-932; org.apache.kafka.coordinator.group.GroupMetadataManager.shareGroupHeartbeat, GroupCoordinatorService
4.4.0.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from kwire.broker.coordinator_log import CoordinatorRecord
from kwire.broker.groups import share_records as records
from kwire.broker.groups.assignors import MemberToAssign, assign_simply
from kwire.broker.groups.consumer_group import Assignment, group_topics, member_of, to_assignment, to_partitions
from kwire.broker.groups.share_records import StatePartitions
from kwire.broker.groups.store import GroupStore
from kwire.broker.shares.coordinator import ShareKey
from kwire.errors import BrokerError
from kwire.internal_topics.group_members import Member, MemberState
from kwire.internal_topics.groups_state import SHARE, Group
from kwire.internal_topics.share_state import UNSET
from kwire.messages import ShareGroupHeartbeatResponse
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.context import RequestContext
    from kwire.broker.shares.coordinator import ShareCoordinator
    from kwire.broker.topics import Topic
    from kwire.messages import ShareGroupHeartbeatRequest

__all__ = ["ASSIGNOR", "ShareProtocol", "state_partitions"]

ASSIGNOR = "simple"
LEAVE_EPOCH = -1
FIRST_EPOCH = 1
"""The epoch of a group, and of its target assignment, without a record."""

log = logging.getLogger(__name__)


class ShareProtocol:
    """Requests of share groups. states: the share coordinator."""

    def __init__(self, store: GroupStore, states: ShareCoordinator) -> None:
        self.store, self.states = store, states

    # --- heartbeats

    def heartbeat(self, context: RequestContext, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        """Handle ShareGroupHeartbeat. Raises BrokerError."""
        check(request)
        if request.member_epoch == LEAVE_EPOCH:
            group = self.store.share_group(request.group_id)
            self.fence(group, member_of(group, request.member_id))
            return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=LEAVE_EPOCH)
        joins = request.member_epoch == 0
        if not joins and not self.store.has(request.group_id):
            raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {request.group_id} not found.")
        group = self._group(request.group_id) if joins else self.store.share_group(request.group_id)
        limit = self.store.settings.group_share_max_size
        if len(group.members) >= limit and request.member_id not in group.members:
            what = f"The share group has reached its maximum capacity of {limit} members."
            raise refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, what)
        before = group.members.get(request.member_id)
        if before is None:
            before = Member(member_id=request.member_id, epoch=0) if joins else member_of(group, request.member_id)
        check_epoch(before, request.member_epoch)
        names = request.subscribed_topic_names
        member = replace(
            before,
            rack_id=before.rack_id if request.rack_id is None else request.rack_id,
            subscribed_topics=before.subscribed_topics if names is None else tuple(sorted(set(names))),
            client_id=context.client_id,
            client_host=context.client_host,
        )
        written: list[CoordinatorRecord] = []
        member, epoch = self._update(group, before, member, written)
        added = self._uninitialized(group, self._after(group, member))
        if added:
            written.append(self.initializing(group, added))
        known = {topic for part in group.share_partitions.values() for each in part if (topic := each.topic_id)}
        self.store.write(group.group_id, written)
        self.store.checked.add(group.group_id)
        self.start_session(group.group_id, member.member_id)
        self._initialize(group.group_id, epoch, added, known)
        response = ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self.store.share_time(group.group_id, "share.heartbeat.interval.ms"),
        )
        if joins or names is not None or member.assigned != before.assigned:
            cls = ShareGroupHeartbeatResponse
            response.assignment = cls.Assignment(
                topic_partitions=[
                    cls.TopicPartitions(topic_id=each.topic_id, partitions=list(each.partitions))
                    for each in member.assigned
                    if each.topic_id is not None
                ]
            )
        return response

    def _group(self, group_id: str) -> Group:
        """Return a share group, a new one if there is no group of this id. Raises BrokerError."""
        if self.store.has(group_id):
            return self.store.share_group(group_id)
        return Group(group_id=group_id, partition=-1, kind=SHARE, epoch=FIRST_EPOCH, assignment_epoch=FIRST_EPOCH)

    @staticmethod
    def _after(group: Group, member: Member) -> dict[str, Member]:
        return {**group.members, member.member_id: member}

    def _update(
        self, group: Group, before: Member, member: Member, written: list[CoordinatorRecord]
    ) -> tuple[Member, int]:
        """Add the records of a heartbeat; return the member after it, and the group's epoch."""
        rises, epoch = False, max(FIRST_EPOCH, group.epoch)
        if member != before or member.member_id not in group.members:
            written.append(records.member_subscription(group.group_id, member.member_id, member))
            rises = member.subscribed_topics != before.subscribed_topics
        after = self._after(group, member)
        if max(FIRST_EPOCH, group.assignment_epoch) >= epoch:
            rises = rises or self._waits_for_assignment(group)
        if rises or group.group_id not in self.store.checked:
            metadata = self._metadata_hash(group_topics(after.values(), {}))
            rises = rises or metadata != group.metadata_hash
            if rises:
                epoch += 1
                written.append(records.group_epoch(group.group_id, epoch, metadata))
        target_epoch = max(FIRST_EPOCH, group.assignment_epoch)
        target = to_assignment(before.target or ())
        if target_epoch < epoch and self._may_assign(group):
            target, target_epoch = self._assign(group, after, member, epoch, written), epoch
        if rises or not member.is_at(target_epoch):
            subscribed = {topic.topic_id for topic in self._topics(member.subscribed_topics)}
            assigned = to_partitions({topic: each for topic, each in target.items() if topic in subscribed})
            moved = replace(member, assigned=assigned)
            if member.epoch != target_epoch:
                moved = replace(moved, epoch=target_epoch, previous_epoch=member.epoch, state=MemberState.STABLE)
            if moved != member:
                written.append(records.current_assignment(group.group_id, member.member_id, moved))
            member = moved
        return member, epoch

    def _may_assign(self, group: Group) -> bool:
        """Return whether the interval between target assignments is over."""
        interval_ms = self.store.share_time(group.group_id, "share.assignment.interval.ms")
        since_ms = self.store.clock.now_ms() - group.assignment_timestamp
        return group.assignment_timestamp == 0 or interval_ms == 0 or since_ms >= interval_ms

    def _assign(
        self, group: Group, after: Mapping[str, Member], member: Member, epoch: int, written: list[CoordinatorRecord]
    ) -> Assignment:
        """Compute the target assignment; return the member's part of it."""
        to_assign = {
            member_id: MemberToAssign(
                instance_id=None,
                topic_ids=tuple(topic.topic_id for topic in self._topics(one.subscribed_topics)),
                target=to_assignment(one.target or ()),
            )
            for member_id, one in after.items()
        }
        assignment = assign_simply(to_assign, state_partitions(group).initialized)
        for member_id, one in after.items():
            target = assignment[member_id]
            if one.target is None or to_assignment(one.target) != target:
                written.append(records.target_assignment(group.group_id, member_id, target))
        written.append(records.target_epoch(group.group_id, epoch, self.store.clock.now_ms()))
        return assignment[member.member_id]

    def _topics(self, names: Iterable[str]) -> list[Topic]:
        """Return the existing topics of these names, in order of the names."""
        found = (self.store.topics.get(name) for name in sorted(names))
        return [topic for topic in found if topic is not None]

    def _metadata_hash(self, names: Iterable[str]) -> int:
        """Return a hash of what existing topics consist of, 0 without topics. Its value is not Kafka's."""
        topics = self._topics(names)
        if not topics:
            return 0
        content = "".join(f"{topic.name}:{topic.topic_id}:{len(topic.partitions)};" for topic in topics)
        digest = hashlib.blake2b(content.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    def _waits_for_assignment(self, group: Group) -> bool:
        """Return whether partitions with a state are not assigned as they could be."""
        if not group.members:
            return False
        assigned: dict[UUID, set[int]] = {}
        for member in group.members.values():
            for topic, partitions in to_assignment(member.target or ()).items():
                assigned.setdefault(topic, set()).update(partitions)
        ready, names = state_partitions(group), group_topics(group.members.values(), {})
        return any(
            ready.names.get(topic) in names and frozenset(assigned.get(topic, ())) != partitions
            for topic, partitions in ready.initialized.items()
        )

    # --- leaving

    def fence(self, group: Group, member: Member) -> None:
        """Remove a member. Raises BrokerError if that cannot be written."""
        group_id, member_id = group.group_id, member.member_id
        after = [each for each in group.members.values() if each.member_id != member_id]
        epoch = group.epoch + 1
        written = [
            records.current_assignment(group_id, member_id, None),
            records.target_assignment(group_id, member_id, None),
            records.member_subscription(group_id, member_id, None),
            records.group_epoch(group_id, epoch, self._metadata_hash(group_topics(after, {}))),
        ]
        if not after:
            written.append(records.target_epoch(group_id, epoch))
        self.store.write(group_id, written)
        self.store.timers.cancel(("session", group_id, member_id))

    def start_session(self, group_id: str, member_id: str) -> None:
        """Restart a member's session."""

        def expire() -> None:
            group = self.store.state.groups.get(group_id)
            member = None if group is None or group.kind != SHARE else group.members.get(member_id)
            if group is None or member is None:
                return
            log.info("share group %s: member %s is fenced: its session expired", group_id, member_id)
            try:
                self.fence(group, member)
            except BrokerError as error:
                log.warning("share group %s: member %s could not be removed: %s", group_id, member_id, error)
                self.start_session(group_id, member_id)

        timeout_ms = self.store.share_time(group_id, "share.session.timeout.ms")
        self.store.timers.start(("session", group_id, member_id), timeout_ms, expire)

    # --- partitions with a state

    def _uninitialized(self, group: Group, after: Mapping[str, Member]) -> dict[UUID, frozenset[int]]:
        """Return the partitions of subscribed topics that have no state."""
        ready = state_partitions(group).initialized
        return {
            topic.topic_id: missing
            for topic in self._topics(group_topics(after.values(), {}))
            if (missing := frozenset(topic.partitions) - ready.get(topic.topic_id, frozenset()))
        }

    def _initialize(
        self, group_id: str, epoch: int, added: Mapping[UUID, frozenset[int]], known: Iterable[UUID]
    ) -> None:
        """Initialize the state of partitions; new ones of topics that the group knows begin at offset 0."""
        starts = {
            (topic, index): 0 if topic in known else UNSET for topic, indexes in added.items() for index in indexes
        }
        errors = self.initialize(group_id, epoch, starts)
        for each, error in errors.items():
            log.warning("share group %s: the state of %s was not initialized: %s", group_id, each, error)

    def initialize(
        self, group_id: str, epoch: int, starts: Mapping[tuple[UUID, int], int]
    ) -> dict[tuple[UUID, int], BrokerError]:
        """Initialize the state of partitions with their start offsets; return the errors.

        The partitions must be recorded as initializing. As in Kafka, an error of one lets none become initialized.
        """
        errors: dict[tuple[UUID, int], BrokerError] = {}
        if not starts:
            return errors
        for (topic, index), start_offset in starts.items():
            try:
                self.states.initialize(ShareKey(group_id, topic, index), epoch, start_offset)
            except BrokerError as error:
                errors[topic, index] = error
        group = self.store.share_group(group_id)
        now = state_partitions(group)
        done: dict[UUID, frozenset[int]] = {}
        for topic, index in starts:
            done[topic] = done.get(topic, frozenset()) | {index}
        left = {
            topic: rest for topic, each in now.initializing.items() if (rest := each - done.get(topic, frozenset()))
        }
        ready = now.initialized if errors else union(now.initialized, done)
        partitions = StatePartitions(
            initializing=left, initialized=ready, deleting=now.deleting, names=self._names(now, done)
        )
        self.store.write(group_id, [records.state_partitions(group_id, partitions)])
        return errors

    def initializing(self, group: Group, added: Mapping[UUID, frozenset[int]]) -> CoordinatorRecord:
        """Record partitions whose state is about to be initialized."""
        partitions = initializing(group, added)
        names = self._names(partitions, added)
        return records.state_partitions(
            group.group_id,
            StatePartitions(
                initializing=partitions.initializing,
                initialized=partitions.initialized,
                deleting=partitions.deleting,
                names=names,
            ),
        )

    def _names(self, partitions: StatePartitions, added: Iterable[UUID]) -> dict[UUID, str]:
        names = dict(partitions.names)
        for topic_id in (*added, *names):
            topic = self.store.topics.with_id(topic_id)
            if topic is not None:
                names[topic_id] = topic.name
        return names

    def alter_offsets(
        self, group_id: str, starts: Mapping[tuple[UUID, int], int]
    ) -> dict[tuple[UUID, int], BrokerError]:
        """Let a group without members continue at other offsets; return the errors. Raises BrokerError."""
        group = self._group(group_id)
        if group.members:
            raise refusal(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
        added: dict[UUID, frozenset[int]] = {}
        for topic, index in starts:
            added[topic] = added.get(topic, frozenset()) | {index}
        if added:
            self.store.write(group_id, [self.initializing(group, added)])
        return self.initialize(group_id, max(FIRST_EPOCH, group.epoch), starts)

    def delete_offsets(self, group_id: str, topics: Iterable[UUID]) -> dict[UUID, BrokerError | None]:
        """Delete the state of topics of a group without members; return the errors by topic. Raises BrokerError."""
        group = self.store.share_group(group_id)
        if group.members:
            raise refusal(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
        now, results = state_partitions(group), dict[UUID, BrokerError | None]()
        chosen: dict[UUID, frozenset[int]] = {}
        for topic in topics:
            if topic in now.initialized:
                chosen[topic] = now.initialized[topic]
            elif topic in now.deleting:
                chosen[topic] = self._all_partitions(topic)
            else:
                what = "There is no offset information to delete."
                results[topic] = refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
        left = {topic: each for topic, each in now.initialized.items() if topic not in chosen}
        if group.share_partitions:
            self._write_partitions(group_id, now, initialized=left, deleting=now.deleting | chosen.keys())
        for topic, indexes in chosen.items():
            results[topic] = None
            for index in indexes:
                try:
                    self.states.delete(ShareKey(group_id, topic, index))
                except BrokerError as error:
                    results[topic] = error
        gone = [topic for topic in chosen if results[topic] is None]
        if gone:
            deleting = (now.deleting | chosen.keys()) - frozenset(gone)
            self._write_partitions(group_id, now, initialized=left, deleting=deleting)
        return results

    def _write_partitions(
        self,
        group_id: str,
        now: StatePartitions,
        *,
        initialized: Mapping[UUID, frozenset[int]],
        deleting: frozenset[UUID],
    ) -> None:
        partitions = StatePartitions(
            initializing=now.initializing,
            initialized=initialized,
            deleting=deleting,
            names=self._names(now, deleting),
        )
        self.store.write(group_id, [records.state_partitions(group_id, partitions)])

    def delete(self, group_id: str) -> None:
        """Delete a group without members, with the state of its partitions. Raises BrokerError."""
        group = self.store.share_group(group_id)
        if group.members:
            raise refusal(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
        now = state_partitions(group)
        whole = {topic_id: self._all_partitions(topic_id) for topic_id in now.deleting}
        partitions = union(union(now.initialized, now.initializing), whole)
        if partitions:
            deleting = StatePartitions(
                initializing={}, initialized={}, deleting=frozenset(partitions), names=self._names(now, partitions)
            )
            self.store.write(group_id, [records.state_partitions(group_id, deleting)])
        for topic_id, indexes in partitions.items():
            for index in indexes:
                self.states.delete(ShareKey(group_id, topic_id, index))
        self.store.write(
            group_id,
            [
                records.target_epoch(group_id, None),
                records.state_partitions(group_id, None),
                records.group_epoch(group_id, None),
            ],
        )

    def _all_partitions(self, topic_id: UUID) -> frozenset[int]:
        """Return the partitions of a topic, none of one that does not exist."""
        topic = self.store.topics.with_id(topic_id)
        return frozenset() if topic is None else frozenset(topic.partitions)

    def topic_deleted(self, topic_id: UUID) -> None:
        """Forget the state of a deleted topic's partitions. Raises BrokerError."""
        for group in self.store.share_groups():
            now = state_partitions(group)
            if topic_id in now.initializing or topic_id in now.initialized or topic_id in now.deleting:
                partitions = StatePartitions(
                    initializing={topic: each for topic, each in now.initializing.items() if topic != topic_id},
                    initialized={topic: each for topic, each in now.initialized.items() if topic != topic_id},
                    deleting=now.deleting - {topic_id},
                    names=now.names,
                )
                self.store.write(group.group_id, [records.state_partitions(group.group_id, partitions)])
        self.states.topics_deleted([topic_id])


def state_partitions(group: Group) -> StatePartitions:
    """Return which partitions of a share group have a state."""
    parts = {name: to_assignment(group.share_partitions.get(name, ())) for name in ("initializing", "initialized")}
    deleting = frozenset(each.topic_id for each in group.share_partitions.get("deleting", ()) if each.topic_id)
    return StatePartitions(
        initializing=parts["initializing"],
        initialized=parts["initialized"],
        deleting=deleting,
        names=group.topic_names,
    )


def initializing(group: Group, added: Mapping[UUID, frozenset[int]]) -> StatePartitions:
    """Return the partitions of a group with some more that are being initialized."""
    now = state_partitions(group)
    together = union(now.initializing, added)
    return StatePartitions(
        initializing=together,
        initialized=now.initialized,
        deleting=now.deleting - together.keys(),
        names=now.names,
    )


def union(one: Mapping[UUID, frozenset[int]], other: Mapping[UUID, frozenset[int]]) -> dict[UUID, frozenset[int]]:
    """Return all partitions of both."""
    return {topic: one.get(topic, frozenset()) | other.get(topic, frozenset()) for topic in (*one, *other)}


def check(request: ShareGroupHeartbeatRequest) -> None:
    """Check the fields of a heartbeat. Raises BrokerError."""
    for name, text in (("MemberId", request.member_id), ("GroupId", request.group_id), ("RackId", request.rack_id)):
        if text is not None and not text.strip():
            raise refusal(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        raise refusal(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        raise refusal(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def check_epoch(member: Member, epoch: int) -> None:
    """Check the epoch of a member's heartbeat; its previous one is valid too. Raises BrokerError."""
    if epoch in (0, member.epoch, member.previous_epoch):
        return
    which, detail = "greater", ")"
    if epoch < member.epoch:
        which, detail = "smaller", f"), and it does not match the previous member epoch ({member.previous_epoch})"
    raise refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a {which} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}{detail}. The member must abandon all its partitions and rejoin.",
    )
