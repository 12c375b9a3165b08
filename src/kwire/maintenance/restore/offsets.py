"""Groups at the cut: no committed offset is beyond its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kwire.identifiers import TopicPartition
from kwire.internal_topics.coordinator_records import decode_group
from kwire.internal_topics.groups_state import CommittedOffset, GroupsState, group_of
from kwire.internal_topics.typed_record import usable
from kwire.log.topics.history import read_history
from kwire.maintenance.restore.changes import Writes
from kwire.maintenance.restore.survey import Survey
from kwire.protocol.record_values import write_prefixed

__all__ = ["ChangedOffset", "groups_at_cut", "limit_offsets"]

LEADER_EPOCH_VERSION, EXPIRING_VERSION, TOPIC_ID_VERSION = 3, 1, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedOffset:
    """A committed offset beyond its log, which becomes the log end offset; None: deleted, since the log does not exist.

    Of a share group, the offset after the last one that its state says something about, -1 if there is none.
    """

    group: str
    topic: str
    partition: int
    offset: int
    new_offset: int | None


def groups_at_cut(survey: Survey, writes: Writes) -> tuple[GroupsState, set[str]]:
    """Return the groups of one partition of `__consumer_offsets`, and the share groups that it has deleted.

    writes: of the partition; its planned markers apply. Memory: the groups of the partition. Raises LogError.
    """
    state, deleted = GroupsState(), set[str]()
    history = read_history(survey.log, decode_group, at_offset=survey.cut_offset)
    for record in usable(history, state.problems):
        if record.is_control and record.offset in writes.aborted:
            record.kind = "ABORT"
        state.apply(record)
        if record.kind == "ShareGroupMetadata" and (name := group_of(record)) is not None:
            (deleted.add if record.value is None else deleted.discard)(name)
    for marker in writes.markers:
        state.end_transaction(survey.log.partition, marker.producer_id, commit=marker.is_commit)
    return state, deleted


def limit_offsets(state: GroupsState, writes: Writes, ends: Mapping[TopicPartition, int]) -> list[ChangedOffset]:
    """Add the records of `__consumer_offsets` that move committed offsets back to the ends of their logs.

    state, writes: of one partition of the topic. ends: log end offsets after the cut.
    """
    changed = []
    for name, group in sorted(state.groups.items()):
        for key, committed in sorted(group.offsets.items()):
            end = ends.get(key)
            if end is not None and committed.offset <= end:
                continue
            writes.records.append(offset_record(name, committed, end))
            changed.append(
                ChangedOffset(group=name, topic=key[0], partition=key[1], offset=committed.offset, new_offset=end)
            )
    return changed


def offset_record(group: str, committed: CommittedOffset, new_offset: int | None) -> tuple[bytes, bytes | None]:
    """Return key and value of a commit of another offset; a tombstone for None."""
    from kwire.messages import OffsetCommitKey, OffsetCommitValue

    key = write_prefixed(OffsetCommitKey(group=group, topic=committed.topic, partition=committed.partition), 0)
    if new_offset is None:
        return key, None
    value = OffsetCommitValue(
        offset=new_offset,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp,
        expire_timestamp=committed.expire_timestamp,
        topic_id=committed.topic_id,
    )
    if committed.expire_timestamp != -1:
        return key, write_prefixed(value, EXPIRING_VERSION)
    return key, write_prefixed(value, TOPIC_ID_VERSION if committed.topic_id.int else LEADER_EPOCH_VERSION)
