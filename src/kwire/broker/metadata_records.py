"""Reading what a cluster's metadata log says: its newest snapshot, then the log from there on.

    <offset>-<epoch>.checkpoint    batches that make the state below that offset, between a header and a footer
    <offset>.log                   batches of records; control batches belong to the voters
    quorum-state                   who leads, and in which epoch (F-50)

Records between BeginTransaction and EndTransaction count together or, after AbortTransaction, not at all (KIP-868).
A batch that is cut or damaged ends the reading, as it ends the log when a broker recovers it.
Source: org.apache.kafka.image.loader.MetadataBatchLoader, org.apache.kafka.raft.FileQuorumStateStore 3.9.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kwire.errors import CorruptBatch, DecodeError, LogError, UnsupportedVersion
from kwire.messages.base import Message
from kwire.protocol.record_values import read_metadata_record
from kwire.records import ControlRecordType, parse_control_record
from kwire.records.batch import Batch
from kwire.records.record_set import read_batches

__all__ = ["QUORUM_STATE", "QuorumState", "StoredMetadata", "committed", "read_metadata"]

QUORUM_STATE = "quorum-state"


@dataclass(slots=True, kw_only=True)
class QuorumState:
    """The file quorum-state. data_version: 0 with fixed voters, 1 with voters that are in the log (KIP-853)."""

    leader_epoch: int = 0
    data_version: int = 0

    def render(self, leader_id: int) -> bytes:
        """The file's bytes, with this leader."""
        if self.data_version == 0:
            state: dict[str, Any] = {
                "clusterId": "",
                "leaderId": leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": -1,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": leader_id}],
                "data_version": 0,
            }
        else:
            state = {
                "leaderId": leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": -1,
                "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
                "data_version": 1,
            }
        return json.dumps(state, separators=(",", ":")).encode()


@dataclass(slots=True, kw_only=True)
class StoredMetadata:
    """What was read.

    records: those that count, in order, each with its version. quorum: with the highest leader epoch of it and of the
    batches. voters: the newest KRAFT_VERSION and KRAFT_VOTERS records, which only logs with kraft.version 1 have.
    snapshot_offset: the end of the newest snapshot, 0 without one.
    """

    records: list[tuple[Message, int]] = field(default_factory=list)
    quorum: QuorumState = field(default_factory=QuorumState)
    voters: dict[ControlRecordType, bytes] = field(default_factory=dict)
    snapshot_offset: int = 0


def read_metadata(directory: Path) -> StoredMetadata:
    """Read a metadata log's directory; nothing where there is none. Raises LogError for records that are not known."""
    found = StoredMetadata()
    if not directory.is_dir():
        return found
    found.quorum = read_quorum_state(directory / QUORUM_STATE)
    snapshots = sorted(directory.glob("*.checkpoint"))
    if snapshots:
        found.snapshot_offset = int(snapshots[-1].name.partition("-")[0])
        take(found, snapshots[-1], 0)
    for path in sorted(directory.glob("*.log")):
        take(found, path, found.snapshot_offset)
    found.records = list(committed(found.records))
    return found


def read_quorum_state(path: Path) -> QuorumState:
    """The file, or a new one's values. Raises LogError."""
    if not path.exists():
        return QuorumState()
    try:
        state = json.loads(path.read_bytes())
        return QuorumState(leader_epoch=int(state["leaderEpoch"]), data_version=int(state["data_version"]))
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"not a quorum state: {error}", str(path)) from None


def take(found: StoredMetadata, path: Path, start: int) -> None:
    """Add the records of one file that stand at start or behind it."""
    try:
        for batch in read_batches(path.read_bytes()):
            batch.check()
            found.quorum.leader_epoch = max(found.quorum.leader_epoch, batch.partition_leader_epoch)
            if batch.last_offset < start:
                continue
            if batch.is_control:
                for record in map(parse_control_record, batch.records()):
                    if record.type in (ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS):
                        found.voters[record.type] = record.value or b""
            else:
                found.records += messages(batch, start, path)
    except CorruptBatch:
        return


def messages(batch: Batch, start: int, path: Path) -> Iterator[tuple[Message, int]]:
    """The messages of one batch, with their versions."""
    for record in batch.records():
        if record.offset >= start:
            try:
                yield read_metadata_record(record.value or b"")
            except (DecodeError, UnsupportedVersion) as error:
                raise LogError(f"metadata record at offset {record.offset}: {error}", str(path)) from None


def committed(records: Iterable[tuple[Message, int]]) -> Iterator[tuple[Message, int]]:
    """Without the records of transactions that were aborted, or not ended."""
    waiting: list[tuple[Message, int]] | None = None
    for record in records:
        name = type(record[0]).__name__
        if name == "BeginTransactionRecord":
            waiting = []
        elif name == "AbortTransactionRecord":
            waiting = None
        elif name == "EndTransactionRecord":
            yield from waiting or ()
            waiting = None
        elif waiting is not None:
            waiting.append(record)
        else:
            yield record
