"""Share groups at the cut: their delivery states agree with the logs, and the groups' records with the states.

`__share_group_state` has the state of each partition of each group, `__consumer_offsets` which partitions have one.
Both are cut like other topics. Then, for each share group:

    a state beyond its log                  ends at the cut: records that are written there later are delivered
    a state of no partition                 deleted
    a state that the group does not list    listed: Kafka would begin it again, at the end of the log by default
    a listed partition without a state      as it begins above the cut; or from the log start on, where records of
                                            `__share_group_state` that snapshots replaced are gone
    a state without a start offset          gets the one that the group began with, if a record above the cut tells it:
                                            Kafka does not write it before the first acknowledgement
    epochs of a state                       the group's epoch and the partition's leader epoch are at least as high,
                                            otherwise the share coordinator would fence them

A group that only has states is written again, unless `__consumer_offsets` says that it was deleted.

Source: ShareCoordinatorShard, GroupMetadataManager, kafka.server.share.SharePartition 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from uuid import UUID

from kwire.identifiers import TopicPartition, render_uuid
from kwire.internal_topics.coordinator_records import decode_share_state
from kwire.internal_topics.groups_state import Group
from kwire.internal_topics.names import GROUPS_TOPIC, SHARE_STATE_TOPIC
from kwire.internal_topics.placement import partition_for
from kwire.internal_topics.share_state import (
    UNSET,
    DeliveredRange,
    DeliveryState,
    SharePartition,
    ShareState,
    merge_ranges,
)
from kwire.internal_topics.typed_record import TypedRecord, usable
from kwire.log.topics.history import read_history
from kwire.maintenance.restore.changes import Writes
from kwire.maintenance.restore.offsets import ChangedOffset
from kwire.maintenance.restore.survey import Survey
from kwire.protocol.record_values import write_prefixed

if TYPE_CHECKING:
    from kwire import messages as m
    from kwire.messages.base import Message
    from kwire.messages.share_group_state_partition_metadata_value import TopicPartitionsInfo

__all__ = ["ShareGroups", "limit_share_groups"]

Key = tuple[str, UUID, int]
DONE = (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)
FIRST_EPOCH = 1


@dataclass(slots=True)
class ShareGroups:
    """The share groups in `__consumer_offsets` at the cut, and the names of those that it has deleted."""

    groups: dict[str, Group] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)


@dataclass(slots=True)
class CutStates:
    """The states at the cut, and what the records above it tell.

    begun: the first start offset of states that have none below the cut. fresh: states that begin above it.
    """

    partitions: dict[Key, SharePartition] = field(default_factory=dict)
    begun: dict[Key, int] = field(default_factory=dict)
    fresh: set[Key] = field(default_factory=set)


def limit_share_groups(
    surveys: Mapping[TopicPartition, Survey | None],
    names: Mapping[UUID, str],
    shares: ShareGroups,
    writes: Mapping[TopicPartition, Writes],
) -> tuple[list[ChangedOffset], list[str]]:
    """Add the records that let share groups continue at the cut; return what changes, and warnings.

    surveys: of all partitions; None for an empty one. names: of the topics. writes: makes an entry where there is none.
    Raises the leader epochs of surveys. Memory: the states of all share partitions. Raises LogError.
    """
    cut = ShareCut(surveys=surveys, names=names, writes=writes, states=read_states(surveys))
    keys: dict[str, list[Key]] = {name: [] for name in shares.groups}
    for key in cut.states.partitions:
        keys.setdefault(key[0], []).append(key)
    for name in sorted(keys):
        cut.change_group(name, shares.groups.get(name), sorted(keys[name]), is_deleted=name in shares.deleted)
    return cut.changed, cut.warnings


def read_states(surveys: Mapping[TopicPartition, Survey | None]) -> CutStates:
    """Read `__share_group_state` on both sides of the cut. Raises LogError."""
    found = CutStates()
    for (topic, _), survey in surveys.items():
        if topic != SHARE_STATE_TOPIC or survey is None:
            continue
        state, ended = ShareState(partitions=found.partitions), set[Key]()
        for record in usable(read_history(survey.log, decode_share_state, at_offset=survey.source_end), state.problems):
            if record.offset < survey.cut_offset:
                state.apply(record)
            elif record.key is not None:
                look_ahead(found, ended, record)
    return found


def look_ahead(found: CutStates, ended: set[Key], record: TypedRecord) -> None:
    """Note what a record above the cut says about a state below it. ended: states that began again, or were deleted."""
    own = cast("m.ShareSnapshotKey | m.ShareUpdateKey", record.key)
    key = (own.group_id, own.topic_id, own.partition)
    known = found.partitions.get(key)
    if key in ended or key in found.begun:
        return
    if record.value is None:
        ended.add(key)
        return
    value = cast("m.ShareSnapshotValue | m.ShareUpdateValue", record.value)
    if known is None and key not in found.fresh:
        is_first = record.kind == "ShareSnapshot" and value.start_offset == UNSET
        (found.fresh if is_first else ended).add(key)
    elif value.start_offset != UNSET and (known is None or known.start_offset == UNSET):
        found.begun[key] = value.start_offset


@dataclass(slots=True, kw_only=True)
class ShareCut:
    """Changes the share groups of a directory. See limit_share_groups."""

    surveys: Mapping[TopicPartition, Survey | None]
    names: Mapping[UUID, str]
    writes: Mapping[TopicPartition, Writes]
    states: CutStates
    changed: list[ChangedOffset] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def change_group(self, name: str, group: Group | None, keys: Sequence[Key], *, is_deleted: bool) -> None:
        """Change a group and its states. group: None if only states are left of it."""
        if group is None and is_deleted:
            for key in keys:
                self.write_state(key, None)
            return
        listed = {kind: partitions_of(group, kind) for kind in ("initializing", "initialized", "deleting")}
        ready = {key for key in listed["initialized"] if (name, *key) not in self.states.partitions}
        for topic_id, index in sorted(ready):
            self.begin_state((name, topic_id, index))
        for key in keys:
            if self.change_state(key) and not any(key[1] == topic_id for topic_id, _ in listed["deleting"]):
                ready.add(key[1:])
        ready = {key for key in ready if self.has_log(key)}
        initializing = {key for key in listed["initializing"] - ready if self.has_log(key)}
        if (ready, initializing) != (listed["initialized"], listed["initializing"]):
            self.write_partitions(name, group, ready, initializing)
        epoch = max((self.states.partitions[key].state_epoch for key in keys), default=FIRST_EPOCH)
        if group is None or group.epoch < epoch:
            self.write_epoch(name, max(epoch, FIRST_EPOCH), 0 if group is None else group.metadata_hash)

    def has_log(self, key: tuple[UUID, int]) -> bool:
        """Return whether the directory has a partition."""
        return (self.names.get(key[0], ""), key[1]) in self.surveys

    def change_state(self, key: Key) -> bool:
        """End a state at the cut of its log; return whether there is one."""
        stored = self.states.partitions[key]
        if not self.has_log(key[1:]):
            self.write_state(key, None)
            self.note(key, reach(stored), None)
            return False
        survey = self.surveys[self.names[key[1]], key[2]]
        end = 0 if survey is None else survey.cut_offset
        if survey is not None:
            survey.latest_epoch = max(survey.latest_epoch, stored.leader_epoch)
        start = stored.start_offset
        if start == UNSET and self.states.begun.get(key, end + 1) <= end:
            start = self.states.begun[key]
        start = min(start, end)
        ranges = merge_ranges(
            [each._replace(last_offset=min(each.last_offset, end - 1)) for each in stored.ranges], start
        )
        if (start, ranges) != (stored.start_offset, stored.ranges):
            before = reach(stored)
            stored.start_offset, stored.ranges = start, ranges
            if stored.delivery_complete_count != UNSET:
                stored.delivery_complete_count = sum(
                    each.last_offset - each.first_offset + 1 for each in ranges if each.delivery_state in DONE
                )
            stored.snapshot_epoch += 1
            self.write_state(key, stored)
            self.note(key, before, reach(stored))
        return True

    def begin_state(self, key: Key) -> None:
        """Write the state of a partition that its group lists and that has none at the cut."""
        if not self.has_log(key[1:]):
            return
        survey = self.surveys[self.names[key[1]], key[2]]
        start, end = (0, 0) if survey is None else (survey.log_start_offset, survey.cut_offset)
        if key in self.states.fresh:
            begun = self.states.begun.get(key, end + 1)
            start = begun if begun <= end else UNSET
        else:
            what = f"the state of partition {self.names[key[1]]}-{key[2]} at the cut is gone"
            self.warnings.append(f"share group {key[0]}: {what}; it is delivered from offset {start} on")
        stored = SharePartition(
            group_id=key[0],
            topic_id=key[1],
            partition=key[2],
            state_partition=0,
            snapshot_epoch=0,
            state_epoch=0,
            leader_epoch=0,
            start_offset=start,
            delivery_complete_count=UNSET if start == UNSET else 0,
        )
        self.write_state(key, stored)
        self.note(key, UNSET, start)

    def note(self, key: Key, offset: int, new_offset: int | None) -> None:
        """Report a changed state."""
        topic = self.names.get(key[1]) or render_uuid(key[1])
        self.changed.append(
            ChangedOffset(group=key[0], topic=topic, partition=key[2], offset=offset, new_offset=new_offset)
        )

    # --- records

    def write_state(self, key: Key, stored: SharePartition | None) -> None:
        """Add a snapshot, or a tombstone."""
        from kwire.messages import ShareSnapshotKey, ShareSnapshotValue

        value = None
        if stored is not None:
            value = ShareSnapshotValue(
                snapshot_epoch=stored.snapshot_epoch,
                state_epoch=stored.state_epoch,
                leader_epoch=stored.leader_epoch,
                start_offset=stored.start_offset,
                delivery_complete_count=stored.delivery_complete_count,
                create_timestamp=stored.create_timestamp,
                write_timestamp=stored.write_timestamp,
                state_batches=[
                    ShareSnapshotValue.StateBatch(
                        first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                    )
                    for first, last, state, count in stored.ranges
                ],
            )
        record = ShareSnapshotKey(group_id=key[0], topic_id=key[1], partition=key[2])
        self.write(SHARE_STATE_TOPIC, f"{key[0]}:{render_uuid(key[1])}:{key[2]}", key[0], record, value)

    def write_partitions(
        self, name: str, group: Group | None, ready: set[tuple[UUID, int]], initializing: set[tuple[UUID, int]]
    ) -> None:
        """Add the record of the partitions that have a state."""
        from kwire.messages import ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue

        cls = ShareGroupStatePartitionMetadataValue

        def infos(keys: set[tuple[UUID, int]]) -> list[TopicPartitionsInfo]:
            indexes: dict[UUID, list[int]] = {}
            for topic_id, index in sorted(keys):
                indexes.setdefault(topic_id, []).append(index)
            return [
                cls.TopicPartitionsInfo(topic_id=topic_id, topic_name=self.names[topic_id], partitions=each)
                for topic_id, each in indexes.items()
            ]

        deleting = () if group is None else group.share_partitions.get("deleting", ())
        value = cls(
            initializing_topics=infos(initializing),
            initialized_topics=infos(ready),
            deleting_topics=[
                cls.TopicInfo(topic_id=each.topic_id, topic_name=self.names[each.topic_id])
                for each in deleting
                if each.topic_id is not None and each.topic_id in self.names
            ],
        )
        self.write(GROUPS_TOPIC, name, name, ShareGroupStatePartitionMetadataKey(group_id=name), value)

    def write_epoch(self, name: str, epoch: int, metadata_hash: int) -> None:
        """Add the record of a group's epoch."""
        from kwire.messages import ShareGroupMetadataKey, ShareGroupMetadataValue

        value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        self.write(GROUPS_TOPIC, name, name, ShareGroupMetadataKey(group_id=name), value)

    def write(self, topic: str, text: str, name: str, key: Message, value: Message | None) -> None:
        """Add a record to the partition of a topic for a text; name: of the group."""
        count = max((index for other, index in self.surveys if other == topic), default=-1) + 1
        place = topic, partition_for(text, count) if count else 0
        if self.surveys.get(place) is None:
            self.warnings.append(f"share group {name}: {topic} has no partition for it in the source; it begins again")
            return
        encoded = None if value is None else write_prefixed(value, 0)
        self.writes[place].records.append((write_prefixed(key, 0), encoded))


def partitions_of(group: Group | None, kind: str) -> set[tuple[UUID, int]]:
    """Return the partitions that a group lists, as (topic id, number); of deleted topics, the number is 0."""
    return set() if group is None else set(listed_in(group, kind))


def listed_in(group: Group, kind: str) -> Iterator[tuple[UUID, int]]:
    """Yield the partitions of one kind that a group lists."""
    for each in group.share_partitions.get(kind, ()):
        if each.topic_id is not None:
            for index in each.partitions or (0,):
                yield each.topic_id, index


def reach(stored: SharePartition) -> int:
    """Return the offset after the last one that a state says something about; UNSET if it says nothing."""
    ranges: Sequence[DeliveredRange] = stored.ranges
    return max(stored.start_offset, ranges[-1].last_offset + 1 if ranges else UNSET)
