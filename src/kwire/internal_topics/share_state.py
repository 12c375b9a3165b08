"""Delivery progress of share groups, folded from `__share_group_state` (KIP-932).

    snapshot    the whole state of a (group, topic id, partition)
    update      changes since the snapshot of the same epoch

Where ranges of offsets overlap, the one with the higher delivery count wins, then the one with the later state. Ranges
below the start offset are dropped.
Source: ShareCoordinatorShard.replay, ShareGroupOffset, PersisterStateBatchCombiner of 4.x.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import UUID

import msgspec

from kwire.internal_topics.enums import StateNumber, label
from kwire.internal_topics.typed_record import Problems, TypedRecord

if TYPE_CHECKING:
    from kwire import messages as m

__all__ = [
    "UNSET",
    "DeliveredRange",
    "DeliveryState",
    "SharePartition",
    "ShareState",
    "merge_ranges",
]

UNSET = -1
"""A value that a record leaves as it was, or that is not known yet."""


class DeliveryState(StateNumber):
    """The state of records that a share group has fetched."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class DeliveredRange(NamedTuple):
    """Offsets from first to last, inclusive, with their delivery state and delivery count."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

    @property
    def state_name(self) -> str:
        """The delivery state's name; its number for an unknown one."""
        return label(DeliveryState.of(self.delivery_state))


class SharePartition(msgspec.Struct, kw_only=True):
    """The progress of a share group in one partition.

    partition: of the topic. state_partition: of `__share_group_state`. start_offset: lower records are not delivered
    again, -1 before the first delivery. delivery_complete_count: records from there on that are done, -1 if unknown.
    ranges: in flight or done, from the start offset on. record_offset, timestamp: of the last record.
    """

    group_id: str
    topic_id: UUID
    partition: int
    state_partition: int
    snapshot_epoch: int = -1
    state_epoch: int = -1
    leader_epoch: int = -1
    start_offset: int = UNSET
    delivery_complete_count: int = UNSET
    create_timestamp: int = -1
    write_timestamp: int = -1
    ranges: tuple[DeliveredRange, ...] = ()
    record_offset: int = -1
    timestamp: int = -1


@dataclass(slots=True, kw_only=True)
class ShareState:
    """All share partitions by (group, topic id, partition), and the records that could not be applied."""

    partitions: dict[tuple[str, UUID, int], SharePartition] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)

    def apply(self, record: TypedRecord) -> None:
        """Apply one usable record."""
        if record.key is None:
            return
        key = cast("m.ShareSnapshotKey | m.ShareUpdateKey", record.key)
        partition_key = (key.group_id, key.topic_id, key.partition)
        if record.value is None:
            self.partitions.pop(partition_key, None)
            return
        if record.kind == "ShareSnapshot":
            self.partitions[partition_key] = _from_snapshot(partition_key, record)
        elif partition_key in self.partitions:
            _update(self.partitions[partition_key], record)


def _from_snapshot(partition_key: tuple[str, UUID, int], record: TypedRecord) -> SharePartition:
    value = cast("m.ShareSnapshotValue", record.value)
    return SharePartition(
        group_id=partition_key[0],
        topic_id=partition_key[1],
        partition=partition_key[2],
        state_partition=record.partition,
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        create_timestamp=value.create_timestamp,
        write_timestamp=value.write_timestamp,
        ranges=_ranges(value),
        record_offset=record.offset,
        timestamp=record.timestamp,
    )


def _update(partition: SharePartition, record: TypedRecord) -> None:
    value = cast("m.ShareUpdateValue", record.value)
    partition.record_offset, partition.timestamp = record.offset, record.timestamp
    if value.leader_epoch != UNSET:
        partition.leader_epoch = value.leader_epoch
    if value.start_offset != UNSET:
        partition.start_offset = value.start_offset
    if value.delivery_complete_count != UNSET:
        partition.delivery_complete_count = value.delivery_complete_count
    partition.ranges = merge_ranges((*partition.ranges, *_ranges(value)), partition.start_offset)


def _ranges(value: m.ShareSnapshotValue | m.ShareUpdateValue) -> tuple[DeliveredRange, ...]:
    return tuple(
        DeliveredRange(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in value.state_batches
    )


def merge_ranges(ranges: Iterable[DeliveredRange], start_offset: int = UNSET) -> tuple[DeliveredRange, ...]:
    """Return ranges in order without overlaps; neighbours of the same kind are joined.

    start_offset: lower offsets are dropped. Cost: n log n for n ranges.
    """
    opening: dict[int, list[tuple[int, int]]] = {}
    closing: dict[int, list[tuple[int, int]]] = {}
    for each in ranges:
        first = max(each.first_offset, start_offset)
        if first <= each.last_offset:
            opening.setdefault(first, []).append((each.delivery_count, each.delivery_state))
            closing.setdefault(each.last_offset + 1, []).append((each.delivery_count, each.delivery_state))
    borders = sorted(opening.keys() | closing.keys())
    merged: list[DeliveredRange] = []
    active: list[tuple[int, int]] = []
    for border, end in itertools.pairwise(borders):  # at the last one everything has ended
        for ended in closing.get(border, ()):
            active.remove(ended)
        active += opening.get(border, ())
        if not active:
            continue
        count, state = max(active)
        last = merged[-1] if merged else None
        if last is not None and (last.last_offset + 1, *last[2:]) == (border, state, count):
            merged[-1] = last._replace(last_offset=end - 1)
        else:
            merged.append(DeliveredRange(border, end - 1, state, count))
    return tuple(merged)
