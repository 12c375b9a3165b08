"""Committing, fetching, deleting and expiring offsets, checked against their group.

A commit outside any generation creates a missing group (a "simple" consumer, which assigns its partitions itself).
Members of a classic group commit within their generation, members of a consumer group at their epoch.

Offsets expire offsets.retention.minutes after (KIP-211)

    the group became empty             for groups that had members of the classic protocol
    the last commit                    for topics that no member reads any more, and for simple consumers

or at the time in the commit itself (versions 2 to 4 of OffsetCommit). A group without members and offsets is removed.

Source: org.apache.kafka.coordinator.group.OffsetMetadataManager, ClassicGroup.validateOffsetCommit and
offsetExpirationCondition, ConsumerGroup.validateOffsetCommit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kwire.broker.coordinator_log import CoordinatorRecord
from kwire.broker.groups import records
from kwire.broker.groups.classic_group import ClassicGroup, ClassicState
from kwire.broker.groups.consumer_group import ConsumerGroup, group_topics, member_of
from kwire.broker.groups.store import Group, GroupStore
from kwire.broker.transactions.metadata import NO_PRODUCER, ProducerIdAndEpoch
from kwire.errors import BrokerError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.groups_state import CommittedOffset
from kwire.messages.offset_commit_value import OffsetCommitValue
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["NO_RETENTION", "GroupOffsets", "group_tombstones", "is_empty", "subscription"]

NO_RETENTION = -1
"""A commit that leaves the time of its expiry to the broker."""
MEMBER_EPOCH_VERSION = 9
"""The first version of OffsetCommit that a member of the consumer protocol may use, and that knows its errors."""
MINUTE_MS = 60_000


class GroupOffsets:
    """Operations on the committed offsets of a node."""

    def __init__(self, store: GroupStore) -> None:
        self.store = store

    # --- committing ---

    def check_commit(
        self, group_id: str, member_id: str, instance_id: str | None, epoch: int, *, version: int, transactional: bool
    ) -> Group:
        """Return the group that a member commits for; a simple consumer's is created if it does not exist.

        epoch: the generation or the member's epoch; negative for simple consumers. version: of OffsetCommit.
        Raises BrokerError.
        """
        self.store.refuse_share_group(group_id)
        group = self.store.find(group_id)
        if group is None:
            if epoch >= 0:
                if version >= MEMBER_EPOCH_VERSION and not transactional:
                    raise refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
                raise refusal(ErrorCode.ILLEGAL_GENERATION, f"Group {group_id} not found.")
            return self.store.new_classic_group(group_id)
        if isinstance(group, ClassicGroup):
            self._check_classic(group, member_id, instance_id, epoch, transactional)
        else:
            self._check_consumer(group, member_id, epoch, version, transactional)
        return group

    @staticmethod
    def _check_classic(
        group: ClassicGroup, member_id: str, instance_id: str | None, epoch: int, transactional: bool
    ) -> None:
        if epoch < 0 and group.state is ClassicState.EMPTY:
            return
        if epoch >= 0 or member_id or instance_id is not None:
            group.check_member(member_id, instance_id)
            if epoch != group.generation_id:
                raise refusal(ErrorCode.ILLEGAL_GENERATION, f"generation is {group.generation_id}")
        elif not transactional:
            raise refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"group '{group.group_id}' has members; only they may commit")
        if not transactional and group.state is ClassicState.COMPLETING_REBALANCE:
            raise refusal(ErrorCode.REBALANCE_IN_PROGRESS, "assignment is not available yet")

    @staticmethod
    def _check_consumer(group: ConsumerGroup, member_id: str, epoch: int, version: int, transactional: bool) -> None:
        if epoch < 0 and not group.members:
            return
        member = member_of(group, member_id)
        if not transactional and not member.uses_classic_protocol and version < MEMBER_EPOCH_VERSION:
            raise refusal(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the modern group protocol",
            )
        if epoch != member.epoch:
            old = transactional or member.uses_classic_protocol
            raise refusal(
                ErrorCode.ILLEGAL_GENERATION if old else ErrorCode.STALE_MEMBER_EPOCH,
                f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}.",
            )

    def is_too_large(self, metadata: str | None) -> bool:
        """Return whether metadata exceeds offset.metadata.max.bytes, which Kafka counts in UTF-16 units."""
        limit = self.store.settings.offset_metadata_max_bytes
        if metadata is None or len(metadata) * 2 <= limit:
            return False
        return len(metadata.encode("utf-16-be", "surrogatepass")) // 2 > limit

    def commit(
        self,
        group_id: str,
        commits: Sequence[tuple[TopicPartition, OffsetCommitValue]],
        producer: ProducerIdAndEpoch = NO_PRODUCER,
    ) -> None:
        """Commit checked offsets, all or none. Raises BrokerError."""
        written = [records.offset_commit(group_id, *partition, value) for partition, value in commits]
        self.store.write(group_id, written, producer)

    # --- fetching ---

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> bool:
        """Check a member and return whether the group exists.

        Raises BrokerError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION.
        """
        group = self.store.find(group_id)
        if isinstance(group, ConsumerGroup) and not (member_id is None and epoch < 0):
            member = member_of(group, member_id or "")
            if epoch != member.epoch:
                classic = member.uses_classic_protocol
                raise refusal(
                    ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH,
                    f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}.",
                )
        return group is not None

    # --- deleting ---

    def check_delete(self, group_id: str) -> Group:
        """Return the group whose offsets are to be deleted.

        Raises BrokerError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        group = self.store.group(group_id)
        if (
            isinstance(group, ClassicGroup)
            and group.state is not ClassicState.EMPTY
            and not group.uses_consumer_protocol
        ):
            raise refusal(ErrorCode.NON_EMPTY_GROUP, f"group '{group_id}' has members that are not consumers")
        return group

    def delete(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete offsets; partitions without one are ignored. Raises BrokerError."""
        known = self._partitions(group_id)
        written = [records.offset_commit(group_id, *each, None) for each in dict.fromkeys(partitions) if each in known]
        self.store.write(group_id, written)

    def all_tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Return the tombstones of all offsets of a group, those in open transactions included."""
        partitions = self._partitions(group_id)
        return [records.offset_commit(group_id, *partition, None) for partition in sorted(partitions)]

    def _partitions(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions with an offset of a group, those in open transactions included."""
        return self.store.state.offsets_of(group_id).keys() | self.store.state.pending_partitions(group_id)

    def delete_topics(self, names: Iterable[str]) -> None:
        """Delete all offsets of deleted topics. Raises BrokerError."""
        deleted = frozenset(names)
        for group_id in [group.group_id for group in self.store.groups()]:
            partitions = self._partitions(group_id)
            self.delete(group_id, sorted(each for each in partitions if each[0] in deleted))

    # --- expiring ---

    def expire(self) -> None:
        """Remove expired offsets and groups; failed writes are retried at the next check."""
        for group in self.store.groups():
            group_id = group.group_id
            expired = self._expired(group)
            written = [records.offset_commit(group_id, *partition, None) for partition in expired]
            everything = len(expired) == len(self.store.state.offsets_of(group_id))
            if everything and not self.store.state.has_open_transaction(group_id) and is_empty(group):
                written.extend(group_tombstones(group))
            try:
                self.store.write(group_id, written)
            except BrokerError:
                continue

    def _expired(self, group: Group) -> list[TopicPartition]:
        offsets = self.store.state.offsets_of(group.group_id)
        pending = self.store.state.pending_partitions(group.group_id)
        if (
            isinstance(group, ClassicGroup)
            and group.protocol_type is not None
            and group.state is not ClassicState.EMPTY
        ):
            readable = group.state is ClassicState.STABLE and group.subscribed_topics is not None
            if not (group.uses_consumer_protocol and readable):
                return []
        subscribes = subscription(group)
        now_ms = self.store.clock.now_ms()
        return [
            partition
            for partition, offset in offsets.items()
            if self._is_over(group, offset, now_ms) and not subscribes(partition[0]) and partition not in pending
        ]

    def _is_over(self, group: Group, offset: CommittedOffset, now_ms: int) -> bool:
        if offset.expire_timestamp != NO_RETENTION:
            return now_ms >= offset.expire_timestamp
        since_ms = offset.commit_timestamp
        if (
            isinstance(group, ClassicGroup)
            and group.protocol_type is not None
            and group.state is ClassicState.EMPTY
            and group.state_since_ms != -1
        ):
            since_ms = group.state_since_ms
        return now_ms - since_ms >= self.store.settings.offsets_retention_minutes * MINUTE_MS


def subscription(group: Group) -> Callable[[str], bool]:
    """Return a function that returns whether a member of a group reads a topic."""
    if isinstance(group, ClassicGroup):
        return group.is_subscribed_to
    return group_topics(group.members.values(), group.regexes).__contains__


def is_empty(group: Group) -> bool:
    """Return whether a group has no members and no pending joins."""
    if isinstance(group, ClassicGroup):
        return group.state is ClassicState.EMPTY
    return not group.members


def group_tombstones(group: Group) -> list[CoordinatorRecord]:
    """Return the tombstones that delete a group, without its offsets."""
    group_id = group.group_id
    if isinstance(group, ClassicGroup):
        return [records.group_metadata_tombstone(group_id)]
    return [
        *(records.current_assignment(group_id, member_id, None) for member_id in group.members),
        *(records.target_assignment(group_id, member_id, None) for member_id in group.members),
        records.target_epoch(group_id, None),
        *(records.member_subscription(group_id, member_id, None) for member_id in group.members),
        *(records.regex(group_id, pattern, None) for pattern in group.regexes),
        records.subscription_metadata(group_id, None),
        records.group_epoch(group_id, None),
    ]
