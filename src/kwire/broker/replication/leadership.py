"""The leaders of partitions: nodes that stop and start, elections, reassignments, lost records.

Every change is a record of the metadata log. Then the partition's log begins the new leader epoch, requests that wait
for the partition are completed, and the observers are called: coordinators move with the leaders of their topics.

Replicas share one log, so a running replica has caught up at once. A stopped one is remembered with the end of the log
at that time: if it is elected although it is not in sync, the log is truncated to there, as the log of a new leader in
Kafka ends where it stopped to fetch.

Source: org.apache.kafka.controller.ReplicationControlManager 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kwire.broker.replication.elections import RECOVERED, Election, change, completed, eligible, reassigned
from kwire.errors import LogError
from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.messages import PartitionChangeRecord
from kwire.protocol.error_codes import ErrorCode, refusal

if TYPE_CHECKING:
    from kwire.broker.clock import Clock
    from kwire.broker.metadata_log import Commit
    from kwire.broker.replication.members import Members
    from kwire.broker.topics import Partition, TopicRegistry
    from kwire.log.writing.log_manager import LogManager

__all__ = ["Leadership"]

CHANGE_VERSION, ELIGIBLE_VERSION = 1, 2
"""Of PartitionChangeRecord; the second with eligible leader replicas."""


class Leadership:
    """The leaders of a cluster's partitions. observers: called with a partition whose leader has changed.

    has_eligible: whether the cluster has eligible leader replicas (KIP-966).
    """

    def __init__(
        self,
        topics: TopicRegistry,
        members: Members,
        commit: Commit,
        manager: LogManager,
        clock: Clock,
        has_eligible: Callable[[], bool],
    ) -> None:
        self._topics, self._members, self._commit = topics, members, commit
        self._has_eligible = has_eligible
        self._manager, self._clock = manager, clock
        self._ends: dict[tuple[object, int, int], int] = {}
        """(topic id, partition, node) -> end of the log when the node stopped or crashed."""
        self.observers: list[Callable[[Partition], object]] = []

    # --- nodes

    def ends_of(self, node_id: int) -> dict[Partition, int]:
        """Return where the logs of a node end that is in their ISR, and fetches nothing from now on."""
        return {
            partition: partition.log.log_end_offset
            for partition in self._in_order()
            if node_id in partition.state.isr and partition.log is not None
        }

    def node_stopped(self, node_id: int, ends: Mapping[Partition, int]) -> None:
        """Take a node, which is not running any more, out of leadership and in-sync replicas. ends: of its logs."""
        changes = []
        for partition in self._in_order():
            state = partition.state
            if node_id not in state.isr and state.leader != node_id:
                continue
            isr = [each for each in state.isr if each != node_id]
            kind = Election.UNCLEAN if may_elect_unclean(partition) else Election.ONLINE
            record = self._change(partition, isr=isr, kind=kind)
            if record is not None:
                if partition.log is not None and record.isr is not None:
                    end = ends.get(partition, partition.log.log_end_offset)
                    self._ends[partition.topic.topic_id, partition.index, node_id] = end
                changes.append((partition, record))
        self._apply(changes)

    def node_started(self, node_id: int, *, has_crashed: bool = False) -> None:
        """Elect leaders of partitions that had none, and let the replicas of a running node catch up.

        has_crashed: its logs may lack records, so it is not eligible as a leader.
        """
        if has_crashed:
            self._crashed(node_id)
        changes = []
        for partition in self._in_order():
            if partition.state.leader != NO_LEADER or node_id not in partition.state.replicas:
                continue
            kind = Election.UNCLEAN if may_elect_unclean(partition) else Election.ONLINE
            record = self._change(partition, kind=kind)
            if record is not None:
                changes.append((partition, record))
        self._apply(changes)
        self.catch_up(self._in_order())

    def _crashed(self, node_id: int) -> None:
        """Take a node that has crashed out of the eligible leader replicas."""
        changes = []
        for partition in self._in_order():
            if node_id in partition.state.elr:
                record = self._change(partition, crashed=(node_id,))
                if record is not None:
                    changes.append((partition, record))
        self._apply(changes)

    def _min_isr(self, partition: Partition) -> int | None:
        """Return min.insync.replicas, None without eligible leader replicas."""
        if not self._has_eligible() or partition.log is None:
            return None
        return partition.log.config.min_insync_replicas

    def _change(
        self,
        partition: Partition,
        *,
        isr: Sequence[int] | None = None,
        kind: Election = Election.ONLINE,
        crashed: Collection[int] = (),
    ) -> PartitionChangeRecord | None:
        """Return the change of a partition by an election, or to another ISR; None if nothing changes."""
        min_isr, running = self._min_isr(partition), self._members.running
        topic_id, state = partition.topic.topic_id, partition.state
        return change(topic_id, state, running, isr=isr, kind=kind, min_isr=min_isr, crashed=crashed)

    def catch_up(self, partitions: Iterable[Partition]) -> None:
        """Add running replicas to the ISR of partitions with a leader, and complete reassignments."""
        partitions = list(partitions)
        joined, ended = [], []
        for partition in partitions:
            state, topic_id = partition.state, partition.topic.topic_id
            if state.leader not in self._members.running:
                continue
            late = [each for each in state.replicas if each not in state.isr and each in self._members.running]
            if not late and not state.recovering:
                continue
            record = PartitionChangeRecord(partition_id=partition.index, topic_id=topic_id)
            if late:
                record.isr = [*state.isr, *late]
                min_isr = self._min_isr(partition)
                elr = [] if min_isr is None else eligible(state, record.isr, min_isr)
                if elr != list(state.elr):
                    record.eligible_leader_replicas = elr
            if state.recovering:
                record.leader_recovery_state = RECOVERED
            for each in late:
                self._ends.pop((topic_id, partition.index, each), None)
            joined.append((partition, record))
        self._apply(joined)
        for partition in partitions:
            end = completed(partition.topic.topic_id, partition.state, self._members.running)
            if end is not None:
                end.directories = self._members.directories(end.replicas or ())
                ended.append((partition, end))
        self._apply(ended)

    # --- partitions

    def move(self, partition: Partition, to: int) -> None:
        """Make an in-sync replica the leader."""
        if partition.state.leader != to:
            record = PartitionChangeRecord(partition_id=partition.index, topic_id=partition.topic.topic_id, leader=to)
            self._apply([(partition, record)])

    def elect(self, partition: Partition, kind: Election) -> None:
        """Hold an election. Raises BrokerError if it is not needed or there is no eligible replica."""
        state = partition.state
        if state.leader == state.replicas[0] if kind is Election.PREFERRED else state.leader != NO_LEADER:
            raise refusal(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
        record = self._change(partition, kind=kind)
        if record is None and kind is Election.PREFERRED:
            raise refusal(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
        if record is None:
            what = "Eligible topic partition leaders are not available."
            raise refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, what)
        self._apply([(partition, record)])
        self.catch_up([partition])

    def reassign(self, partition: Partition, target: Sequence[int]) -> None:
        """Move a partition to other replicas; it continues while one of them is not running."""
        record = reassigned(partition.topic.topic_id, partition.state, target)
        record.directories = self._members.directories(record.replicas or ())
        self._apply([(partition, record)])
        self.catch_up([partition])

    def cancel_reassignment(self, partition: Partition) -> None:
        """Return to the replicas before a reassignment. Raises BrokerError: NO_REASSIGNMENT_IN_PROGRESS."""
        state = partition.state
        if not state.adding_replicas and not state.removing_replicas:
            raise refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "")
        replicas = [each for each in state.replicas if each not in state.adding_replicas]
        isr = [each for each in state.isr if each in replicas]
        record = PartitionChangeRecord(
            partition_id=partition.index,
            topic_id=partition.topic.topic_id,
            replicas=replicas,
            isr=isr or replicas[:1],
            adding_replicas=[],
            removing_replicas=[],
            directories=self._members.directories(replicas),
        )
        if state.leader not in replicas:
            record.leader = next((each for each in isr if each in self._members.running), NO_LEADER)
        self._apply([(partition, record)])

    def lose(self, partition: Partition, end_offset: int, leader: int) -> None:
        """Elect a replica that lacks the records from an offset on: the log is truncated to it. Raises LogError."""
        record = PartitionChangeRecord(
            partition_id=partition.index, topic_id=partition.topic.topic_id, leader=leader, isr=[leader]
        )
        self._ends[partition.topic.topic_id, partition.index, leader] = end_offset
        self._apply([(partition, record)])
        self.catch_up([partition])

    # --- applying

    def _in_order(self) -> list[Partition]:
        return [topic.partitions[index] for topic in self._topics for index in sorted(topic.partitions)]

    def _apply(self, changes: Sequence[tuple[Partition, PartitionChangeRecord]]) -> None:
        """Write changes, then begin the epochs of new leaders and call whom they concern."""
        if not changes:
            return
        before = [partition.leader_epoch for partition, _ in changes]
        self._commit([(record, version_of(record)) for _, record in changes])
        for (partition, _), epoch in zip(changes, before, strict=True):
            if partition.leader_epoch != epoch:
                self._begin_epoch(partition)
        for (partition, _), epoch in zip(changes, before, strict=True):
            if partition.leader_epoch != epoch:
                partition.notify()
                for observer in self.observers:
                    observer(partition)

    def _begin_epoch(self, partition: Partition) -> None:
        """Begin a leader's epoch in the log, which ends where a leader that is not in sync stopped to fetch."""
        leader = partition.state.leader
        if partition.log is None or leader == NO_LEADER:
            return
        end = self._ends.pop((partition.topic.topic_id, partition.index, leader), None)
        if end is not None and end < partition.log.log_end_offset:
            try:
                self._manager.truncate_to(partition.topic.name, partition.index, end, now_ms=self._clock.now_ms())
            except LogError:
                partition.log = None  # is reopened by housekeeping
                raise
            for key, other in self._ends.items():
                if key[:2] == (partition.topic.topic_id, partition.index):
                    self._ends[key] = min(other, end)  # the logs of other replicas diverge there
        partition.log.begin_leader_epoch(partition.leader_epoch)

    def forget(self) -> None:
        """Forget where nodes left the ISR."""
        self._ends.clear()


def version_of(record: PartitionChangeRecord) -> int:
    """Return the version of a record."""
    has_eligible = record.eligible_leader_replicas is not None or record.last_known_elr is not None
    return ELIGIBLE_VERSION if has_eligible else CHANGE_VERSION


def may_elect_unclean(partition: Partition) -> bool:
    """Return whether a replica may lead that is not in sync: unclean.leader.election.enable."""
    return partition.log is not None and partition.log.config.unclean_leader_election_enable
