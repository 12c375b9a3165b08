"""Write a metadata log that Kafka's controllers and brokers start from, into directories without one.

    __cluster_metadata-0/<end offset>-<epoch>.checkpoint    the cluster: a snapshot
                         <end offset>.log                   empty: the log begins after the snapshot
                         quorum-state                       the epoch, without a leader or voters
                         partition.metadata                 the metadata topic's id

Every voter and every broker of the cluster gets the same files, and the voters elect a leader as after any restart.
The voters are in `controller.quorum.voters` (a static quorum, kraft.version 0) or in the snapshot (a dynamic one,
kraft.version 1, KIP-853).
Source: org.apache.kafka.raft.QuorumState.initialize, kafka.raft.KafkaMetadataLog; KIP-595, KIP-630.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.cluster_values import Voter
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.files.file_names import segment_file
from kwire.log.topics.metadata_files import METADATA_TOPIC_ID, snapshot_file, write_snapshot
from kwire.log.topics.stored_metadata import QUORUM_STATE, QuorumState
from kwire.records import ControlRecordType
from kwire.storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA, render_leader_epochs, render_partition_metadata
from kwire.storage.file_system import FileSystem

__all__ = ["FIRST_LEADER_EPOCH", "METADATA_DIRECTORY", "write_metadata_log"]

METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
FIRST_LEADER_EPOCH = 1
DYNAMIC_QUORUM = 1  # kraft.version


def write_metadata_log(
    files: FileSystem,
    directory: str,
    cluster: ClusterState,
    *,
    now_ms: int,
    end_offset: int | None = None,
    leader_epoch: int = FIRST_LEADER_EPOCH,
    voters: Sequence[Voter] = (),
) -> None:
    """Write a metadata log whose content is a cluster (see `new_cluster`) into a missing or empty directory.

    directory: of the metadata log, such as `data/__cluster_metadata-0`. end_offset: of the snapshot, at least 1; by
    default the end of the cluster's log. leader_epoch: elections continue after it. Both must be higher than in any
    metadata log of the same cluster that a node may still have. voters: of a dynamic quorum, by the directory ids in
    their meta.properties; without any, the quorum is static. Raises LogError.
    """
    end = cluster.end_offset if end_offset is None else end_offset
    assert end > 0  # a snapshot at offset 0 holds KRaft's own records alone
    files.make_directory(directory)
    content = {
        PARTITION_METADATA: render_partition_metadata(METADATA_TOPIC_ID),
        LEADER_EPOCHS: render_leader_epochs(()),
        QUORUM_STATE: QuorumState(leader_epoch=leader_epoch, data_version=1 if voters else 0).render(),
        segment_file(end, "log"): b"",
    }
    for name, data in content.items():
        files.write_atomically(f"{directory}/{name}", data)
    write_snapshot(
        files,
        f"{directory}/{snapshot_file(end, leader_epoch)}",
        cluster.snapshot_records(),
        epoch=leader_epoch,
        timestamp_ms=now_ms,
        voters=voter_records(voters) if voters else (),
    )


def voter_records(voters: Sequence[Voter]) -> list[tuple[ControlRecordType, bytes]]:
    """Return the control records of a dynamic quorum in a snapshot."""
    from kwire.messages import KRaftVersionRecord, VotersRecord
    from kwire.messages.voters_record import KRaftVersionFeature

    record = VotersRecord(
        voters=[
            VotersRecord.Voter(
                voter_id=each.node_id,
                voter_directory_id=each.directory_id,
                endpoints=[VotersRecord.Endpoint(name=e.name, host=e.host, port=e.port) for e in each.endpoints],
                kraft_version_feature=KRaftVersionFeature(max_supported_version=DYNAMIC_QUORUM),
            )
            for each in voters
        ]
    )
    return [
        (ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=DYNAMIC_QUORUM).encode(version=0)),
        (ControlRecordType.KRAFT_VOTERS, record.encode(version=0)),
    ]
