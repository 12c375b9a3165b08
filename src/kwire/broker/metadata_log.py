"""The metadata log as its one voter writes it: `__cluster_metadata-0`, which a real Kafka can go on with.

Opening it is an election that this node wins: a new leader epoch into quorum-state, a LeaderChange record into the log.
After that every change of the cluster is one batch, on the disk before anybody is told.
Source: KIP-595, KIP-631; org.apache.kafka.raft.KafkaRaftClient, kafka.raft.KafkaMetadataLog 3.9.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from kwire.broker.metadata_records import QUORUM_STATE, QuorumState
from kwire.broker.topics import METADATA_TOPIC
from kwire.log.file_system import FileSystem
from kwire.log.log_config import LogConfig
from kwire.log.partition_writer import PartitionWriter
from kwire.messages import LeaderChangeMessage
from kwire.messages.base import Message
from kwire.protocol.record_values import write_metadata_record
from kwire.records import AppendOrigin, BatchBuilder, ControlRecordType, write_control_batch

if TYPE_CHECKING:
    from kwire.broker.clock import Clock

__all__ = ["MetadataLog"]

TOPIC_ID = UUID(int=1)
"""Uuid.METADATA_TOPIC_ID."""
RECORDS_PER_BATCH = 1000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"delete"}),
    retention_ms=-1,
    retention_bytes=-1,
    segment_bytes=(1 << 30),
    max_message_bytes=8 << 20,
)


class MetadataLog:
    """The open log. leader_epoch: of this start."""

    def __init__(self, log: PartitionWriter, clock: Clock, leader_epoch: int) -> None:
        """Use open()."""
        self.log, self._clock, self.leader_epoch = log, clock, leader_epoch

    @classmethod
    def open(
        cls, file_system: FileSystem, path: str, clock: Clock, *, node_id: int, quorum: QuorumState, clean: bool
    ) -> MetadataLog:
        """Open the log below the log directory `path`, or make it, and become its leader. Raises LogError."""
        directory = f"{path}/{METADATA_TOPIC}-0"
        now_ms = clock.now_ms()
        log = PartitionWriter.open(
            file_system, directory, METADATA_TOPIC, 0, CONFIG, now_ms=now_ms, clean=clean, topic_id=TOPIC_ID
        )
        quorum.leader_epoch += 1
        file_system.write_atomically(f"{directory}/{QUORUM_STATE}", quorum.render(node_id))
        self = cls(log, clock, quorum.leader_epoch)
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
        """Of the newest record."""
        return self.log.log_end_offset - 1

    def append(self, records: Sequence[tuple[Message, int]]) -> None:
        """Write records, each with its version. On return they are on the disk."""
        now_ms = self._clock.now_ms()
        for start in range(0, len(records), RECORDS_PER_BATCH):
            builder = BatchBuilder(base_offset=self.log.log_end_offset, partition_leader_epoch=self.leader_epoch)
            for message, version in records[start : start + RECORDS_PER_BATCH]:
                builder.append(None, write_metadata_record(message, version), timestamp=now_ms)
            self.log.append_as_given(builder.build(), now_ms=now_ms, origin=AppendOrigin.REPLICATION)
        self.log.flush(now_ms=now_ms)

    def close(self) -> None:
        """Close the log's files."""
        self.log.close()
