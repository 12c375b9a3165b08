"""Reading the metadata log `__cluster_metadata-0` and its snapshots.

    00000000000000000401-0000000003.checkpoint    the state of all records below offset 401, written in epoch 3:
                                                  batches like a log's, SNAPSHOT_HEADER first, SNAPSHOT_FOOTER last

The state at an offset or time is loaded from the newest snapshot at or below it, so a log whose beginning was deleted
can be replayed from its oldest snapshot on. A snapshot without a footer is incomplete and ignored.
Source: KIP-630; org.apache.kafka.snapshot.Snapshots, RecordsSnapshotReader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import msgspec

from kwire.errors import CorruptBatch, LogError
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.metadata_records import decode_metadata
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.internal_topics.typed_record import Problems, TypedRecord, damage_row, typed_records, usable
from kwire.log.topics.history import Source, partitions_of, read_history

if TYPE_CHECKING:
    from kwire.log.reading.partition_listing import PartitionListing
    from kwire.log.reading.readable_log import ReadableLog

__all__ = [
    "Snapshot",
    "list_snapshots",
    "read_cluster_records",
    "read_snapshot_records",
    "replay_cluster",
]

SNAPSHOT_FILE = re.compile(r"(?P<offset>\d{20})-(?P<epoch>\d{10})\.checkpoint")
IN_SNAPSHOT = -1  # the partition of records in a snapshot: they are not of the log


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot file: the state below end_offset, written in a leader epoch."""

    name: str
    end_offset: int
    epoch: int


def metadata_log(source: Source) -> ReadableLog:
    """Return the metadata log of a directory. Raises LogError if it has none."""
    return partitions_of(source, METADATA_TOPIC)[0]


def _files(source: Source) -> PartitionListing:
    return cast("PartitionListing", metadata_log(source))  # brokers serve it to no client, so it is in files


def list_snapshots(source: Source) -> list[Snapshot]:
    """Return the snapshots of the metadata log, oldest first. Raises LogError."""
    log = _files(source)
    snapshots = [
        Snapshot(name=entry.name, end_offset=int(match["offset"]), epoch=int(match["epoch"]))
        for entry in log.store.list(log.directory)
        if not entry.is_directory and (match := SNAPSHOT_FILE.fullmatch(entry.name))
    ]
    return sorted(snapshots, key=lambda each: (each.end_offset, each.epoch))


def read_cluster_records(
    source: Source, *, start_offset: int = 0, at_offset: int | None = None, at_time: int | None = None
) -> Iterator[TypedRecord]:
    """Yield every record of the metadata log in order, control records included. Raises LogError."""
    return read_history(
        metadata_log(source), decode_metadata, start_offset=start_offset, at_offset=at_offset, at_time=at_time
    )


def read_snapshot_records(source: Source, snapshot: Snapshot) -> Iterator[TypedRecord]:
    """Yield every record of a snapshot, header and footer included; offsets count within the file. Raises LogError."""
    from kwire.records import read_batches

    log = _files(source)
    data = log.read_file(snapshot.name)
    offset = 0
    try:
        for batch in read_batches(data, file=log.url_of(snapshot.name)):
            for record in typed_records(METADATA_TOPIC, IN_SNAPSHOT, batch, decode_metadata):
                yield record
                offset = record.offset + 1
    except CorruptBatch as error:
        yield damage_row(METADATA_TOPIC, IN_SNAPSHOT, offset, error)


def replay_cluster(source: Source, *, at_offset: int | None = None, at_time: int | None = None) -> ClusterState:
    """Return the cluster at an offset or time, at the end of the log by default.

    Memory: the state, and one snapshot file. Raises LogError without a metadata log, or if its beginning was deleted
    and no snapshot covers it.
    """
    log = metadata_log(source)
    cluster = ClusterState()
    for snapshot in reversed(list_snapshots(source)):
        if at_offset is not None and snapshot.end_offset > at_offset:
            continue
        from_snapshot = _from_snapshot(source, snapshot, at_time)
        if from_snapshot is not None:
            cluster = from_snapshot
            break
    if log.log_start_offset > cluster.end_offset:
        raise LogError(
            f"metadata log begins at offset {log.log_start_offset}, and no snapshot covers the records before it",
            log.url,
        )
    records = read_cluster_records(source, start_offset=cluster.end_offset, at_offset=at_offset, at_time=at_time)
    for record in usable(records, cluster.problems):
        cluster.apply(record)
    if cluster.leader == -1 and cluster.snapshot_offset is not None:
        cluster.leader = _leader_before(log, cluster.snapshot_offset)
    return cluster


def _leader_before(log: ReadableLog, offset: int) -> int:
    """Return the leader of the last election below offset, which snapshots do not contain; -1 if unknown."""
    leader = -1
    for record in usable(_elections(log, offset), Problems()):
        if record.kind == "LEADER_CHANGE" and record.value is not None:
            leader = getattr(record.value, "leader_id", -1)
    return leader


def _elections(log: ReadableLog, offset: int) -> Iterator[TypedRecord]:
    """Yield the control records below offset; of other batches only the headers are read."""
    try:
        for _, batch in log.batches(log.log_start_offset):
            if batch.base_offset >= offset:
                return
            if batch.is_control:
                yield from typed_records(log.topic, log.partition, batch, decode_metadata)
    except CorruptBatch as error:
        yield damage_row(log.topic, log.partition, offset, error)


def _from_snapshot(source: Source, snapshot: Snapshot, at_time: int | None) -> ClusterState | None:
    """Load the cluster from a snapshot; None if it is incomplete or later than at_time."""
    cluster = ClusterState()
    timestamp, finished = -1, False
    for record in usable(read_snapshot_records(source, snapshot), cluster.problems):
        if record.kind == "SNAPSHOT_HEADER":
            timestamp = getattr(record.value, "last_contained_log_timestamp", -1)
            if at_time is not None and timestamp > at_time:
                return None
        finished = record.kind == "SNAPSHOT_FOOTER"
        cluster.apply(record)
    if not finished or cluster.problems.count:
        return None
    cluster.end_offset, cluster.end_timestamp, cluster.snapshot_offset = (
        snapshot.end_offset,
        timestamp,
        snapshot.end_offset,
    )
    return cluster
