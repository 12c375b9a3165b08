"""Groups and their committed offsets, folded from `__consumer_offsets`.

A group is of one of four kinds. Each record changes one part:

    type     kind        record
    0, 1     any         the committed offset of a (group, topic, partition)
    2        classic     the whole group: generation, protocol, leader, members with subscription and assignment
    3 - 8    consumer    group epoch, topics, member, epoch and members of the target assignment, current assignment
    16       consumer    the topics that match a regular expression
    10 - 15  share       member, group epoch, epoch and members of the target assignment, current one, share state
    17 - 23  streams     group epoch, member, epoch and members of the target assignment, current tasks, topology

Offsets committed in a transaction become valid with its COMMIT marker and are dropped with ABORT. A plain commit that
follows them is kept. A group without members, group record and offsets is removed.
Source: GroupCoordinatorShard.replay, GroupMetadataManager, OffsetMetadataManager of 3.9.1 and 4.x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

import msgspec

from kwire.identifiers import TopicPartition
from kwire.internal_topics.group_members import AssignedPartitions, Member, changed_member, classic_member
from kwire.internal_topics.typed_record import Problems, TypedRecord

if TYPE_CHECKING:
    from kwire import messages as m
    from kwire.messages.base import Message

    EpochValue = m.ConsumerGroupMetadataValue | m.ShareGroupMetadataValue | m.StreamsGroupMetadataValue
    AssignmentEpochValue = (
        m.ConsumerGroupTargetAssignmentMetadataValue
        | m.ShareGroupTargetAssignmentMetadataValue
        | m.StreamsGroupTargetAssignmentMetadataValue
    )

__all__ = ["CONSUMER", "SHARE", "CommittedOffset", "Group", "GroupsState", "ResolvedRegex", "TopicMetadata", "group_of"]


class MemberKey(Protocol):
    """The key of a record about a member."""

    member_id: str


CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"


class CommittedOffset(msgspec.Struct, frozen=True, kw_only=True):
    """The committed offset of a group in one partition.

    offset: of the next record that the group reads. leader_epoch: -1 if unknown. commit_timestamp, expire_timestamp:
    ms, -1 if the record has none. topic_id: zero if the record has none. record_offset, timestamp: of the record.
    producer_id: of the transaction it belongs to, -1 without.
    """

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: UUID
    record_offset: int
    timestamp: int
    producer_id: int


class TopicMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """A topic that a consumer group reads, as its coordinator last saw it. rack: of the replicas, None without one."""

    topic_id: UUID
    name: str
    partition_count: int
    rack: str | None = None


class ResolvedRegex(msgspec.Struct, frozen=True, kw_only=True):
    """The topics that match a regular expression. version: of the metadata that was searched, at timestamp_ms."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


@dataclass(slots=True, kw_only=True)
class Group:
    """A group as its coordinator would know it.

    kind: classic, consumer, share or streams. partition: of `__consumer_offsets`. epoch: the generation of a classic
    group, the group epoch of others; -1 where there are offsets alone. protocol: the assignor of a classic group.
    state_timestamp: when a classic group's state last changed, ms, -1 unknown. assignment_epoch: of the target.
    offsets, pending_offsets: by (topic, partition); pending ones by (producer_id, topic, partition), in open
    transactions. regexes: by regular expression. topics: of a consumer group, by name. topic_names: by the ids in the
    group's records.
    share_partitions: initializing, initialized or deleting -> partitions. topology: of a streams group. metadata_hash,
    assignment_timestamp: of the topics of a share group, and of its target assignment, ms, 0 for none.
    last_offset, last_timestamp: of the last record about it.
    """

    group_id: str
    partition: int
    kind: str = CLASSIC
    epoch: int = -1
    protocol_type: str = ""
    protocol: str | None = None
    leader: str | None = None
    state_timestamp: int = -1
    assignment_epoch: int = -1
    members: dict[str, Member] = field(default_factory=dict)
    offsets: dict[tuple[str, int], CommittedOffset] = field(default_factory=dict)
    pending_offsets: dict[tuple[int, str, int], CommittedOffset] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    topic_names: dict[UUID, str] = field(default_factory=dict)
    share_partitions: dict[str, tuple[AssignedPartitions, ...]] = field(default_factory=dict)
    topology: m.StreamsGroupTopologyValue | None = None
    metadata_hash: int = 0
    assignment_timestamp: int = 0
    last_offset: int = -1
    last_timestamp: int = -1

    @property
    def state(self) -> str:
        """Empty, Assigning, Reconciling or Stable, as for a coordinator that loads the group."""
        if not self.members:
            return "Empty"
        if self.kind in (CONSUMER, STREAMS):
            if self.epoch > self.assignment_epoch:
                return "Assigning"
            if any(not member.is_at(self.assignment_epoch) for member in self.members.values()):
                return "Reconciling"
        return "Stable"

    @property
    def exists(self) -> bool:
        """Whether anything of the group exists."""
        numbered = self.epoch >= 0 or self.assignment_epoch >= 0
        parts = (self.members, self.offsets, self.pending_offsets, self.regexes, self.topic_names)
        return numbered or any(parts) or bool(self.share_partitions) or self.topology is not None

    def clear(self) -> None:
        """Apply the tombstone of the group's own record; committed offsets have their own records and are kept."""
        self.kind, self.epoch, self.assignment_epoch, self.state_timestamp = CLASSIC, -1, -1, -1
        self.protocol_type, self.protocol, self.leader, self.topology = "", None, None, None
        self.members, self.regexes, self.share_partitions = {}, {}, {}
        self.metadata_hash = self.assignment_timestamp = 0
        self.topics, self.topic_names = {}, {}


