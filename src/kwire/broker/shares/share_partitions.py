"""The share partitions that are in use: loaded from the share coordinator by the first fetch of a group.

They are forgotten when the partition's leader changes, the state of the partition is initialized again, or the last
member of the group disconnects. Records that were acquired are then available again.

Source: kafka.server.share.SharePartitionManager, SharePartitionCache 4.4.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from uuid import UUID

from kwire.broker.clock import Clock, Timers
from kwire.broker.configs.durations import duration_ms
from kwire.broker.groups.store import GroupStore
from kwire.broker.shares.coordinator import ShareCoordinator, ShareKey
from kwire.broker.shares.dead_letters import DeadLetterQueues
from kwire.broker.shares.share_partition import ShareLimits, SharePartition
from kwire.broker.topics import Partition
from kwire.errors import BrokerError
from kwire.internal_topics.share_state import UNSET, DeliveredRange
from kwire.log.files.time_lookup import EARLIEST_TIMESTAMP
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["SharePartitions", "is_read_committed"]

BY_DURATION = "by_duration:"
ERRORS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Errors of the share coordinator as members see them; others are UNKNOWN_SERVER_ERROR."""
FENCING = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Errors after which a share partition is loaded again."""


def is_read_committed(store: GroupStore, group_id: str) -> bool:
    """Return whether members of a share group do not get records of open and aborted transactions."""
    return store.configs_of(group_id).get("share.isolation.level") == "read_committed"


class SharePartitions:
    """The loaded share partitions of a cluster.

    store: of the groups. states: the share coordinator. has_dead_letters: whether the cluster's features have dead
    letter queues.
    """

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        store: GroupStore,
        states: ShareCoordinator,
        dead_letters: DeadLetterQueues,
        has_dead_letters: Callable[[], bool],
    ) -> None:
        self._clock, self._timers, self._store, self._states = clock, timers, store, states
        self._dead_letters, self._has_dead_letters = dead_letters, has_dead_letters
        self._loaded: dict[ShareKey, SharePartition] = {}
        self.watchers: dict[ShareKey, set[Callable[[], object]]] = {}
        """Called when records may have become available, by share partition."""

    def get(self, key: ShareKey) -> SharePartition | None:
        """Return a loaded share partition."""
        return self._loaded.get(key)

    def load(self, key: ShareKey, partition: Partition) -> SharePartition:
        """Return a share partition of a partition whose leader asks. Raises BrokerError."""
        loaded = self._loaded.get(key)
        if loaded is not None:
            return loaded
        leader_epoch = partition.leader_epoch
        try:
            stored = self._states.read(key, leader_epoch)
        except BrokerError as error:
            raise member_error(error) from error
        start_offset = stored.start_offset
        if start_offset == UNSET:
            start_offset = self._first_offset(key.group_id, partition)
        end_offset = partition.opened.log_end_offset
        share_partition = self._loaded[key] = SharePartition(
            start_offset,
            [  # what is beyond the log, such as after lost records, is not delivered yet
                each._replace(last_offset=min(each.last_offset, end_offset - 1))
                for each in stored.ranges
                if each.first_offset < end_offset
            ],
            clock=self._clock,
            timers=self._timers,
            limits=functools.partial(self.limits, key.group_id),
            write=functools.partial(self._write, key, leader_epoch, stored.state_epoch),
            copy=functools.partial(self._dead_letters.copy, key.group_id, partition),
            released=functools.partial(self.notify, key),
        )
        return share_partition

    def limits(self, group_id: str) -> ShareLimits:
        """Return the configs of a group that concern its records."""
        setting = functools.partial(self._store.share_time, group_id)
        return ShareLimits(
            delivery_count=setting("share.delivery.count.limit"),
            record_locks=setting("share.partition.max.record.locks"),
            lock_duration_ms=setting("share.record.lock.duration.ms"),
            can_renew=self._store.configs_of(group_id).get("share.renew.acknowledge.enable", "true") == "true",
            has_dead_letters=self._has_dead_letters() and bool(self._dead_letters.topic_of(group_id)),
        )

    def _first_offset(self, group_id: str, partition: Partition) -> int:
        """Return where a group begins to read. Raises BrokerError: OFFSET_NOT_AVAILABLE."""
        log = partition.opened
        reset = self._store.configs_of(group_id).get("share.auto.offset.reset", "latest").strip()
        if reset == "latest":
            return log.high_watermark
        timestamp = EARLIEST_TIMESTAMP
        if reset.startswith(BY_DURATION):
            timestamp = self._clock.now_ms() - duration_ms(reset.removeprefix(BY_DURATION))
        found = log.offset_for_time(timestamp)
        if found is None:
            what = f"Offset for timestamp {timestamp} not found for topic partition: {partition.name}"
            raise refusal(ErrorCode.OFFSET_NOT_AVAILABLE, what)
        return found.offset

    def _write(
        self,
        key: ShareKey,
        leader_epoch: int,
        state_epoch: int,
        start_offset: int,
        complete_count: int,
        ranges: Sequence[DeliveredRange],
    ) -> None:
        try:
            self._states.write(key, leader_epoch, state_epoch, start_offset, complete_count, ranges)
        except BrokerError as error:
            raise member_error(error) from error

    # --- watching and forgetting

    def notify(self, key: ShareKey) -> None:
        """Let waiting fetches look again."""
        for watcher in tuple(self.watchers.get(key, ())):
            watcher()

    def fence(self, key: ShareKey, error: BrokerError) -> None:
        """Forget a share partition after an error that shows that it is out of date."""
        if error.code in FENCING:
            self.forget_one(key)

    def forget_one(self, key: ShareKey) -> None:
        """Forget a share partition."""
        self.forget(lambda each: each == key)

    def forget(self, chosen: Callable[[ShareKey], bool]) -> None:
        """Forget share partitions; records that were acquired can be acquired again."""
        for key in [each for each in self._loaded if chosen(each)]:
            self._loaded.pop(key).close()
            self.notify(key)

    def forget_partition(self, topic_id: UUID, index: int) -> None:
        """Forget a partition whose leader has changed, or that was deleted."""
        self.forget(lambda key: key.topic_id == topic_id and key.partition == index)

    def close(self) -> None:
        """Forget all share partitions."""
        self.forget(lambda key: True)
        self._dead_letters.close()


def member_error(error: BrokerError) -> BrokerError:
    """Return an error of the share coordinator as members see it."""
    return refusal(ERRORS.get(ErrorCode(error.code), ErrorCode.UNKNOWN_SERVER_ERROR), error.what)
