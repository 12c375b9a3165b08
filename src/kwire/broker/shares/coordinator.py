"""The share coordinator: the delivery state of share partitions, kept in `__share_group_state`.

A share partition is one partition as one share group reads it. Its state begins with a snapshot, which later updates
change; after share.coordinator.snapshot.update.records.per.snapshot updates there is a new snapshot, and one of what
has had none for share.coordinator.cold.partition.snapshot.interval.ms. Every
share.coordinator.state.topic.prune.interval.ms, the records below the oldest snapshot in use are deleted. Two
epochs fence out what has been replaced: former leaders of the partition (leader epoch), and a former initialization
(state epoch).

The coordinator of a share partition is the leader of the partition of `__share_group_state` for its key, the text
`group:topic id:partition`.

Source: org.apache.kafka.coordinator.share.ShareCoordinatorShard, ShareCoordinatorService 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from kwire.broker.clock import Clock
from kwire.broker.configs.settings import Settings
from kwire.broker.coordinator_log import CoordinatorLog, CoordinatorRecord, append_error, typed, warn_of_problems
from kwire.broker.topics import TopicRegistry
from kwire.errors import BrokerError, EncodeError, LogError
from kwire.identifiers import render_uuid
from kwire.internal_topics.names import SHARE_STATE_TOPIC
from kwire.internal_topics.placement import partition_for
from kwire.internal_topics.share_state import UNSET, DeliveredRange, ShareState, merge_ranges
from kwire.internal_topics.share_state import SharePartition as StoredPartition
from kwire.internal_topics.typed_record import TypedRecord, usable
from kwire.messages import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from kwire.messages.share_snapshot_value import StateBatch
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["ShareCoordinator", "ShareKey"]

FENCED_STATE = "The coordinator rejected the request because the state epoch did not match."


class ShareKey(NamedTuple):
    """A share partition."""

    group_id: str
    topic_id: UUID
    partition: int

    def __str__(self) -> str:
        """Return the key of its coordinator."""
        return f"{self.group_id}:{render_uuid(self.topic_id)}:{self.partition}"


class ShareCoordinator:
    """The share coordinator of a cluster.

    state: what the topic says. replaced: called with share partitions whose state begins again or is deleted.
    """

    def __init__(self, clock: Clock, settings: Settings, topics: TopicRegistry, log: CoordinatorLog) -> None:
        self._clock, self._settings, self._topics, self._log = clock, settings, topics, log
        self.state = ShareState()
        self.replaced: Callable[[ShareKey], object] = lambda key: None
        self._leader_epochs: dict[ShareKey, int] = {}
        self._state_epochs: dict[ShareKey, int] = {}
        self._updates: dict[ShareKey, int] = {}
        """Number of updates since the last snapshot."""
        self._snapshots: dict[ShareKey, int] = {}
        """Offset of the last snapshot."""
        self._tombstones: dict[int, int] = {}
        """Offset of the last tombstone in each partition of the topic."""

    # --- starting and stopping

    def load(self, partition: int | None = None) -> None:
        """Read the topic, or one partition of it. Raises LogError."""
        for record in usable(self._log.replay(partition), self.state.problems):
            self._apply(record)
        warn_of_problems(self.state.problems)

    def unload(self, partition: int) -> None:
        """Forget the states in a partition of the topic."""
        for stored in [each for each in self.state.partitions.values() if each.state_partition == partition]:
            key = ShareKey(stored.group_id, stored.topic_id, stored.partition)
            del self.state.partitions[key]
            self._forget(key)
        self._tombstones.pop(partition, None)

    def _forget(self, key: ShareKey) -> None:
        for known in (self._leader_epochs, self._state_epochs, self._updates, self._snapshots):
            known.pop(key, None)

    def _apply(self, record: TypedRecord) -> None:
        self.state.apply(record)
        if record.key is None:
            return
        key = ShareKey(record.key.group_id, record.key.topic_id, record.key.partition)  # type: ignore[attr-defined]
        stored = self.state.partitions.get(key)
        if stored is None:
            self._forget(key)
            self._tombstones[record.partition] = record.offset
            return
        if record.kind == "ShareSnapshot":
            self._snapshots[key] = record.offset
        self._leader_epochs[key] = max(self._leader_epochs.get(key, stored.leader_epoch), stored.leader_epoch)
        self._state_epochs[key] = max(self._state_epochs.get(key, stored.state_epoch), stored.state_epoch)
        if record.kind == "ShareUpdate":
            self._updates[key] = self._updates.get(key, 0) + 1
        elif self._updates.get(key, 0) >= self._limit:
            self._updates[key] = 0

    @property
    def _limit(self) -> int:
        return self._settings.share_coordinator_snapshot_update_records_per_snapshot

    # --- periodic tasks; each raises BrokerError or LogError

    def prune(self) -> None:
        """Delete the records of the topic that later ones replace: below the oldest snapshot that is in use.

        The tombstone of the last state stays. Source: ShareCoordinatorOffsetsManager.
        """
        needed: dict[int, int] = {}
        for key, offset in self._snapshots.items():
            partition = self.state.partitions[key].state_partition
            needed[partition] = min(offset, needed.get(partition, offset))
        for partition, offset in {**self._tombstones, **needed}.items():
            self._log.delete_before(partition, offset)

    def snapshot_cold(self) -> None:
        """Write snapshots of states without a recent one, which would keep prune() from deleting newer records.

        A partition of the topic whose states all have been written so, and not otherwise since then, is unchanged.
        Source: ShareCoordinatorShard.snapshotColdPartitions.
        """
        now_ms = self._clock.now_ms()
        interval_ms = self._settings.share_coordinator_cold_partition_snapshot_interval_ms
        by_partition: dict[int, list[StoredPartition]] = {}
        for stored in self.state.partitions.values():
            by_partition.setdefault(stored.state_partition, []).append(stored)
        for states in by_partition.values():
            if all(stored.create_timestamp != stored.write_timestamp for stored in states):
                continue
            for stored in states:
                if now_ms - stored.write_timestamp >= interval_ms:
                    self._write(ShareKey(stored.group_id, stored.topic_id, stored.partition), renewed(stored, now_ms))

    # --- operations; each raises BrokerError

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        """Begin the state of a share partition again. start_offset: -1 to decide it with the first fetch."""
        self._check_partition(key.partition)
        check_epoch(state_epoch, "state")
        self._check_state_epoch(key, state_epoch)
        self._check_topic(key)
        stored, now_ms = self.state.partitions.get(key), self._clock.now_ms()
        value = ShareSnapshotValue(
            snapshot_epoch=0 if stored is None else stored.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=UNSET if start_offset == UNSET else 0,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
        )
        self._write(key, value)
        self.replaced(key)

    def read(self, key: ShareKey, leader_epoch: int) -> StoredPartition:
        """Return the state of a share partition to its leader, whose epoch is written if it is new."""
        self._check_partition(key.partition)
        check_epoch(leader_epoch, "leader")
        stored = self._stored(key, "Read")
        self._check_leader_epoch(key, leader_epoch)
        self._check_topic(key)
        if self._leader_epochs[key] != leader_epoch:
            self._change(key, stored, leader_epoch, stored.start_offset, stored.delivery_complete_count, ())
        return stored

    def write(
        self,
        key: ShareKey,
        leader_epoch: int,
        state_epoch: int,
        start_offset: int,
        complete_count: int,
        ranges: Sequence[DeliveredRange],
    ) -> None:
        """Change the state of a share partition."""
        self._check_partition(key.partition)
        check_epoch(leader_epoch, "leader")
        check_epoch(state_epoch, "state")
        if any(each.first_offset > each.last_offset for each in ranges):
            # Kafka 4.4.0 stores one, and fails every later write of the share partition (PersisterStateBatchCombiner)
            raise refusal(ErrorCode.INVALID_REQUEST, "The first offset of a state batch is above its last offset.")
        stored = self._stored(key, "Write")
        self._check_leader_epoch(key, leader_epoch)
        self._check_state_epoch(key, state_epoch)
        self._check_topic(key)
        self._change(key, stored, stored.leader_epoch, start_offset, complete_count, ranges)

    def delete(self, key: ShareKey) -> None:
        """Delete the state of a share partition, if there is one."""
        self._check_partition(key.partition)
        self._check_topic(key)
        if key in self.state.partitions:
            self._write(key, None)
            self.replaced(key)

    def summary(self, key: ShareKey) -> StoredPartition | None:
        """Return the state of a share partition, None without one."""
        self._check_partition(key.partition)
        self._check_topic(key)
        return self.state.partitions.get(key)

    def topics_deleted(self, topic_ids: Iterable[UUID]) -> None:
        """Delete the states of deleted topics."""
        deleted = frozenset(topic_ids)
        for stored in [each for each in self.state.partitions.values() if each.topic_id in deleted]:
            key = ShareKey(stored.group_id, stored.topic_id, stored.partition)
            self._write(key, None)
            self.replaced(key)

    # --- checks

    @staticmethod
    def _check_partition(partition: int) -> None:
        if partition < 0:
            raise refusal(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")

    def _check_leader_epoch(self, key: ShareKey, leader_epoch: int) -> None:
        if self._leader_epochs.get(key, -1) > leader_epoch:
            what = "The leader epoch in the request is older than the epoch on the broker."
            raise refusal(ErrorCode.FENCED_LEADER_EPOCH, what)

    def _check_state_epoch(self, key: ShareKey, state_epoch: int) -> None:
        if self._state_epochs.get(key, -1) > state_epoch:
            raise refusal(ErrorCode.FENCED_STATE_EPOCH, FENCED_STATE)

    def _check_topic(self, key: ShareKey) -> None:
        topic = self._topics.with_id(key.topic_id)
        if topic is None or key.partition not in topic.partitions:
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")

    def _stored(self, key: ShareKey, verb: str) -> StoredPartition:
        stored = self.state.partitions.get(key)
        if stored is None:
            what = f"{verb} operation on uninitialized share partition not allowed."
            raise refusal(ErrorCode.INVALID_REQUEST, what)
        return stored

    # --- writing

    def _change(
        self,
        key: ShareKey,
        stored: StoredPartition,
        leader_epoch: int,
        start_offset: int,
        complete_count: int,
        ranges: Sequence[DeliveredRange],
    ) -> None:
        """Write an update, or a snapshot after many updates."""
        if start_offset < stored.start_offset:
            complete_count = stored.delivery_complete_count
        elif start_offset == stored.start_offset:
            complete_count = max(complete_count, stored.delivery_complete_count)
        start_offset = max(start_offset, stored.start_offset)
        if self._updates.get(key, 0) < self._limit:
            update = ShareUpdateValue(
                snapshot_epoch=stored.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=complete_count,
                state_batches=[
                    ShareUpdateValue.StateBatch(
                        first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                    )
                    for first, last, state, count in merge_ranges(ranges, start_offset)
                ],
            )
            self._write(key, update)
            return
        now_ms = self._clock.now_ms()
        snapshot = ShareSnapshotValue(
            snapshot_epoch=stored.snapshot_epoch + 1,
            state_epoch=stored.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=complete_count,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
            state_batches=snapshot_batches(merge_ranges((*stored.ranges, *ranges), start_offset)),
        )
        self._write(key, snapshot)

    def _write(self, key: ShareKey, value: ShareSnapshotValue | ShareUpdateValue | None) -> None:
        """Append a record and apply it. Raises BrokerError."""
        cls = ShareUpdateKey if isinstance(value, ShareUpdateValue) else ShareSnapshotKey
        record = CoordinatorRecord(cls(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), value)
        partition = partition_for(str(key), self._log.partition_count())
        try:
            offset = self._log.append(partition, [record.encode()])
        except (BrokerError, LogError, EncodeError) as error:
            raise append_error(error, f"share partition {key}") from error
        for each in typed(SHARE_STATE_TOPIC, partition, [record], offset, self._clock.now_ms()):
            self._apply(each)


def renewed(stored: StoredPartition, now_ms: int) -> ShareSnapshotValue:
    """Return the next snapshot of a state that has not changed."""
    return ShareSnapshotValue(
        snapshot_epoch=stored.snapshot_epoch + 1,
        state_epoch=stored.state_epoch,
        leader_epoch=stored.leader_epoch,
        start_offset=stored.start_offset,
        delivery_complete_count=stored.delivery_complete_count,
        create_timestamp=stored.create_timestamp,
        write_timestamp=now_ms,
        state_batches=snapshot_batches(stored.ranges),
    )


def snapshot_batches(ranges: Iterable[DeliveredRange]) -> list[StateBatch]:
    """Return ranges as a snapshot has them."""
    return [
        StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in ranges
    ]


def check_epoch(epoch: int, which: str) -> None:
    """Raise BrokerError for a negative epoch."""
    if epoch < 0:
        raise refusal(ErrorCode.INVALID_REQUEST, f"The {which} epoch cannot be a negative number.")
