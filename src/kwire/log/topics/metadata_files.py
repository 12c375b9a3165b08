"""Write the files of a metadata log's directory.

    <end offset>-<epoch>.checkpoint    SNAPSHOT_HEADER, KRaft's own records, the state's records, SNAPSHOT_FOOTER

Source: KIP-630; org.apache.kafka.snapshot.RecordsSnapshotWriter 3.9.1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from uuid import UUID

from kwire.internal_topics.metadata_records import VersionedMessage
from kwire.log.files.file_names import parse_segment_file, segment_file
from kwire.messages import SnapshotFooterRecord, SnapshotHeaderRecord
from kwire.protocol.record_values import write_metadata_record
from kwire.records import BatchBuilder, ControlRecordType, write_control_batch
from kwire.storage.checkpoints import LEADER_EPOCHS
from kwire.storage.file_system import FileSystem

__all__ = ["METADATA_TOPIC_ID", "RECORDS_PER_BATCH", "drop_log_below", "snapshot_file", "write_snapshot"]

METADATA_TOPIC_ID = UUID(int=1)
"""Uuid.METADATA_TOPIC_ID."""
RECORDS_PER_BATCH = 1000


def snapshot_file(end_offset: int, leader_epoch: int) -> str:
    """Return the name of a snapshot of the records below end_offset."""
    return f"{end_offset:020d}-{leader_epoch:010d}.checkpoint"


def drop_log_below(files: FileSystem, directory: str, offset: int) -> None:
    """Remove all segments, and start an empty log at an offset, that of a newer snapshot. Raises LogError.

    A broker that has fetched a snapshot and crashed leaves such a log.
    Source: kafka.raft.KafkaMetadataLog.truncateToLatestSnapshot.
    """
    for name in files.list(directory):
        if parse_segment_file(name) is not None or name == LEADER_EPOCHS:
            files.remove(f"{directory}/{name}")
    files.write_atomically(f"{directory}/{segment_file(offset, 'log')}", b"")


def write_snapshot(
    files: FileSystem,
    path: str,
    records: Iterable[VersionedMessage],
    *,
    epoch: int,
    timestamp_ms: int,
    voters: Iterable[tuple[ControlRecordType, bytes]],
) -> None:
    """Write a snapshot file atomically.

    timestamp_ms: of the last record in the state. voters: KRAFT_VERSION and KRAFT_VOTERS records of the log, none
    before kraft.version 1. Raises LogError.
    """
    header = SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms).encode(version=0)
    first = [(ControlRecordType.SNAPSHOT_HEADER, header), *voters]
    content = bytearray(write_control_batch(first, timestamp=timestamp_ms, partition_leader_epoch=epoch))
    offset = len(first)
    remaining = iter(records)
    while chunk := list(itertools.islice(remaining, RECORDS_PER_BATCH)):
        builder = BatchBuilder(base_offset=offset, partition_leader_epoch=epoch)
        for message, version in chunk:
            builder.append(None, write_metadata_record(message, version), timestamp=timestamp_ms)
        content += builder.build()
        offset += len(chunk)
    footer = (ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord().encode(version=0))
    content += write_control_batch([footer], timestamp=timestamp_ms, base_offset=offset, partition_leader_epoch=epoch)
    files.write_atomically(path, bytes(content))