@dataclass(slots=True, kw_only=True)
class GroupsState:
    """All groups by name, and the records that could not be applied."""

    groups: dict[str, Group] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    _open: dict[tuple[int, int], set[str]] = field(default_factory=dict)
    """(partition, producer id) of an open transaction -> groups with offsets in it."""

    def apply(self, record: TypedRecord) -> None:
        """Apply one usable record."""
        if record.is_control:
            if record.kind in ("COMMIT", "ABORT"):
                self.end_transaction(record.partition, record.producer_id, commit=record.kind == "COMMIT")
            return
        name = group_of(record)
        if name is None:
            return
        group = self.groups.get(name)
        if group is None:
            if record.value is None:
                return  # the tombstone of an unknown group
            group = self.groups[name] = Group(group_id=name, partition=record.partition)
        group.last_offset, group.last_timestamp = record.offset, record.timestamp
        if record.is_transactional and record.value is not None:
            self._open.setdefault((record.partition, record.producer_id), set()).add(name)
        CHANGES[record.kind](group, record.key, record.value, record)
        # compaction leaves a group's records in any order, so only a tombstone can have removed the last of it
        if record.value is None and not group.exists:
            del self.groups[name]

    def forget(self, partition: int, groups: Iterable[str]) -> None:
        """Forget a partition of `__consumer_offsets`, with these groups that it holds."""
        for name in groups:
            self.groups.pop(name, None)
        for key in [each for each in self._open if each[0] == partition]:
            del self._open[key]

    def offsets_of(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return the committed offsets of a group, without those in open transactions."""
        group = self.groups.get(group_id)
        return {} if group is None else group.offsets

    def pending_partitions(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions for which open transactions have committed offsets."""
        group = self.groups.get(group_id)
        return set() if group is None else {(topic, index) for _, topic, index in group.pending_offsets}

    def has_open_transaction(self, group_id: str) -> bool:
        """Return whether an open transaction has committed offsets of a group."""
        return any(group_id in names for names in self._open.values())

    def open_transactions(self, producer_id: int) -> list[int]:
        """Return the partitions of `__consumer_offsets` in which a producer's transaction is open."""
        return [partition for partition, producer in self._open if producer == producer_id]

    def end_transaction(self, partition: int, producer_id: int, *, commit: bool) -> None:
        """Apply a transaction marker of a partition: pending offsets become committed ones, or are dropped."""
        for name in self._open.pop((partition, producer_id), ()):
            group = self.groups.get(name)
            if group is None:
                continue
            for key in [key for key in group.pending_offsets if key[0] == producer_id]:
                pending = group.pending_offsets.pop(key)
                before = group.offsets.get(key[1:])
                if commit and (before is None or before.record_offset < pending.record_offset):
                    group.offsets[key[1:]] = pending
            if not group.exists:
                del self.groups[name]


def group_of(record: TypedRecord) -> str | None:
    """Return the name of the group in a record; None for control records, unknown types and malformed keys."""
    if record.key is None:
        return None
    name: str = getattr(record.key, "group" if record.kind in ("OffsetCommit", "GroupMetadata") else "group_id")
    return name


# ---- One function a record; a value of None is a tombstone

Change = Callable[["Group", Any, Any, TypedRecord], None]


def _offset_commit(
    group: Group, key: m.OffsetCommitKey, value: m.OffsetCommitValue | None, record: TypedRecord
) -> None:
    topic_partition = (key.topic, key.partition)
    if value is None:
        group.offsets.pop(topic_partition, None)
        for pending in [each for each in group.pending_offsets if each[1:] == topic_partition]:
            del group.pending_offsets[pending]
        return
    committed = CommittedOffset(
        topic=key.topic,
        partition=key.partition,
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp,
        expire_timestamp=value.expire_timestamp,
        topic_id=value.topic_id,
        record_offset=record.offset,
        timestamp=record.timestamp,
        producer_id=record.producer_id if record.is_transactional else -1,
    )
    if record.is_transactional:
        group.pending_offsets[(record.producer_id, *topic_partition)] = committed
    else:
        group.offsets[topic_partition] = committed


def _classic(group: Group, key: m.GroupMetadataKey, value: m.GroupMetadataValue | None, record: TypedRecord) -> None:
    if value is None:
        if group.kind == CLASSIC:
            group.clear()
        return
    group.kind, group.epoch = CLASSIC, value.generation
    group.protocol_type, group.protocol, group.leader = value.protocol_type, value.protocol, value.leader
    group.state_timestamp = value.current_state_timestamp
    group.members = {each.member_id: classic_member(each, value.protocol_type) for each in value.members}


def _group_epoch(kind: str) -> Change:
    def change(group: Group, key: object, value: EpochValue | None, record: TypedRecord) -> None:
        if value is None:
            if group.kind == kind:
                group.clear()
            return
        group.kind, group.epoch = kind, value.epoch
        group.metadata_hash = value.metadata_hash

    return change


def _assignment_epoch(kind: str) -> Change:
    def change(group: Group, key: object, value: AssignmentEpochValue | None, record: TypedRecord) -> None:
        if value is not None:
            group.kind, group.assignment_epoch = kind, value.assignment_epoch
            group.assignment_timestamp = value.assignment_timestamp
        elif group.kind == kind:
            group.assignment_epoch = -1

    return change


def _member(kind: str) -> Change:
    def change(group: Group, key: MemberKey, value: Message | None, record: TypedRecord) -> None:
        if value is None:
            group.members.pop(key.member_id, None)
            return
        if group.kind != kind:
            group.kind, group.members = kind, {}
        member = group.members.get(key.member_id) or Member(member_id=key.member_id)
        group.members[key.member_id] = changed_member(member, record.kind, value)

    return change


def _member_part(kind: str) -> Change:
    """Return the change by a record about a member, which another record creates and deletes."""

    def change(group: Group, key: MemberKey, value: Message | None, record: TypedRecord) -> None:
        if value is not None:
            _member(kind)(group, key, value, record)
        elif (member := group.members.get(key.member_id)) is not None:
            group.members[key.member_id] = changed_member(member, record.kind, None)

    return change


def _topics(
    group: Group, key: object, value: m.ConsumerGroupPartitionMetadataValue | None, record: TypedRecord
) -> None:
    group.topics, group.topic_names = {}, {}
    if value is None:
        return
    group.kind = CONSUMER
    for topic in value.topics:
        racks = [rack for partition in topic.partition_metadata for rack in partition.racks]
        group.topic_names[topic.topic_id] = topic.topic_name
        group.topics[topic.topic_name] = TopicMetadata(
            topic_id=topic.topic_id,
            name=topic.topic_name,
            partition_count=topic.num_partitions,
            rack=racks[0] if racks else None,
        )


def _regex(
    group: Group,
    key: m.ConsumerGroupRegularExpressionKey,
    value: m.ConsumerGroupRegularExpressionValue | None,
    record: TypedRecord,
) -> None:
    if value is None:
        group.regexes.pop(key.regular_expression, None)
    else:
        group.kind = CONSUMER
        group.regexes[key.regular_expression] = ResolvedRegex(
            topics=frozenset(value.topics), version=value.version, timestamp_ms=value.timestamp
        )


def _share_partitions(
    group: Group, key: object, value: m.ShareGroupStatePartitionMetadataValue | None, record: TypedRecord
) -> None:
    group.share_partitions, group.topic_names = {}, {}
    if value is None:
        return
    group.kind = SHARE
    for name in ("initializing", "initialized", "deleting"):
        topics = getattr(value, f"{name}_topics")
        group.topic_names.update((each.topic_id, each.topic_name) for each in topics)
        group.share_partitions[name] = tuple(
            AssignedPartitions(topic_id=each.topic_id, partitions=tuple(getattr(each, "partitions", ())))
            for each in topics
        )


def _topology(group: Group, key: object, value: m.StreamsGroupTopologyValue | None, record: TypedRecord) -> None:
    group.topology = value
    if value is not None:
        group.kind = STREAMS


CHANGES: dict[str, Change] = {
    "OffsetCommit": _offset_commit,
    "GroupMetadata": _classic,
    "ConsumerGroupMetadata": _group_epoch(CONSUMER),
    "ConsumerGroupPartitionMetadata": _topics,
    "ConsumerGroupMemberMetadata": _member(CONSUMER),
    "ConsumerGroupTargetAssignmentMetadata": _assignment_epoch(CONSUMER),
    "ConsumerGroupTargetAssignmentMember": _member_part(CONSUMER),
    "ConsumerGroupCurrentMemberAssignment": _member_part(CONSUMER),
    "ConsumerGroupRegularExpression": _regex,
    "ShareGroupMetadata": _group_epoch(SHARE),
    "ShareGroupMemberMetadata": _member(SHARE),
    "ShareGroupTargetAssignmentMetadata": _assignment_epoch(SHARE),
    "ShareGroupTargetAssignmentMember": _member_part(SHARE),
    "ShareGroupCurrentMemberAssignment": _member_part(SHARE),
    "ShareGroupStatePartitionMetadata": _share_partitions,
    "StreamsGroupMetadata": _group_epoch(STREAMS),
    "StreamsGroupMemberMetadata": _member(STREAMS),
    "StreamsGroupTargetAssignmentMetadata": _assignment_epoch(STREAMS),
    "StreamsGroupTargetAssignmentMember": _member_part(STREAMS),
    "StreamsGroupCurrentMemberAssignment": _member_part(STREAMS),
    "StreamsGroupTopology": _topology,
}
