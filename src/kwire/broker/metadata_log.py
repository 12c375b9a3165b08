"""The metadata log `__cluster_metadata-0`, written by its only voter. Kafka can continue it.

Opening it is an election that this node wins: a new leader epoch in quorum-state, a LeaderChange record in the log.
Every change of the cluster is one batch, which is on disk before any response. Snapshots of the state are written by
size and time, and segments and snapshots beyond retention are removed.

Source: KIP-595, KIP-630, KIP-631; org.apache.kafka.raft.KafkaRaftClient, kafka.raft.KafkaMetadataLog,
org.apache.kafka.image.publisher.SnapshotGenerator 3.9.1.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.metadata_records import VersionedMessage, metadata_record
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.topics.metadata_files import (
    METADATA_TOPIC_ID,
    RECORDS_PER_BATCH,
    drop_log_below,
    snapshot_file,
    write_snapshot,
)
from kwire.log.topics.stored_metadata import QUORUM_STATE, StoredMetadata
from kwire.log.writing.log_config import LogConfig
from kwire.log.writing.partition_writer import PartitionWriter
from kwire.log.writing.recovery import PartitionCheckpoints
from kwire.messages import LeaderChangeMessage
from kwire.protocol.record_values import write_metadata_record
from kwire.records import AppendOrigin, BatchBuilder, ControlRecordType, write_control_batch
from kwire.records.attributes import NO_TIMESTAMP
from kwire.records.format.batch_header import DEFAULT_HEADER_BYTES, parse_header
from kwire.storage.file_system import FileSystem

if TYPE_CHECKING:
    from kwire.broker.clock import Clock
    from kwire.broker.configs.settings import Settings

__all__ = ["Commit", "MetadataLog"]

Commit = Callable[[Sequence[VersionedMessage]], object]
"""MetadataLog.append: writes metadata records and applies them."""

CONFIG = LogConfig(
    cleanup_policy=frozenset({"delete"}),
    retention_ms=-1,
    retention_bytes=-1,
    max_message_bytes=8 << 20,
)
SNAPSHOT_FILE = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class MetadataLog:
    """An open metadata log. leader_epoch: since this start."""

    def __init__(
        self,
        log: PartitionWriter,
        file_system: FileSystem,
        clock: Clock,
        settings: Settings,
        stored: StoredMetadata,
        cluster: ClusterState,
    ) -> None:
        """Use MetadataLog.open."""
        self.log, self._files, self._clock, self._settings = log, file_system, clock, settings
        self.leader_epoch = stored.quorum.leader_epoch
        self._voters = list(stored.voters.items())
        self._cluster = cluster
        self._snapshot_ms = clock.elapsed_ms()
        self._bytes_since_snapshot = 0 if stored.snapshot_offset else log.size_bytes

    @classmethod
    def open(
        cls,
        file_system: FileSystem,
        path: str,
        clock: Clock,
        *,
        node_id: int,
        settings: Settings,
        stored: StoredMetadata,
        cluster: ClusterState,
        clean: bool,
    ) -> MetadataLog:
        """Open or create the log in a log directory, and become its leader.

        stored: its content, which is already applied to cluster. Raises LogError.
        """
        directory = f"{path}/{METADATA_TOPIC}-0"
        now_ms = clock.now_ms()
        config = CONFIG.replace(
            segment_bytes=settings.metadata_log_segment_bytes, segment_ms=settings.metadata_log_segment_ms
        )
        if stored.snapshot_offset > max(stored.log_end_offset, 0):
            drop_log_below(file_system, directory, stored.snapshot_offset)
        log = PartitionWriter.open(
            file_system,
            directory,
            METADATA_TOPIC,
            0,
            config,
            now_ms=now_ms,
            checkpoints=PartitionCheckpoints(is_clean=clean),
            topic_id=METADATA_TOPIC_ID,
        )
        stored.quorum.leader_epoch += 1
        file_system.write_atomically(f"{directory}/{QUORUM_STATE}", stored.quorum.render(node_id))
        self = cls(log, file_system, clock, settings, stored, cluster)
        voters = [LeaderChangeMessage.Voter(voter_id=node_id)]
        change = LeaderChangeMessage(leader_id=node_id, voters=voters, granting_voters=voters)
        batch = write_control_batch(
            [(ControlRecordType.LEADER_CHANGE, change.encode(version=0))],
            timestamp=now_ms,
            base_offset=log.log_end_offset,
            partition_leader_epoch=self.leader_epoch,
        )
        log.append_as_given(batch, now_ms=now_ms, origin=AppendOrigin.REPLICATION)
        return self

    @property
    def last_offset(self) -> int:
        """The offset of the newest record."""
        return self.log.log_end_offset - 1

    def append(self, records: Sequence[VersionedMessage]) -> None:
        """Write records, each with its version, flush them to disk, then apply them to the cluster's state."""
        now_ms, first_offset = self._clock.now_ms(), self.log.log_end_offset
        for start in range(0, len(records), RECORDS_PER_BATCH):
            builder = BatchBuilder(base_offset=self.log.log_end_offset, partition_leader_epoch=self.leader_epoch)
            for message, version in records[start : start + RECORDS_PER_BATCH]:
                builder.append(None, write_metadata_record(message, version), timestamp=now_ms)
            batch = builder.build()
            self.log.append_as_given(batch, now_ms=now_ms, origin=AppendOrigin.REPLICATION)
            self._bytes_since_snapshot += len(batch)
        self.log.flush(now_ms=now_ms)
        for offset, (message, version) in enumerate(records, first_offset):
            self._cluster.apply(metadata_record(message, version, offset=offset, timestamp=now_ms))

    # ---- snapshots

    def maintain(self) -> None:
        """Write a snapshot if one is due, and remove segments and snapshots beyond retention. Raises LogError.

        A snapshot is due after metadata.log.max.record.bytes.between.snapshots and, if anything has changed, after
        metadata.log.max.snapshot.interval.ms (0 disables it).
        """
        settings, now_ms = self._settings, self._clock.now_ms()
        interval_ms = settings.metadata_log_max_snapshot_interval_ms
        if self._bytes_since_snapshot >= settings.metadata_log_max_record_bytes_between_snapshots or (
            self._bytes_since_snapshot and interval_ms and self._clock.elapsed_ms() - self._snapshot_ms >= interval_ms
        ):
            self._write_snapshot(now_ms)
        self._apply_retention(now_ms)

    def _write_snapshot(self, now_ms: int) -> None:
        end = self.log.log_end_offset
        write_snapshot(
            self._files,
            f"{self.log.directory}/{snapshot_file(end, self.leader_epoch)}",
            self._cluster.snapshot_records(),
            epoch=self.leader_epoch,
            timestamp_ms=now_ms,
            voters=self._voters,
        )
        self._snapshot_ms, self._bytes_since_snapshot = self._clock.elapsed_ms(), 0

    def _apply_retention(self, now_ms: int) -> None:
        """Remove old snapshots and segments, but not the newest snapshot. Source: KafkaMetadataLog.maybeClean."""
        snapshots = sorted(name for name in self._files.list(self.log.directory) if SNAPSHOT_FILE.fullmatch(name))
        sizes = {name: self._files.size(f"{self.log.directory}/{name}") for name in snapshots}
        total = self.log.size_bytes + sum(sizes.values())
        for oldest, next_one in itertools.pairwise(snapshots):
            path = f"{self.log.directory}/{oldest}"
            is_old = now_ms - self._snapshot_time(path) > self._settings.metadata_max_retention_ms >= 0
            if not is_old and not total > self._settings.metadata_max_retention_bytes >= 0:
                break
            self._files.remove(path)
            match = SNAPSHOT_FILE.fullmatch(next_one)
            assert match is not None
            before = self.log.size_bytes
            self.log.high_watermark = self.log.log_end_offset
            self.log.delete_records(int(match[1]))
            self.log.delete_old_segments(now_ms)
            total -= sizes[oldest] + before - self.log.size_bytes
        self.log.local.delete_due_files(now_ms)

    def _snapshot_time(self, path: str) -> int:
        """Return the timestamp in a snapshot's header, in ms; a file without one counts as old."""
        with self._files.open(path) as file:
            header = parse_header(file.pread(0, DEFAULT_HEADER_BYTES), 0, 0, path)
        return NO_TIMESTAMP if header is None else header.max_timestamp

    def close(self) -> None:
        """Close the log's files."""
        self.log.close()
