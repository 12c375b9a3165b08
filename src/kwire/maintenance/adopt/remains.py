"""Remains of an old metadata log: used as far as they can be read.

Every broker has a copy of it, which may be older than the controllers' own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kwire.errors import CorruptBatch, LogError, counted
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.typed_record import usable
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.topics import list_snapshots, read_cluster_records, read_snapshot_records, replay_cluster
from kwire.log.topics.stored_metadata import QUORUM_STATE, read_quorum_state

__all__ = ["Remains", "newest_remains", "read_remains"]


@dataclass(slots=True, kw_only=True)
class Remains:
    """An old metadata log. path: of its directory.

    cluster: its content, None if nothing can be used. end_offset, leader_epoch: at least as high as in every record and
    snapshot in it. notes: what cannot be read.
    """

    path: str
    cluster: ClusterState | None = None
    end_offset: int = 0
    leader_epoch: int = 0
    notes: list[str] = field(default_factory=list)


def read_remains(log: PartitionLog) -> Remains:
    """Read an old metadata log; damage is noted and raises nothing."""
    remains = Remains(path=log.url)
    try:
        for snapshot in list_snapshots(log):
            remains.end_offset = max(remains.end_offset, snapshot.end_offset)
            remains.leader_epoch = max(remains.leader_epoch, snapshot.epoch)
        for _, batch in log.batches():
            remains.end_offset = max(remains.end_offset, batch.last_offset + 1)
            remains.leader_epoch = max(remains.leader_epoch, batch.partition_leader_epoch)
        remains.end_offset = max(remains.end_offset, log.log_end_offset)
    except (CorruptBatch, LogError) as error:
        remains.notes.append(f"{log.url}: damaged: {error}")
    try:
        remains.leader_epoch = max(remains.leader_epoch, read_quorum_state(Path(log.url) / QUORUM_STATE).leader_epoch)
    except LogError as error:
        remains.notes.append(str(error))
    try:
        cluster = replay_cluster(log)
    except LogError as error:
        remains.notes.append(str(error))
        cluster = replay_damaged(log)
    if cluster.problems.count:
        count, first = cluster.problems.count, cluster.problems.records[0]
        remains.notes.append(
            f"{log.url}: cannot use {counted(count, 'record')}, the first at offset {first.offset}: {first.error}"
        )
    if cluster.features:
        remains.cluster = cluster
    else:
        remains.notes.append(f"{log.url}: not used: metadata.version is missing")
    return remains


def replay_damaged(log: PartitionLog) -> ClusterState:
    """Return what the newest snapshot and the log tell, without their unreadable records."""
    cluster = ClusterState()
    try:
        snapshots = list_snapshots(log)
        for snapshot in snapshots[-1:]:
            for record in usable(read_snapshot_records(log, snapshot), cluster.problems):
                cluster.apply(record)
        start = snapshots[-1].end_offset if snapshots else 0
        for record in usable(read_cluster_records(log, start_offset=start), cluster.problems):
            cluster.apply(record)
    except LogError:
        pass  # noted before
    return cluster


def newest_remains(remains: Iterable[Remains]) -> Remains | None:
    """Return the old metadata to use: of those with the least damage, the one of the highest epoch and offset."""
    usable = [each for each in remains if each.cluster is not None]
    return max(usable, key=lambda each: (-len(each.notes), each.leader_epoch, each.end_offset), default=None)
