"""Changes of a partition's leader, in-sync replicas and replicas, as Kafka's controller decides them.

An election is one of

    ONLINE      keep the leader if it is in the ISR and running, else the first such replica
    PREFERRED   the first replica if it is in the ISR and running, else as ONLINE
    UNCLEAN     as ONLINE, else any running replica, which may lack records

With eligible leader replicas (KIP-966), the ISR may become empty. Replicas that leave it while it is smaller than
min.insync.replicas stay eligible: they have every record that was acknowledged, unless they crash. Without an ISR they
are elected as if they were in it; if there are none, the last leader is, which may lack records.

Source: org.apache.kafka.controller.PartitionChangeBuilder 4.4.0, PartitionReassignmentReplicas 3.9.1.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from enum import Enum
from uuid import UUID

from kwire.internal_topics.cluster_values import NO_LEADER
from kwire.internal_topics.cluster_values import Partition as PartitionState
from kwire.messages import PartitionChangeRecord

__all__ = ["RECOVERED", "RECOVERING", "Election", "change", "completed", "eligible", "reassigned"]

RECOVERED, RECOVERING = 0, 1
"""Values of leader_recovery_state."""


class Election(Enum):
    """A kind of election."""

    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


def elect(
    leader: int,
    replicas: Sequence[int],
    isr: Container[int],
    running: Container[int],
    kind: Election,
    last_leader: int = NO_LEADER,
) -> tuple[int, bool]:
    """Return the leader, NO_LEADER if there is none, and whether it may lack records.

    last_leader: is elected if no other replica may be, NO_LEADER for none.
    """
    valid = [each for each in replicas if each in isr and each in running]
    if kind is Election.PREFERRED and replicas and replicas[0] in valid:
        return replicas[0], False
    if leader in valid:
        return leader, False
    if valid:
        return valid[0], False
    if last_leader in running:
        return last_leader, True
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
    min_isr: int | None = None,
    crashed: Collection[int] = (),
) -> PartitionChangeRecord | None:
    """Return the change of a partition by an election, or to another ISR; None if nothing changes.

    min_isr: min.insync.replicas, None without eligible leader replicas. crashed: nodes that are not eligible any more.
    """
    target = list(state.isr if isr is None else isr)
    if min_isr is not None:
        return change_with_eligible(topic_id, state, running, target, kind, min_isr, crashed)
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


def eligible(state: PartitionState, isr: Sequence[int], min_isr: int, crashed: Collection[int] = ()) -> list[int]:
    """Return the eligible leader replicas of a partition with another ISR."""
    if len(isr) >= min(min_isr, len(state.replicas)):
        return []
    return sorted({*state.elr, *state.isr} - {*isr, *crashed})


def change_with_eligible(
    topic_id: UUID,
    state: PartitionState,
    running: Container[int],
    isr: list[int],
    kind: Election,
    min_isr: int,
    crashed: Collection[int],
) -> PartitionChangeRecord | None:
    """Return the change of a partition with eligible leader replicas; see change."""
    empty = PartitionChangeRecord(partition_id=state.partition, topic_id=topic_id)
    record = PartitionChangeRecord(partition_id=state.partition, topic_id=topic_id)
    elr, known = eligible(state, isr, min_isr, crashed), state.last_known_elr
    last_leader = known[0] if not isr and not elr and len(known) == 1 else NO_LEADER
    leader, is_unclean = elect(state.leader, state.replicas, isr or elr, running, kind, last_leader)
    if leader != state.leader:
        record.leader = leader
        if leader in elr:
            isr, elr = [leader], [each for each in elr if each != leader]
    if is_unclean:
        isr, elr = [leader], []
        record.leader_recovery_state = RECOVERING
    if elr != list(state.elr):
        record.eligible_leader_replicas = elr
    if isr != list(state.isr):
        record.isr = isr
    if record.isr == [] and list(known) != [state.leader]:
        record.last_known_elr = [state.leader]
    elif leader != NO_LEADER and known:
        record.last_known_elr = []
    return record if record != empty else None


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
