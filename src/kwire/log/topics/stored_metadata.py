"""Reading a stored metadata log: its newest snapshot, then the log from there on.

    <offset>-<epoch>.checkpoint    the records that make up the state below that offset
    <offset>.log                   batches of records; control batches are KRaft's own
    quorum-state                   the leader and its epoch (F-50)

Reading a log ends at the first truncated or corrupt batch, as recovery truncates it there. Incomplete snapshots are
ignored. A record that cannot be applied is an error, because the next snapshot would lose it.
Source: org.apache.kafka.image.loader.MetadataBatchLoader, org.apache.kafka.raft.FileQuorumStateStore 3.9.1.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kwire.errors import CorruptBatch, LogError
from kwire.internal_topics.cluster_state import NO_LEADER, RECORD_KINDS, ClusterState
from kwire.internal_topics.metadata_records import decode_metadata
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.internal_topics.typed_record import DAMAGE, TypedRecord, typed_records
from kwire.records import ControlRecordType, read_batches

__all__ = ["QUORUM_STATE", "QuorumState", "StoredMetadata", "apply_records", "read_metadata"]

QUORUM_STATE = "quorum-state"
NO_DIRECTORY = "A" * 22  # a zero UUID


class QuorumState(msgspec.Struct, kw_only=True):
    """The file quorum-state. data_version: 0 with fixed voters, 1 with voters in the log (KIP-853)."""

    leader_epoch: int = 0
    data_version: int = 0

    def render(self, leader_id: int | None = None) -> bytes:
        """Return the file's content with a leader, which is the only voter; by default without leader and voters."""
        leader = {
            "leaderId": NO_LEADER if leader_id is None else leader_id,
            "leaderEpoch": self.leader_epoch,
            "votedId": -1,
        }
        if self.data_version == 0:
            voters = [] if leader_id is None else [{"voterId": leader_id}]
            state = {"clusterId": "", **leader, "appliedOffset": 0, "currentVoters": voters, "data_version": 0}
        else:
            state = {**leader, "votedDirectoryId": NO_DIRECTORY, "data_version": 1}
        return json.dumps(state, separators=(",", ":")).encode()


@dataclass(slots=True, kw_only=True)
class StoredMetadata:
    """The content of a metadata log's directory.

    records: of the newest snapshot and of the log above it. quorum: with the highest leader epoch of the file and of
    all batches. voters: the newest KRAFT_VERSION and KRAFT_VOTERS records, which only logs with kraft.version 1 have.
    snapshot_offset: the end offset of the newest snapshot, 0 without one. log_end_offset: of the log, -1 without one;
    it can be below the snapshot, which then replaces the log.
    """

    records: list[TypedRecord] = field(default_factory=list)
    quorum: QuorumState = field(default_factory=QuorumState)
    voters: dict[ControlRecordType, bytes] = field(default_factory=dict)
    snapshot_offset: int = 0
    log_end_offset: int = -1


def read_metadata(directory: Path) -> StoredMetadata:
    """Read a metadata log's directory; a missing one is empty.

    Raises LogError, also for records of unknown types or versions, and if no snapshot covers the beginning of the log.
    """
    stored = StoredMetadata()
    if not directory.is_dir():
        return stored
    for path in sorted(directory.glob("[0-9]*-[0-9]*.checkpoint"), reverse=True):
        read_file(stored, path, 0)
        if stored.records and stored.records[-1].kind == "SNAPSHOT_FOOTER":
            stored.snapshot_offset = int(path.name.partition("-")[0])
            break
        stored = StoredMetadata()
    segments = sorted(directory.glob("*.log"))
    if segments and int(segments[0].stem) > stored.snapshot_offset:
        what = f"metadata log begins at offset {int(segments[0].stem)}, and no snapshot covers the records before it"
        raise LogError(what, str(directory))
    for path in segments:
        stored.log_end_offset = max(
            stored.log_end_offset, int(path.stem), read_file(stored, path, stored.snapshot_offset)
        )
    quorum = read_quorum_state(directory / QUORUM_STATE)
    quorum.leader_epoch = max(quorum.leader_epoch, stored.quorum.leader_epoch)
    stored.quorum = quorum
    return stored


def apply_records(stored: StoredMetadata, cluster: ClusterState) -> None:
    """Apply stored records to a cluster. Raises LogError for one that refers to something that does not exist."""
    for record in stored.records:
        cluster.apply(record)
    for problem in cluster.problems.records:
        raise LogError(f"metadata record at offset {problem.offset}: {problem.error}", METADATA_TOPIC)


def read_quorum_state(path: Path) -> QuorumState:
    """Read the file; a missing one has the values of a new cluster. Raises LogError."""
    if not path.exists():
        return QuorumState()
    try:
        state = json.loads(path.read_bytes())
        return QuorumState(leader_epoch=int(state["leaderEpoch"]), data_version=int(state["data_version"]))
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"invalid quorum state: {error}", str(path)) from None


def read_file(stored: StoredMetadata, path: Path, start_offset: int) -> int:
    """Add the records of a snapshot or segment from start_offset on; return the offset after its last batch, or 0.

    Raises LogError.
    """
    end = 0
    try:
        for batch in read_batches(path.read_bytes()):
            batch.check()
            stored.quorum.leader_epoch = max(stored.quorum.leader_epoch, batch.partition_leader_epoch)
            if batch.last_offset >= start_offset:
                for record in typed_records(METADATA_TOPIC, 0, batch, decode_metadata):
                    if record.kind == DAMAGE:
                        return end
                    if record.offset >= start_offset:
                        read_record(stored, record, path)
            end = batch.last_offset + 1
    except CorruptBatch:
        pass
    return end


def read_record(stored: StoredMetadata, record: TypedRecord, path: Path) -> None:
    """Add a record. Raises LogError for one that cannot be applied, which the next snapshot would lose."""
    if record.kind in ("KRAFT_VERSION", "KRAFT_VOTERS"):
        stored.voters[ControlRecordType[record.kind]] = record.raw_value or b""
    if not record.is_control and (record.error is not None or record.kind not in RECORD_KINDS):
        what = record.error or f"record type {record.record_type} is not supported"
        raise LogError(f"metadata record at offset {record.offset}: {what}", str(path))
    stored.records.append(record)
