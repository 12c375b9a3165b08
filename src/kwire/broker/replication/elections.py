"""Changes of a partition's leader, in-sync replicas and replicas, as Kafka's controller decides them.

An election is one of

    ONLINE      keep the leader if it is in the ISR and running, else the first such replica
    PREFERRED   the first replica if it is in the ISR and running, else as ONLINE
    UNCLEAN     as ONLINE, else any running replica, which may lack records

Source: org.apache.kafka.controller.PartitionChangeBuilder, PartitionReassignmentReplicas 3.9.1.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import Enum
from uuid import UUID

from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.internal_topics.cluster_values import Partition as PartitionState
from kwire.messages import PartitionChangeRecord

__all__ = ["RECOVERED", "RECOVERING", "Election", "change", "completed", "reassigned"]

RECOVERED, RECOVERING = 0, 1
"""Values of leader_recovery_state."""


class Election(Enum):
    """A kind of election."""

    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


def elect(
    leader: int, replicas: Sequence[int], isr: Container[int], running: Container[int], kind: Election
) -> tuple[int, bool]:
    """Return the leader, NO_LEADER if there is none, and whether it may lack records."""
    valid = [each for each in replicas if each in isr and each in running]
    if kind is Election.PREFERRED and replicas and replicas[0] in valid:
        return replicas[0], False
    if leader in valid:
        return leader, False
    if valid:
        return valid[0], False
    if kind is Election.UNCLEAN:
        return next(((each, True) for each in replicas if each in running), (NO_LEADER, False))
    return NO_LEADER, False


def change(
    topic_id: UUID,
    state: PartitionState,
    running: Container[int],
    *,
    isr: Sequence[int] | None = None,
    kind: Election = Election.ONLINE,
) -> PartitionChangeRecord | None:
    """Return the change of a partition by an election, or to another ISR; None if nothing changes."""
    target = list(state.isr if isr is None else isr)
    leader, is_unclean = elect(state.leader, state.replicas, target, running, kind)
    record = PartitionChangeRecord(partition_id=state.partition, topic_id=topic_id)
    if is_unclean:
        target = [leader]
        record.leader_recovery_state = RECOVERING
    if leader != state.leader:
        record.leader = leader
    if target and target != list(state.isr):  # the last in-sync replica stays one
        record.isr = target
    return record if record != PartitionChangeRecord(partition_id=state.partition, topic_id=topic_id) else None


def reassigned(topic_id: UUID, state: PartitionState, target: Sequence[int]) -> PartitionChangeRecord:
    """Return the change that begins to move a partition to other replicas; old ones stay until new ones caught up."""
    before = [each for each in state.replicas if each not in state.adding_replicas]
    adding = [each for each in target if each not in before]
    removing = [each for each in before if each not in target]
    return PartitionChangeRecord(
        partition_id=state.partition,
        topic_id=topic_id,
        replicas=[*target, *removing],
        adding_replicas=adding,
        removing_replicas=removing,
    )


def completed(topic_id: UUID, state: PartitionState, running: Container[int]) -> PartitionChangeRecord | None:
    """Return the change that ends a reassignment; None if there is none, or its replicas have not caught up."""
    if not state.adding_replicas and not state.removing_replicas:
        return None
    replicas = [each for each in state.replicas if each not in state.removing_replicas]
    isr = [each for each in state.isr if each not in state.removing_replicas]
    if not isr or any(each not in isr for each in state.adding_replicas):
        return None
    leader, _ = elect(state.leader, replicas, isr, running, Election.ONLINE)
    return PartitionChangeRecord(
        partition_id=state.partition,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        adding_replicas=[],
        removing_replicas=[],
        leader=leader,  # its epoch grows even if it stays, which fences the removed replicas
    )
